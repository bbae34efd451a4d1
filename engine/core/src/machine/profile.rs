//! What rules take: time, and the tuples that they give, round by round.

use std::time::Duration;

/// The time and tuples of one application of a rule. Round 0 of a stratum is for its rules that are
/// not recursive.
pub struct Record {
    pub source: usize,
    pub stratum: usize,
    pub round: usize,
    pub time: Duration,
    /// Tuples that were not there.
    pub new: usize,
}

/// The records of an evaluation, and where it is.
#[derive(Default)]
pub struct Profile {
    pub records: Vec<Record>,
    stratum: usize,
    round: usize,
}

impl Profile {
    pub fn begin_stratum(&mut self, stratum: usize) {
        (self.stratum, self.round) = (stratum, 0);
    }

    pub fn begin_round(&mut self) {
        self.round += 1;
    }

    pub fn note(&mut self, source: usize, time: Duration, new: usize) {
        self.records.push(Record { source, stratum: self.stratum, round: self.round, time, new });
    }
}
