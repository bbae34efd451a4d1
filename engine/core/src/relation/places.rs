//! A place for each tuple of a relation, until it changes. The sets that keep packed tuples distinct have no rows, so
//! that the places of these are in the sets. Other tuples have their row as their place.

use crate::relation::rows::Rows;
use crate::relation::set::{packed, part_of, Set};

#[derive(Default)]
pub struct Places {
    /// By set: the numbers of its blocks, and its first place.
    sets: Vec<(Vec<u32>, usize)>,
    count: usize,
}

impl Places {
    pub fn new(sets: Option<&[Set]>, end: usize) -> Self {
        let mut places = Places { sets: Vec::new(), count: end };
        if let Some(sets) = sets {
            places.count = 0;
            for set in sets {
                places.sets.push((set.numbers(), places.count));
                places.count += set.places();
            }
        }
        places
    }

    /// How many places there are; some have no tuple.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        self.sets.iter().map(|(numbers, _)| size_of_val(&**numbers)).sum()
    }

    /// The place of a packed tuple.
    #[inline]
    pub fn place(&self, sets: &[Set], key: u64) -> Option<usize> {
        let part = if sets.len() == 1 { 0 } else { part_of(key, sets.len()) };
        let (numbers, start) = &self.sets[part];
        Some(start + sets[part].place(key, numbers)?)
    }

    /// The place of the tuple in a row.
    #[inline]
    pub fn of_row(&self, sets: Option<&[Set]>, rows: &Rows, arity: usize, row: usize) -> usize {
        let Some(sets) = sets else { return row };
        let words = [rows.word(row * arity), rows.word((row + 1) * arity - 1)];
        packed(&words[..arity]).and_then(|key| self.place(sets, key)).unwrap_or(0)
        // it is in the set
    }
}
