//! A hash set of the tuples of a relation. Tuples of one or two narrow words are kept in the table themselves,
//! others as the number of their row beside a part of their hash.

use crate::error::Fault;
use crate::rows::{narrow, pack};

/// No tuple: two words that narrow words cannot be, or a row that cannot be.
const NONE: u64 = 0x8000_0000_8000_0000;
/// Tuples that differ only in the last bits of their last word lie side by side.
const LINE: u64 = 8;
const LEAST: usize = 32;

#[derive(Clone, Default)]
pub struct Set {
    slots: Vec<u64>,
    keys: usize,
}

#[inline]
fn mix(key: u64) -> u64 {
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// The hash of words.
pub fn hash(words: impl Iterator<Item = i64>) -> u64 {
    words.fold(0, |state: u64, word| mix(state.rotate_left(29) ^ word as u64))
}

/// A narrow tuple of one or two words in one; None if it is wider.
#[inline]
pub fn packed(tuple: &[i64]) -> Option<u64> {
    match tuple {
        [x] => Some(u64::from(narrow(*x)? as u32)),
        [x, y] => Some(pack(narrow(*x)?, narrow(*y)?)),
        _ => None,
    }
}

/// Where a packed tuple goes first in a table of 2^bits slots. The first bits of the hash decide, so that a larger
/// table has the same order.
#[inline]
fn packed_home(key: u64, bits: u32) -> usize {
    let hash = mix(key / LINE);
    (hash >> (64 - bits) & !(LINE - 1) | key.wrapping_add(hash) & (LINE - 1)) as usize
}

/// Where a row goes first: the last bits of an entry are of its hash.
#[inline]
fn row_home(entry: u64, bits: u32) -> usize {
    (entry << 33 >> (64 - bits)) as usize
}

impl Set {
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    pub fn clear(&mut self) {
        if self.slots.len() > LEAST * 8 && self.keys < self.slots.len() / 16 {
            self.slots = Vec::new(); // to empty it would take longer than to fill it again
        } else if self.keys > 0 {
            self.slots.fill(NONE);
        }
        self.keys = 0;
    }

    /// Add a packed tuple; false if it is there.
    #[inline]
    pub fn insert(&mut self, key: u64) -> Result<bool, Fault> {
        self.reserve(packed_home)?;
        Ok(self.add(packed_home, key, |found| found == key))
    }

    /// Whether a packed tuple is there.
    #[inline]
    pub fn contains(&self, key: u64) -> bool {
        self.find(packed_home, key, |found| found == key)
    }

    /// Add the tuple that will be in `row`; false if it is there. `is_it` says so of the tuple in another row.
    pub fn insert_row(
        &mut self,
        hash: u64,
        row: usize,
        is_it: impl Fn(usize) -> bool,
    ) -> Result<bool, Fault> {
        self.reserve(row_home)?;
        let entry = (row as u64) << 32 | hash >> 33;
        Ok(self.add(row_home, entry, |found| found as u32 == entry as u32 && is_it((found >> 32) as usize)))
    }

    /// Whether a tuple is there.
    pub fn contains_row(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> bool {
        let entry = hash >> 33;
        self.find(row_home, entry, |found| found as u32 == entry as u32 && is_it((found >> 32) as usize))
    }

    #[inline]
    fn add(&mut self, home: fn(u64, u32) -> usize, entry: u64, is_it: impl Fn(u64) -> bool) -> bool {
        let mask = self.slots.len() - 1;
        let mut slot = home(entry, mask.count_ones());
        loop {
            let found = self.slots[slot & mask];
            if found == NONE {
                self.slots[slot & mask] = entry;
                self.keys += 1;
                return true;
            }
            if is_it(found) {
                return false;
            }
            slot += 1;
        }
    }

    #[inline]
    fn find(&self, home: fn(u64, u32) -> usize, entry: u64, is_it: impl Fn(u64) -> bool) -> bool {
        let Some(mask) = self.slots.len().checked_sub(1) else {
            return false;
        };
        let mut slot = home(entry, mask.count_ones());
        loop {
            let found = self.slots[slot & mask];
            if found == NONE || is_it(found) {
                return found != NONE;
            }
            slot += 1;
        }
    }

    /// Make room for one more: at most half of the slots are taken.
    #[inline]
    fn reserve(&mut self, home: fn(u64, u32) -> usize) -> Result<(), Fault> {
        if self.keys * 2 < self.slots.len() {
            return Ok(());
        }
        self.grow(home)
    }

    #[cold]
    fn grow(&mut self, home: fn(u64, u32) -> usize) -> Result<(), Fault> {
        let count = (self.slots.len() * 2).max(LEAST);
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).map_err(|_| Fault::OutOfMemory)?;
        slots.resize(count, NONE);
        let old = std::mem::replace(&mut self.slots, slots);
        let keys = self.keys;
        old.into_iter().filter(|&entry| entry != NONE).for_each(|entry| {
            self.add(home, entry, |_| false);
        });
        self.keys = keys;
        Ok(())
    }
}
