//! A hash set of the tuples of a relation. Tuples of one or two narrow words are kept in the table themselves or,
//! where most of them differ from another only in the last bits, as bits of blocks. Others are kept as the number of
//! their row beside a part of their hash.

use crate::error::Fault;
use crate::relation::rows::{narrow, pack};

/// No tuple: two words that narrow words cannot be, or a row that cannot be.
pub const NONE: u64 = 0x8000_0000_8000_0000;
/// The bits of an entry that are of a hash; the first 32 are a row.
const HASH: u64 = (1 << 31) - 1;
/// Tuples that differ only in the last bits of their last word lie side by side.
const LINE: u64 = 8;
const LEAST: usize = 32;
/// The last bits of a key, which say where it is in a block.
const BITS: u32 = 6;
const LAST: u64 = (1 << BITS) - 1;

/// From so many slots on, a table grows by half.
const LARGE: usize = 1 << 20;
/// Fewer keys never are bits of blocks.
const MANY: usize = 1 << 10;

/// Where an entry goes first in a table of so many slots.
type Home = fn(u64, usize) -> usize;

#[derive(Clone, Default)]
pub struct Set {
    slots: Vec<u64>,
    keys: usize,
    /// In place of the slots, where keys are dense.
    blocks: Vec<Block>,
    /// How many blocks have a key.
    taken: usize,
}

/// The keys that differ only in the last six bits. A block without keys is a free slot.
#[derive(Clone, Copy, Default)]
struct Block {
    key: u64,
    bits: u64,
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

/// Where a packed tuple goes first in a table of so many slots, whole lines. The first bits of the hash decide, so
/// that a larger table has the same order.
#[inline]
fn packed_home(key: u64, slots: usize) -> usize {
    let hash = mix(key / LINE);
    let line = (u128::from(hash) * (slots as u64 / LINE) as u128) >> 64;
    ((line as u64 * LINE) | (key.wrapping_add(hash) & (LINE - 1))) as usize
}

/// Where a row goes first: the last bits of an entry are of its hash.
#[inline]
fn row_home(entry: u64, slots: usize) -> usize {
    (((entry & HASH) * slots as u64) >> HASH.count_ones()) as usize
}

/// Where a block goes first.
#[inline]
fn block_home(key: u64, mask: usize) -> usize {
    (mix(key) >> (64 - mask.count_ones())) as usize
}

/// Which of so many sets a packed tuple is in. Tuples that differ only in their last bits are in the same.
#[inline]
pub fn part_of(key: u64, parts: usize) -> usize {
    let hash = (((key >> 36) << 21) ^ (u64::from(key as u32) >> 11)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (((hash >> 32) * parts as u64) >> 32) as usize
}

impl Set {
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>() + self.blocks.capacity() * size_of::<Block>()
    }

    pub fn clear(&mut self) {
        if self.slots.len() > LEAST * 8 && self.keys < self.slots.len() / 16 {
            self.slots = Vec::new(); // to empty it would take longer than to fill it again
        } else if self.keys > 0 {
            self.slots.fill(NONE);
        }
        self.blocks = Vec::new();
        (self.keys, self.taken) = (0, 0);
    }

    /// Make room for so many tuples in an empty set.
    pub fn reserve_for(&mut self, count: usize) -> Result<(), Fault> {
        if self.keys == 0 && self.slots.len() * 5 < count * 8 {
            self.slots = free_slots((count * 8).div_ceil(5).next_multiple_of(LEAST))?;
        }
        Ok(())
    }

    /// Add a packed tuple; false if it is there.
    #[inline]
    pub fn insert(&mut self, key: u64) -> Result<bool, Fault> {
        if !self.blocks.is_empty() {
            let new = self.set_bit(key)?;
            // Looked at where the table has just grown.
            if self.taken * 4 == self.blocks.len() && self.keys < self.taken * 2 {
                self.make_slots()?;
            }
            return Ok(new);
        }
        if self.keys * 8 >= self.slots.len() * 5 {
            if self.keys >= MANY && self.is_dense() {
                self.make_blocks()?;
                return self.set_bit(key);
            }
            self.grow(packed_home)?;
        }
        Ok(self.add(packed_home, key, |found| found == key))
    }

    /// Whether a packed tuple is there.
    #[inline]
    pub fn contains(&self, key: u64) -> bool {
        if !self.blocks.is_empty() {
            return self.blocks[self.block(key)].bits >> (key & LAST) & 1 == 1;
        }
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

    /// The row of a tuple.
    pub fn row(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let entry = hash >> 33;
        let it = |found: u64| found as u32 == entry as u32 && is_it((found >> 32) as usize);
        self.slot(row_home, entry, it).map(|slot| (self.slots[slot] >> 32) as usize)
    }

    /// For how many packed tuples `place` has a place.
    pub fn places(&self) -> usize {
        if self.blocks.is_empty() {
            self.slots.len()
        } else {
            self.taken << BITS
        }
    }

    /// The numbers of the blocks with a key among those, for `place`.
    pub fn numbers(&self) -> Vec<u32> {
        let taken = self.blocks.iter().scan(0, |number, block| {
            let own = *number;
            *number += u32::from(block.bits != 0);
            Some(own)
        });
        taken.collect()
    }

    /// A place for each packed tuple, until the set changes; None if it is not there.
    #[inline]
    pub fn place(&self, key: u64, numbers: &[u32]) -> Option<usize> {
        if !self.blocks.is_empty() {
            let block = self.block(key);
            let there = self.blocks[block].bits >> (key & LAST) & 1 == 1;
            return there.then(|| (numbers[block] as usize) << BITS | (key & LAST) as usize);
        }
        self.slot(packed_home, key, |found| found == key)
    }

    /// Delete a packed tuple that is there.
    pub fn remove(&mut self, key: u64) {
        if self.blocks.is_empty() {
            if let Some(slot) = self.slot(packed_home, key, |found| found == key) {
                self.free(packed_home, slot);
            }
            return;
        }
        let block = self.block(key);
        let bit = 1 << (key & LAST);
        if self.blocks[block].bits & bit != 0 {
            self.keys -= 1;
            self.blocks[block].bits &= !bit;
            if self.blocks[block].bits == 0 {
                self.free_block(block);
            }
        }
    }

    /// Delete the tuple in a row.
    pub fn remove_row(&mut self, hash: u64, row: usize) {
        let entry = (row as u64) << 32 | hash >> 33;
        if let Some(slot) = self.slot(row_home, entry, |found| found == entry) {
            self.free(row_home, slot);
        }
    }

    /// Give rows other numbers.
    pub fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        for entry in self.slots.iter_mut().filter(|entry| **entry != NONE) {
            *entry = (number((*entry >> 32) as usize) as u64) << 32 | (*entry & u64::from(u32::MAX));
        }
    }

    /// Free a slot: entries behind it that have come past it move up.
    fn free(&mut self, home: Home, mut free: usize) {
        let slots = self.slots.len();
        let behind = |from: usize, to: usize| if to < from { to + slots - from } else { to - from };
        let mut slot = free;
        loop {
            slot = self.next(slot);
            let entry = self.slots[slot];
            if entry == NONE {
                break;
            }
            if behind(home(entry, slots), slot) >= behind(free, slot) {
                self.slots[free] = entry;
                free = slot;
            }
        }
        self.slots[free] = NONE;
        self.keys -= 1;
    }

    /// Free the slot of a block that has lost its last key.
    fn free_block(&mut self, mut free: usize) {
        let mask = self.blocks.len() - 1;
        let mut slot = free;
        loop {
            slot = (slot + 1) & mask;
            let block = self.blocks[slot];
            if block.bits == 0 {
                break;
            }
            let first = block_home(block.key, mask);
            if slot.wrapping_sub(first) & mask >= slot.wrapping_sub(free) & mask {
                self.blocks[free] = block;
                free = slot;
            }
        }
        self.blocks[free] = Block::default();
        self.taken -= 1;
    }

    #[inline]
    fn add(&mut self, home: Home, entry: u64, is_it: impl Fn(u64) -> bool) -> bool {
        let mut slot = home(entry, self.slots.len());
        loop {
            let found = self.slots[slot];
            if found == NONE {
                self.slots[slot] = entry;
                self.keys += 1;
                return true;
            }
            if is_it(found) {
                return false;
            }
            slot = self.next(slot);
        }
    }

    /// The slot behind another one; the first is behind the last.
    #[inline]
    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() {
            0
        } else {
            slot + 1
        }
    }

    #[inline]
    fn find(&self, home: Home, entry: u64, is_it: impl Fn(u64) -> bool) -> bool {
        self.slot(home, entry, is_it).is_some()
    }

    /// The slot of an entry.
    #[inline]
    fn slot(&self, home: Home, entry: u64, is_it: impl Fn(u64) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut slot = home(entry, self.slots.len());
        loop {
            let found = self.slots[slot];
            if found == NONE || is_it(found) {
                return (found != NONE).then_some(slot);
            }
            slot = self.next(slot);
        }
    }

    /// The slot of the block of a key, or the free slot where it would go.
    #[inline]
    fn block(&self, key: u64) -> usize {
        let mask = self.blocks.len() - 1;
        let mut slot = block_home(key >> BITS, mask);
        loop {
            let Block { key: found, bits } = self.blocks[slot & mask];
            if bits == 0 || found == key >> BITS {
                return slot & mask;
            }
            slot += 1;
        }
    }

    #[inline]
    fn set_bit(&mut self, key: u64) -> Result<bool, Fault> {
        let slot = self.block(key);
        let (block, bit) = (&mut self.blocks[slot], 1 << (key & LAST));
        if block.bits & bit != 0 {
            return Ok(false);
        }
        self.taken += usize::from(block.bits == 0);
        *block = Block { key: key >> BITS, bits: block.bits | bit };
        self.keys += 1;
        if self.taken * 2 >= self.blocks.len() {
            self.grow_blocks()?;
        }
        Ok(true)
    }

    /// Whether blocks with a key have four and more, by a sample of blocks.
    fn is_dense(&self) -> bool {
        let sampled = |key: &u64| *key != NONE && mix(*key >> BITS) % 32 == 0;
        let mut blocks: Vec<u64> =
            self.slots.iter().copied().filter(sampled).map(|key| key >> BITS).collect();
        let keys = blocks.len();
        blocks.sort_unstable();
        blocks.dedup();
        keys >= 4 * blocks.len()
    }

    /// Call `take` with every packed tuple.
    pub fn drain(&mut self, mut take: impl FnMut(u64) -> Result<(), Fault>) -> Result<(), Fault> {
        let Set { slots, blocks, .. } = std::mem::take(self);
        slots.into_iter().filter(|&key| key != NONE).try_for_each(&mut take)?;
        for Block { key, bits } in blocks {
            for bit in (0..=LAST).filter(|bit| bits >> bit & 1 == 1) {
                take(key << BITS | bit)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn make_blocks(&mut self) -> Result<(), Fault> {
        self.blocks = free_blocks((self.slots.len() / 8).next_power_of_two())?;
        (self.keys, self.taken) = (0, 0);
        for key in std::mem::take(&mut self.slots).into_iter().filter(|&key| key != NONE) {
            self.set_bit(key)?;
        }
        Ok(())
    }

    /// Make room for more blocks.
    #[cold]
    fn grow_blocks(&mut self) -> Result<(), Fault> {
        let count = self.blocks.len() * 2;
        let old = std::mem::replace(&mut self.blocks, free_blocks(count)?);
        for block in old.into_iter().filter(|block| block.bits != 0) {
            let slot = self.block(block.key << BITS);
            self.blocks[slot] = block;
        }
        Ok(())
    }

    /// Keep the keys themselves again.
    #[cold]
    fn make_slots(&mut self) -> Result<(), Fault> {
        let mut kept = std::mem::take(self);
        kept.drain(|key| {
            self.reserve(packed_home)?;
            self.add(packed_home, key, |found| found == key);
            Ok(())
        })
    }

    /// Make room for one more: at most five of eight slots are taken.
    #[inline]
    fn reserve(&mut self, home: Home) -> Result<(), Fault> {
        if self.keys * 8 < self.slots.len() * 5 {
            return Ok(());
        }
        self.grow(home)
    }

    #[cold]
    fn grow(&mut self, home: Home) -> Result<(), Fault> {
        let slots = self.slots.len();
        if slots < LARGE {
            let count = (slots * 2).max(LEAST);
            let old = std::mem::replace(&mut self.slots, free_slots(count)?);
            self.keys = 0;
            old.into_iter().filter(|&entry| entry != NONE).for_each(|entry| {
                self.add(home, entry, |_| false);
            });
            return Ok(());
        }
        self.stretch(home, slots.div_ceil(16) * 24)
    }

    /// Grow a large table in place, so that no other one lies beside it. As a larger table has the same order, entries
    /// move behind, the last one first: none meets an entry that has yet to move. The few for which that does not
    /// hold wait until all others have moved.
    fn stretch(&mut self, home: Home, count: usize) -> Result<(), Fault> {
        let (old, keys) = (self.slots.len(), self.keys);
        self.slots.try_reserve_exact(count - old).map_err(|_| Fault::OutOfMemory)?;
        self.slots.resize(count, NONE);
        let mut waiting = Vec::new();
        for from in (0..old).rev() {
            let entry = std::mem::replace(&mut self.slots[from], NONE);
            if entry == NONE {
                continue;
            }
            let first = home(entry, count);
            let free = self.slots[first.max(from)..].iter().position(|&slot| slot == NONE);
            match free {
                Some(free) if first >= from => self.slots[first + free] = entry,
                _ => waiting.push(entry),
            }
        }
        for entry in waiting {
            self.add(home, entry, |_| false);
        }
        self.keys = keys;
        Ok(())
    }
}

fn free_slots(count: usize) -> Result<Vec<u64>, Fault> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(count).map_err(|_| Fault::OutOfMemory)?;
    slots.resize(count, NONE);
    Ok(slots)
}

fn free_blocks(count: usize) -> Result<Vec<Block>, Fault> {
    let mut blocks = Vec::new();
    blocks.try_reserve_exact(count).map_err(|_| Fault::OutOfMemory)?;
    blocks.resize(count, Block::default());
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Inserts keys twice, into a set and into one of the standard library.
    fn agrees(keys: impl Iterator<Item = u64> + Clone) -> Set {
        let (mut set, mut expected) = (Set::default(), HashSet::new());
        for key in keys.clone().chain(keys.clone()) {
            assert_eq!(set.insert(key).unwrap(), expected.insert(key));
        }
        assert!(keys.clone().all(|key| set.contains(key)));
        assert!(keys.map(|key| key ^ 1 << 40).all(|key| set.contains(key) == expected.contains(&key)));
        set
    }

    #[test]
    fn keys_that_lie_apart_are_kept_themselves() {
        assert!(agrees((0..5000).map(mix)).blocks.is_empty());
    }

    #[test]
    fn keys_that_lie_together_are_bits() {
        assert_eq!(agrees(0..5000).taken, 5000 / 64 + 1);
    }

    #[test]
    fn bits_take_keys_in_any_order() {
        assert!(agrees((0..200_000u64).map(|i| (i * 7919) % 200_003)).taken > 0);
        assert!(agrees((0..200_000u64).map(|i| (mix(i % 3000) >> 30 << 10) | (i / 3000))).taken > 0);
    }

    #[test]
    fn keys_are_kept_themselves_again_where_they_no_longer_lie_together() {
        assert!(agrees((0..2000).chain((0..50_000).map(mix))).blocks.is_empty());
    }

    #[test]
    fn a_large_table_grows_in_place() {
        let keys = (0..1_500_000).map(mix).filter(|&key| key != NONE);
        assert!(agrees(keys).slots.len() > LARGE);
        let (mut rows, mut expected) = (Set::default(), HashSet::new());
        for row in 0..1_500_000 {
            let key = row % 1_200_000;
            let new = rows.insert_row(mix(key as u64), row, |other| other % 1_200_000 == key).unwrap();
            assert_eq!(new, expected.insert(key));
        }
        assert!((0..1_200_000).all(|key| rows.contains_row(mix(key as u64), |other| other == key)));
    }

    /// Removes some of the keys of a set, and adds others.
    fn loses(mut set: Set, keys: &[u64]) {
        let mut expected: HashSet<u64> = keys.iter().copied().collect();
        for (i, &key) in keys.iter().enumerate().filter(|(i, _)| i % 3 != 0) {
            if expected.remove(&key) {
                set.remove(key);
            }
            if i % 7 == 0 {
                assert_eq!(set.insert(key ^ 1 << 50).unwrap(), expected.insert(key ^ 1 << 50));
            }
        }
        assert_eq!(set.keys, expected.len());
        assert!(keys.iter().all(|&key| set.contains(key) == expected.contains(&key)));
        let (numbers, places) = (set.numbers(), set.places());
        let found: HashSet<usize> =
            expected.iter().map(|&key| set.place(key, &numbers).expect("it is there")).collect();
        assert!(found.len() == expected.len() && found.iter().all(|&place| place < places));
    }

    #[test]
    fn keys_are_removed() {
        for count in [5, 30, 5000, 50_000] {
            let apart: Vec<u64> = (0..count).map(mix).collect();
            loses(agrees(apart.iter().copied()), &apart);
            let together: Vec<u64> = (0..count).collect();
            loses(agrees(together.iter().copied()), &together);
            let blocks: Vec<u64> = (0..count).map(|i| (mix(i / 8) >> 20 << 6) | (i % 8)).collect();
            loses(agrees(blocks.iter().copied()), &blocks);
        }
    }

    #[test]
    fn an_emptied_set_has_nothing() {
        let mut set = agrees(0..5000);
        set.clear();
        assert!((0..5000).all(|key| !set.contains(key)));
        assert!(set.insert(7).unwrap());
    }
}
