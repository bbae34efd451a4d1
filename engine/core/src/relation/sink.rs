//! Takes the new tuples of a relation in a round, and keeps them distinct, apart from the rows that
//! scans read meanwhile.

use crate::budget::Budget;
use crate::error::Fault;
use crate::relation::equivalence::Equivalence;
use crate::relation::rows::{narrow, pack, Rows};
use crate::relation::set::{hash, packed, part_of, Set};

/// Fewer tuples are compared one by one, which is faster than hashing.
const FEW: usize = 8;
/// For fewer facts no room is made ahead.
const MANY: usize = 1 << 10;
/// Tuples between two looks at the limits.
const BLOCK: usize = 1 << 12;

#[derive(Clone, Default)]
pub struct Sink {
    arity: usize,
    /// The tuples that no scan sees yet.
    fresh: Rows,
    /// How many tuples the relation has, these and the others.
    count: usize,
    set: Set,
    /// In place of the set several ones, each for one thread.
    parts: Vec<Set>,
    /// How many of the tuples are in the set.
    covered: usize,
    /// Whether there is a word that is not narrow.
    wide: bool,
    classes: Option<Box<Equivalence>>,
}

impl Sink {
    pub fn new(arity: usize, eqrel: bool) -> Self {
        Sink { arity, classes: eqrel.then(Box::default), ..Sink::default() }
    }

    pub fn arity(&self) -> usize {
        self.arity
    }

    /// How many tuples the relation has, new ones too.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn is_eqrel(&self) -> bool {
        self.classes.is_some()
    }

    pub fn fresh(&self) -> &Rows {
        &self.fresh
    }

    /// A word of all tuples end to end: those in `rows`, which scans read, then the new ones.
    pub fn word(&self, rows: &Rows, at: usize) -> i64 {
        word(rows, &self.fresh, at)
    }

    pub fn bytes(&self) -> usize {
        self.fresh.bytes() + self.set.bytes() + self.parts.iter().map(Set::bytes).sum::<usize>()
    }

    pub fn clear(&mut self) {
        self.fresh.clear();
        self.set.clear();
        self.parts.clear();
        (self.count, self.covered) = (0, 0);
        if let Some(classes) = &mut self.classes {
            classes.clear();
        }
    }

    /// Make room for so many tuples, where they are many.
    pub fn reserve(&mut self, count: usize) -> Result<(), Fault> {
        if count < MANY || self.classes.is_some() {
            return Ok(());
        }
        self.fresh.reserve(count * self.arity)?;
        self.set.reserve_for(count)
    }

    /// Make room for the rows of so many tuples.
    pub fn reserve_rows(&mut self, count: usize) -> Result<(), Fault> {
        self.fresh.reserve(count * self.arity)
    }

    /// Whether new tuples, which can be packed and may not be in the set yet, are distinct. False if there is no room to
    /// sort them.
    pub fn is_distinct(&self) -> bool {
        let (mut keys, Rows::Narrow(words)) = (Vec::new(), &self.fresh) else { return false };
        if keys.try_reserve_exact(self.count).is_err() {
            return false;
        }
        keys.extend(words.chunks_exact(self.arity).map(|tuple| match *tuple {
            [x, y] => pack(x, y),
            [x, ..] => pack(0, x),
            [] => 0,
        }));
        keys.sort_unstable();
        keys.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// The sets that keep packed tuples distinct; None where the set has rows.
    pub fn sets(&self) -> Option<&[Set]> {
        if self.wide || !(1..=2).contains(&self.arity) {
            return None;
        }
        Some(if self.parts.is_empty() { std::slice::from_ref(&self.set) } else { &self.parts })
    }

    /// The row of a tuple, where the set, which is up to date, has rows.
    pub fn row(&self, rows: &Rows, tuple: &[i64]) -> Option<usize> {
        let same = |row: usize| is_row(rows, &self.fresh, row * self.arity, tuple);
        self.set.row(hash(tuple.iter().copied()), same)
    }

    /// Delete those of the first rows, which scans read, that are `gone`, and give them all the numbers that they have
    /// in `numbers`. All tuples are in the set.
    pub fn rearrange(&mut self, rows: &Rows, gone: &[u32], numbers: &[u32]) {
        let mut tuple = vec![0; self.arity];
        let packs = self.sets().is_some();
        for &row in gone {
            let words = tuple.iter_mut().enumerate();
            words.for_each(|(column, word)| *word = rows.word(row as usize * self.arity + column));
            match packed(&tuple).filter(|_| packs) {
                Some(key) => self.set_of(key).remove(key),
                None => self.set.remove_row(hash(tuple.iter().copied()), row as usize),
            }
        }
        if !packs {
            let number = |row: usize| numbers.get(row).map_or(row - gone.len(), |&row| row as usize);
            self.set.renumber(number);
        }
        self.count -= gone.len();
        self.covered = self.count;
    }

    /// Delete new tuples for which `is_gone` holds; `rows` are those that scans read.
    pub fn forget(&mut self, rows: &Rows, is_gone: impl Fn(&[i64]) -> bool) -> Result<(), Fault> {
        let (mut kept, mut tuple) = (Rows::default(), vec![0; self.arity]);
        let first = rows.len() / self.arity.max(1);
        for row in first..self.count {
            let words = tuple.iter_mut().enumerate();
            words.for_each(|(column, word)| *word = self.word(rows, row * self.arity + column));
            if !is_gone(&tuple) {
                kept.put(&tuple)?;
            }
        }
        if kept.len() < self.fresh.len() {
            self.count = (rows.len() + kept.len()) / self.arity.max(1);
            self.fresh = kept;
            self.set.clear();
            self.parts.clear();
            self.covered = 0;
        }
        Ok(())
    }

    /// Delete the new tuples behind the first so many, and free the room for more; `rows` are those that scans read.
    pub fn shorten(&mut self, rows: &Rows, count: usize) {
        self.fresh.truncate(count * self.arity - rows.len());
        (self.set, self.parts) = (Set::default(), Vec::new());
        (self.count, self.covered) = (count, 0);
    }

    /// Move the new tuples behind the rows that scans read.
    pub fn drain(&mut self, rows: &mut Rows) -> Result<(), Fault> {
        if rows.len() == 0 {
            std::mem::swap(rows, &mut self.fresh);
        }
        rows.append(&mut self.fresh)?;
        self.fresh.release();
        Ok(())
    }

    /// Add a derived tuple unless it is there; an `eqrel` relation is closed at once.
    pub fn insert(&mut self, rows: &Rows, tuple: &[i64], budget: &mut Budget) -> Result<(), Fault> {
        let Some(mut classes) = self.classes.take() else {
            return if self.append(rows, tuple)? { budget.derive(1) } else { Ok(()) };
        };
        let closed = classes.unite(tuple[0], tuple[1], |x, y| {
            if self.append(rows, &[x, y])? {
                budget.derive(1)?;
            }
            if budget.is_over(1) {
                budget.check(rows.bytes() + self.bytes())?;
            }
            Ok(())
        });
        self.classes = Some(classes);
        closed
    }

    /// Add a tuple unless it is there.
    pub fn append(&mut self, rows: &Rows, tuple: &[i64]) -> Result<bool, Fault> {
        if !tuple.iter().all(|&word| narrow(word).is_some()) {
            self.widen()?;
        }
        let new = if self.count < FEW {
            !self.is_among(rows, tuple)
        } else {
            self.cover(rows)?;
            match packed(tuple).filter(|_| !self.wide) {
                Some(key) => self.set_of(key).insert(key)?,
                None => {
                    let (fresh, arity) = (&self.fresh, self.arity);
                    let same = |row: usize| is_row(rows, fresh, row * arity, tuple);
                    self.set.insert_row(hash(tuple.iter().copied()), self.count, same)?
                }
            }
        };
        if new {
            self.fresh.push(tuple)?;
            self.covered += usize::from(self.count >= FEW);
            self.count += 1;
        }
        Ok(new)
    }

    /// Add a tuple that is not there.
    pub fn push(&mut self, tuple: &[i64]) -> Result<(), Fault> {
        if !tuple.iter().all(|&word| narrow(word).is_some()) {
            self.widen()?;
        }
        self.fresh.push(tuple)?;
        self.count += 1;
        Ok(())
    }

    /// Have room for words that are not narrow.
    fn widen(&mut self) -> Result<(), Fault> {
        self.fresh.widen()?;
        if !self.wide {
            self.set.clear();
            self.parts.clear();
            (self.wide, self.covered) = (true, 0);
        }
        Ok(())
    }

    /// Whether a tuple is known to be there.
    pub fn contains(&self, rows: &Rows, tuple: &[i64]) -> bool {
        if self.covered < self.count {
            return self.count < FEW && self.is_among(rows, tuple);
        }
        match packed(tuple).filter(|_| !self.wide) {
            Some(key) => self.contains_key(key),
            None if !self.wide && self.arity <= 2 => false, // a word that is not narrow
            None => {
                let same = |row: usize| is_row(rows, &self.fresh, row * self.arity, tuple);
                self.set.contains_row(hash(tuple.iter().copied()), same)
            }
        }
    }

    /// Add `tuple` with each of `words` in one column.
    pub fn extend(
        &mut self,
        rows: &Rows,
        tuple: &mut [i64],
        column: usize,
        words: &[u32],
        budget: &mut Budget,
    ) -> Result<(), Fault> {
        let other = if self.arity == 2 { narrow(tuple[1 - column]) } else { None };
        for words in words.chunks(BLOCK) {
            match (other, &mut self.fresh) {
                (Some(other), Rows::Narrow(fresh))
                    if self.count >= FEW
                        && !self.wide
                        && self.covered == self.count
                        && self.classes.is_none() =>
                {
                    let before = self.count;
                    for &word in words {
                        let word = word as i32;
                        let [x, y] = if column == 0 { [word, other] } else { [other, word] };
                        let key = pack(x, y);
                        let set = match self.parts.len() {
                            0 => &mut self.set,
                            parts => &mut self.parts[part_of(key, parts)],
                        };
                        if set.insert(key)? {
                            fresh.try_reserve(2).map_err(|_| Fault::OutOfMemory)?;
                            fresh.extend_from_slice(&[x, y]);
                            self.count += 1;
                        }
                    }
                    self.covered = self.count;
                    budget.derive(self.count - before)?;
                }
                _ => {
                    for &word in words {
                        tuple[column] = i64::from(word as i32);
                        self.insert(rows, tuple, budget)?;
                    }
                }
            }
            if budget.is_over(words.len()) {
                budget.check(rows.bytes() + self.bytes())?;
            }
        }
        Ok(())
    }

    /// Add the tuples of another sink, in their order.
    pub fn absorb(&mut self, rows: &Rows, other: &Sink, budget: &mut Budget) -> Result<(), Fault> {
        let mut tuple = vec![0; self.arity];
        for row in 0..other.count {
            for (column, word) in tuple.iter_mut().enumerate() {
                *word = other.fresh.word(row * self.arity + column);
            }
            self.insert(rows, &tuple, budget)?;
            if budget.is_over(1) {
                budget.check(rows.bytes() + self.bytes() + other.bytes())?;
            }
        }
        Ok(())
    }

    /// Keep packed tuples in so many sets; false where tuples are not packed.
    pub fn divide(&mut self, rows: &Rows, parts: usize) -> Result<bool, Fault> {
        self.cover(rows)?;
        if self.wide || !(1..=2).contains(&self.arity) {
            return Ok(false);
        }
        if self.parts.len() != parts {
            let mut old = std::mem::take(&mut self.parts);
            old.push(std::mem::take(&mut self.set));
            self.parts.resize_with(parts, Set::default);
            for set in &mut old {
                set.drain(|key| self.parts[part_of(key, parts)].insert(key).map(|_| ()))?;
            }
        }
        Ok(true)
    }

    /// The sets that packed tuples are in, after `divide`.
    pub fn parts(&mut self) -> &mut Vec<Set> {
        &mut self.parts
    }

    /// Move the new tuples behind the rows that scans read, and so many packed ones behind them, which are in the
    /// sets already.
    pub fn drain_packed<'k>(
        &mut self,
        rows: &mut Rows,
        count: usize,
        runs: impl Iterator<Item = &'k [u64]>,
    ) -> Result<(), Fault> {
        self.drain(rows)?;
        rows.extend_packed(self.arity, count, runs)?;
        self.count += count;
        self.covered = self.count;
        Ok(())
    }

    #[inline]
    fn set_of(&mut self, key: u64) -> &mut Set {
        match self.parts.len() {
            0 => &mut self.set,
            parts => &mut self.parts[part_of(key, parts)],
        }
    }

    /// Whether a packed tuple is in the sets.
    #[inline]
    pub fn contains_key(&self, key: u64) -> bool {
        match self.parts.len() {
            0 => self.set.contains(key),
            parts => self.parts[part_of(key, parts)].contains(key),
        }
    }

    fn is_among(&self, rows: &Rows, tuple: &[i64]) -> bool {
        (0..self.count).any(|row| is_row(rows, &self.fresh, row * self.arity, tuple))
    }

    /// Put all tuples into the set.
    #[inline]
    pub fn cover(&mut self, rows: &Rows) -> Result<(), Fault> {
        if self.covered < self.count {
            self.cover_all(rows)?;
        }
        Ok(())
    }

    #[cold]
    fn cover_all(&mut self, rows: &Rows) -> Result<(), Fault> {
        let mut tuple = Vec::with_capacity(self.arity);
        for row in self.covered..self.count {
            tuple.clear();
            tuple.extend((row * self.arity..(row + 1) * self.arity).map(|at| word(rows, &self.fresh, at)));
            match packed(&tuple).filter(|_| !self.wide) {
                Some(key) => self.set_of(key).insert(key)?,
                None => self.set.insert_row(hash(tuple.iter().copied()), row, |_| false)?,
            };
        }
        self.covered = self.count;
        Ok(())
    }
}

fn word(rows: &Rows, fresh: &Rows, at: usize) -> i64 {
    match at.checked_sub(rows.len()) {
        Some(at) => fresh.word(at),
        None => rows.word(at),
    }
}

/// Whether the words from a place on are those of a tuple.
fn is_row(rows: &Rows, fresh: &Rows, at: usize, tuple: &[i64]) -> bool {
    let (rows, at) = if at < rows.len() { (rows, at) } else { (fresh, at - rows.len()) };
    tuple.iter().enumerate().all(|(i, &word)| rows.word(at + i) == word)
}
