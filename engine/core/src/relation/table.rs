//! A hash table from keys to their entries, which lie side by side.

use crate::error::Fault;

const LEAST: usize = 32;
/// A smaller pool keeps the places that groups have left.
const LARGE: usize = 1 << 12;

/// A key and where its entries are: a single one in `start` itself, more of them in the pool from there on.
#[derive(Clone, Copy)]
pub struct Group {
    key: u64,
    start: u32,
    pub len: u32,
    /// How many entries are of rows before row `since`, if that is where the delta starts; otherwise all are.
    pub old: u32,
    pub since: u32,
}

/// Keys and their entries.
#[derive(Clone, Default)]
pub struct Table {
    /// Open addressing: numbers of groups, from 1 on.
    slots: Vec<u32>,
    pub groups: Vec<Group>,
    pool: Vec<u32>,
    /// Places in the pool that groups have left, by the class of their size.
    free: Vec<Vec<u32>>,
    /// How many words of the pool are in no group's place.
    left: usize,
}

/// The class and the size of the place of so many entries, two or more. Sizes are 2, 3, 4, 6, 8, 12, ...
#[inline]
fn place(len: usize) -> (usize, usize) {
    let bits = (len - 1).ilog2();
    let (size, class) = (2 << bits, 2 * bits as usize);
    match size / 4 * 3 {
        smaller if len <= smaller => (class, smaller),
        _ => (class + 1, size),
    }
}

impl Table {
    pub fn clear(&mut self) {
        if self.groups.len() < self.slots.len() / 16 && self.slots.len() > LEAST * 8 {
            self.slots = Vec::new(); // to empty it would take longer than to fill it again
        } else if !self.groups.is_empty() {
            self.slots.fill(0);
        }
        self.groups.clear();
        self.pool.clear();
        self.free.clear();
        self.left = 0;
    }

    pub fn bytes(&self) -> usize {
        let free = self.free.iter().map(Vec::capacity).sum::<usize>();
        self.groups.capacity() * size_of::<Group>()
            + (self.slots.capacity() + self.pool.capacity() + free) * size_of::<u32>()
    }

    #[inline]
    pub fn of<'a>(&'a self, group: &'a Group) -> &'a [u32] {
        match group.len {
            1 => std::slice::from_ref(&group.start),
            len => &self.pool[group.start as usize..][..len as usize],
        }
    }

    /// The group of a key. `same` says whether it is it, by its first entry, as keys may be hashes.
    #[inline]
    pub fn find(&self, key: u64, same: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = home(key, mask);
        loop {
            let group = (self.slots[slot & mask] as usize).checked_sub(1)?;
            if self.groups[group].key == key && same(self.of(&self.groups[group])[0]) {
                return Some(group);
            }
            slot += 1;
        }
    }

    /// Add entries to a group, or to a new one. They are of the delta from row `since` on; 0: they are not.
    pub fn add(
        &mut self,
        found: Option<usize>,
        key: u64,
        since: u32,
        mut entries: impl ExactSizeIterator<Item = u32>,
    ) -> Result<(), Fault> {
        let number = match found {
            Some(number) => number,
            None => {
                let Some(start) = entries.next() else { return Ok(()) };
                self.push(Group { key, start, len: 1, old: 0, since })?
            }
        };
        let group = &mut self.groups[number];
        if since > 0 && group.since != since {
            (group.since, group.old) = (since, group.len);
        }
        let more = entries.len();
        if more > 0 {
            self.enlarge(number, more)?;
            let group = &mut self.groups[number];
            let free = (group.start + group.len) as usize;
            self.pool[free..free + more].iter_mut().zip(entries).for_each(|(to, entry)| *to = entry);
            group.len += more as u32;
        }
        Ok(())
    }

    /// Add a group; returns its number.
    fn push(&mut self, group: Group) -> Result<usize, Fault> {
        self.reserve()?;
        let mask = self.slots.len() - 1;
        let mut slot = home(group.key, mask);
        while self.slots[slot & mask] != 0 {
            slot += 1;
        }
        self.groups.push(group);
        self.slots[slot & mask] = self.groups.len() as u32;
        Ok(self.groups.len() - 1)
    }

    /// Have `change` delete and change the entries of groups, whose delta is over. It returns how many are left,
    /// which come first.
    pub fn change(&mut self, mut change: impl FnMut(usize, &mut [u32]) -> usize) {
        let mut emptied = false;
        for (number, group) in self.groups.iter_mut().enumerate() {
            (group.since, group.old) = (0, 0);
            let (start, len) = (group.start as usize, group.len as usize);
            if len == 1 {
                let mut entry = [group.start];
                group.len = change(number, &mut entry) as u32;
                group.start = entry[0];
            } else {
                let left = change(number, &mut self.pool[start..start + len]);
                let (class, size) = place(len);
                if left <= 1 {
                    self.free[class].push(group.start);
                    self.left += size;
                    group.start = self.pool[start];
                } else {
                    self.left += size - place(left).1;
                }
                group.len = left as u32;
            }
            emptied |= group.len == 0;
        }
        if emptied {
            self.groups.retain(|group| group.len > 0);
            self.slots.fill(0);
            self.fill_slots();
        }
    }

    /// Move the entries of a group to where there is room for so many more, if there is not.
    fn enlarge(&mut self, number: usize, more: usize) -> Result<(), Fault> {
        let len = self.groups[number].len as usize;
        let (class, size) = place(len + more);
        if len > 1 && size == place(len).1 {
            return Ok(());
        }
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        let start = match self.free[class].pop() {
            Some(start) => {
                self.left -= size;
                start as usize
            }
            None => {
                if self.left * 8 > self.pool.len().max(LARGE) {
                    self.compact()?;
                }
                let start = self.pool.len();
                self.pool.try_reserve(size).map_err(|_| Fault::OutOfMemory)?;
                self.pool.resize(start + size, 0);
                start
            }
        };
        let from = self.groups[number].start;
        if len == 1 {
            self.pool[start] = from;
        } else {
            let (class, size) = place(len);
            self.pool.copy_within(from as usize..from as usize + len, start);
            self.free[class].push(from);
            self.left += size;
        }
        self.groups[number].start =
            u32::try_from(start + size).map_err(|_| Fault::OutOfMemory)? - size as u32;
        Ok(())
    }

    /// Move all groups up to where they leave no place between them.
    #[cold]
    fn compact(&mut self) -> Result<(), Fault> {
        let mut order = Vec::new();
        order.try_reserve_exact(self.groups.len()).map_err(|_| Fault::OutOfMemory)?;
        order.extend((0..self.groups.len() as u32).filter(|&number| self.groups[number as usize].len > 1));
        order.sort_unstable_by_key(|&number| self.groups[number as usize].start);
        let mut end = 0;
        for number in order {
            let Group { start, len, .. } = &mut self.groups[number as usize];
            let (from, len) = (*start as usize, *len as usize);
            self.pool.copy_within(from..from + len, end);
            *start = end as u32;
            end += place(len).1;
        }
        self.pool.truncate(end);
        self.free.iter_mut().for_each(Vec::clear);
        self.left = 0;
        Ok(())
    }

    /// Make room for one more key: at most half of the slots are taken.
    fn reserve(&mut self) -> Result<(), Fault> {
        self.groups.try_reserve(1).map_err(|_| Fault::OutOfMemory)?;
        if self.groups.len() * 2 < self.slots.len() {
            return Ok(());
        }
        let count = (self.slots.len() * 2).max(LEAST);
        self.slots.clear();
        self.slots.try_reserve_exact(count).map_err(|_| Fault::OutOfMemory)?;
        self.slots.resize(count, 0);
        self.fill_slots();
        Ok(())
    }

    fn fill_slots(&mut self) {
        let count = self.slots.len();
        for (number, group) in self.groups.iter().enumerate() {
            let mut slot = home(group.key, count - 1);
            while self.slots[slot & (count - 1)] != 0 {
                slot += 1;
            }
            self.slots[slot & (count - 1)] = number as u32 + 1;
        }
    }
}

#[inline]
fn home(key: u64, mask: usize) -> usize {
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) as usize >> (usize::BITS - mask.count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_their_entries_while_others_grow_and_shrink() {
        let (mut table, mut expected) = (Table::default(), vec![Vec::new(); 500]);
        for step in 0..40_000u32 {
            let key = (step.wrapping_mul(2_654_435_761) >> 7) % 500;
            let entries = step..step + 1 + step % 5;
            expected[key as usize].extend(entries.clone());
            let found = table.find(key.into(), |_| true);
            table.add(found, key.into(), 0, entries.collect::<Vec<_>>().into_iter()).unwrap();
            if step % 9_000 == 8_999 {
                table.change(|_, entries| {
                    let mut kept = 0;
                    for i in (0..entries.len()).filter(|i| i % 3 != 0) {
                        entries[kept] = entries[i];
                        kept += 1;
                    }
                    kept
                });
                for own in &mut expected {
                    *own =
                        own.iter().copied().enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, e)| e).collect();
                }
            }
        }
        for (key, own) in expected.iter().enumerate() {
            let group = table.find(key as u64, |_| true).map(|group| table.of(&table.groups[group]));
            assert_eq!(group.unwrap_or_default(), own);
        }
        let count: usize = expected.iter().map(Vec::len).sum();
        assert!(table.pool.len() < count * 3 / 2, "{} words for {count} entries", table.pool.len());
    }
}
