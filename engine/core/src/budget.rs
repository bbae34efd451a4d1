//! The limits of an evaluation, and how near to them it is.

use std::time::{Duration, Instant};

use crate::error::Fault;

/// The limits of an evaluation, and how it is told to stop.
pub struct Limits<'a> {
    /// The tuples that rules derive.
    pub tuples: usize,
    /// The bytes of relations, symbols and records, facts too.
    pub memory: usize,
    /// For how long it may run, and until when.
    pub time: Option<(Duration, Instant)>,
    /// On how many threads a rule may run.
    pub threads: usize,
    /// True when the evaluation should stop (Ctrl-C).
    pub interrupted: &'a dyn Fn() -> bool,
}

/// More threads have no use.
pub const MOST_THREADS: usize = 64;
/// Tuples between two looks at the clock.
const PATIENCE: u32 = 1 << 16;
/// Bytes of text that take as long as a tuple.
const TEXT: usize = 1 << 10;

pub struct Budget<'a> {
    pub limits: &'a Limits<'a>,
    /// The tuples that rules have derived.
    pub derived: usize,
    patience: u32,
}

impl<'a> Budget<'a> {
    pub fn new(limits: &'a Limits<'a>) -> Self {
        Budget { limits, derived: 0, patience: PATIENCE }
    }

    /// Count derived tuples.
    #[inline]
    pub fn derive(&mut self, count: usize) -> Result<(), Fault> {
        self.derived += count;
        self.has_room(0)
    }

    /// Stop where so many more tuples would be too many.
    #[inline]
    pub fn has_room(&self, count: usize) -> Result<(), Fault> {
        if self.derived + count > self.limits.tuples {
            return Err(Fault::TooManyTuples(self.limits.tuples));
        }
        Ok(())
    }

    /// Count tuples that were looked at; true where it is time for `check`.
    #[inline]
    pub fn is_over(&mut self, count: usize) -> bool {
        self.patience = self.patience.saturating_sub(count as u32);
        self.patience == 0
    }

    /// Count so many bytes of text that were read; true where it is time for `check`.
    pub fn has_read(&mut self, bytes: usize) -> bool {
        self.patience = self.patience.saturating_sub(u32::try_from(bytes / TEXT).unwrap_or(u32::MAX));
        self.patience == 0
    }

    /// Stop where a limit is reached or someone asks; `bytes` are taken.
    pub fn check(&mut self, bytes: usize) -> Result<(), Fault> {
        self.patience = PATIENCE;
        if bytes > self.limits.memory {
            return Err(Fault::TooMuchMemory(self.limits.memory));
        }
        if let Some((time, _)) = self.limits.time.filter(|&(_, deadline)| Instant::now() >= deadline) {
            return Err(Fault::TooSlow(time));
        }
        if (self.limits.interrupted)() {
            return Err(Fault::Interrupted);
        }
        Ok(())
    }
}
