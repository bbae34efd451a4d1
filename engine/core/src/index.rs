//! A hash index of a relation on some of its columns. Rows with equal keys form a chain from the newest to
//! the oldest. Clearing takes constant time, so that relations can be filled and emptied again and again.

use crate::error::Fault;

/// No row: the end of a chain.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Slot {
    generation: u32,
    row: u32,
}

/// An open-addressing table from keys to the newest row with that key.
#[derive(Clone)]
pub struct Index {
    columns: Box<[usize]>,
    slots: Vec<Slot>,
    generation: u32,
    keys: usize,
    /// For each row that is indexed, the row before it with the same key.
    previous: Vec<u32>,
}

/// The result of a probe: the slot of a key, or the free slot where it would go.
enum Place {
    Taken(usize),
    Free(usize),
}

fn hash(key: impl Iterator<Item = i64>) -> u64 {
    key.fold(0, |state: u64, word| (state.rotate_left(29) ^ word as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

impl Index {
    pub fn new(columns: impl IntoIterator<Item = usize>) -> Self {
        Index {
            columns: columns.into_iter().collect(),
            slots: Vec::new(),
            generation: 1,
            keys: 0,
            previous: Vec::new(),
        }
    }

    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub fn clear(&mut self) {
        self.previous.clear();
        self.keys = 0;
        if self.generation == u32::MAX {
            self.slots.clear();
            self.generation = 0;
        }
        self.generation += 1;
    }

    /// The number of rows that are indexed.
    pub fn covered(&self) -> usize {
        self.previous.len()
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.previous.capacity() * size_of::<u32>()
    }

    /// Index the rows up to `end`.
    pub fn cover(&mut self, rows: &[i64], arity: usize, end: usize) -> Result<(), Fault> {
        while self.covered() < end {
            self.reserve(rows, arity)?;
            let row = self.covered();
            let values = &rows[row * arity..][..arity];
            let place = self.place(rows, arity, self.columns.iter().map(|&c| values[c]));
            self.add(place, row);
        }
        Ok(())
    }

    /// Index the next row, which is about to be `key`, unless a row with that key exists.
    pub fn insert(&mut self, rows: &[i64], arity: usize, key: &[i64]) -> Result<bool, Fault> {
        self.reserve(rows, arity)?;
        let place = self.place(rows, arity, key.iter().copied());
        let new = matches!(place, Place::Free(_));
        if new {
            self.add(place, self.covered());
        }
        Ok(new)
    }

    /// The newest row with a key.
    pub fn newest(&self, rows: &[i64], arity: usize, key: &[i64]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        match self.place(rows, arity, key.iter().copied()) {
            Place::Taken(slot) => Some(self.slots[slot].row as usize),
            Place::Free(_) => None,
        }
    }

    /// The row before this one with the same key.
    pub fn previous(&self, row: usize) -> Option<usize> {
        let previous = self.previous[row];
        (previous != NONE).then_some(previous as usize)
    }

    fn add(&mut self, place: Place, row: usize) {
        let (slot, previous) = match place {
            Place::Taken(slot) => (slot, self.slots[slot].row),
            Place::Free(slot) => {
                self.keys += 1;
                (slot, NONE)
            }
        };
        self.slots[slot] = Slot { generation: self.generation, row: row as u32 };
        self.previous.push(previous);
    }

    fn place(&self, rows: &[i64], arity: usize, key: impl Iterator<Item = i64> + Clone) -> Place {
        let mask = self.slots.len() - 1;
        let mut slot = (hash(key.clone()) >> (64 - mask.count_ones())) as usize;
        loop {
            let Slot { generation, row } = self.slots[slot];
            if generation != self.generation {
                return Place::Free(slot);
            }
            let values = &rows[row as usize * arity..][..arity];
            if self.columns.iter().map(|&c| values[c]).eq(key.clone()) {
                return Place::Taken(slot);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Make room for one more row and its key: at most half of the slots are taken.
    fn reserve(&mut self, rows: &[i64], arity: usize) -> Result<(), Fault> {
        self.previous.try_reserve(1).map_err(|_| Fault::OutOfMemory)?;
        if self.slots.is_empty() || self.keys * 2 >= self.slots.len() {
            let count = (self.slots.len() * 2).max(32);
            let mut slots = Vec::new();
            slots.try_reserve_exact(count).map_err(|_| Fault::OutOfMemory)?;
            slots.resize(count, Slot { generation: 0, row: NONE });
            let old = std::mem::replace(&mut self.slots, slots);
            for slot in old.iter().filter(|slot| slot.generation == self.generation) {
                let values = &rows[slot.row as usize * arity..][..arity];
                if let Place::Free(free) = self.place(rows, arity, self.columns.iter().map(|&c| values[c])) {
                    self.slots[free] = *slot;
                }
            }
        }
        Ok(())
    }
}
