//! A hash table from keys to their entries, which lie side by side.

use crate::error::Fault;

const LEAST: usize = 32;

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
    /// Places in the pool that groups have left, by the logarithm of their size.
    free: Vec<Vec<u32>>,
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
        let mut group = self.groups[number];
        if since > 0 && group.since != since {
            (group.since, group.old) = (since, group.len);
        }
        let more = entries.len();
        if more > 0 {
            self.enlarge(&mut group, more)?;
            let free = (group.start + group.len) as usize;
            self.pool[free..free + more].iter_mut().zip(entries).for_each(|(to, entry)| *to = entry);
            group.len += more as u32;
        }
        self.groups[number] = group;
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
                if left <= 1 {
                    let first = self.pool[start];
                    self.free[len.next_power_of_two().trailing_zeros() as usize].push(group.start);
                    group.start = first;
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

    /// Move the entries of a group to where there is room for so many more, if there is not. Room is for the power
    /// of two that is not less than their number.
    fn enlarge(&mut self, group: &mut Group, more: usize) -> Result<(), Fault> {
        let (from, len) = (group.start as usize, group.len as usize);
        let size = (len + more).next_power_of_two();
        if len > 1 && size == len.next_power_of_two() {
            return Ok(());
        }
        let class = size.trailing_zeros() as usize;
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        let start = match self.free[class].pop() {
            Some(start) => start as usize,
            None => {
                let start = self.pool.len();
                self.pool.try_reserve(size).map_err(|_| Fault::OutOfMemory)?;
                self.pool.resize(start + size, 0);
                start
            }
        };
        if len == 1 {
            self.pool[start] = group.start;
        } else {
            self.pool.copy_within(from..from + len, start);
            self.free[len.next_power_of_two().trailing_zeros() as usize].push(group.start);
        }
        group.start = u32::try_from(start + size).map_err(|_| Fault::OutOfMemory)? - size as u32;
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
