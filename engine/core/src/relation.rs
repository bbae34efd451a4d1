//! Relations: sets of tuples in the order in which they were found.
//!
//! A tuple's life. It is inserted as *new*: no scan sees it yet. `advance` makes the new tuples the *delta*
//! of the next round, and the last delta *old*. As rows are only appended, the three are row ranges:
//! `0 .. delta .. end .. count`.

use rustc_hash::FxHashSet;

use crate::budget::Budget;
use crate::equivalence::Equivalence;
use crate::error::Fault;
use crate::index::Index;

/// Relations with fewer rows are searched from end to end, which is faster than hashing.
const FEW: usize = 8;

/// Which tuples a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    All,
    Delta,
    Old,
}

#[derive(Clone)]
pub struct Relation {
    arity: usize,
    rows: Vec<i64>,
    count: usize,
    delta: usize,
    end: usize,
    /// The first is on all columns and keeps the tuples distinct; the others are made for scans.
    indexes: Vec<Index>,
    classes: Option<Equivalence>,
    /// Groups of columns on which no two tuples agree.
    choices: Vec<Choice>,
    /// Facts of an `eqrel`, which is closed over them when an evaluation starts.
    given: Vec<[i64; 2]>,
    /// The number of the first tuple of each round but the first: a tuple follows from those of earlier ones.
    rounds: Vec<usize>,
}

/// What the tuples of a relation have in a group of columns on which no two of them agree.
#[derive(Clone, Default)]
struct Choice {
    columns: Box<[usize]>,
    taken: FxHashSet<Box<[i64]>>,
    /// How many tuples it has looked at.
    seen: usize,
}

impl Choice {
    fn clear(&mut self) {
        self.taken.clear();
        self.seen = 0;
    }
}

/// Where a search stands: the next row to look at and the range of rows that it may find.
#[derive(Clone, Copy)]
pub enum Cursor {
    /// Every row of the range, from the first to the last.
    Rows { next: usize, end: usize },
    /// The rows of a chain of an index, from the newest to the oldest.
    Chain { next: Option<usize>, start: usize, end: usize },
}

/// An index of a relation, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexId(usize);

impl Relation {
    pub fn new(arity: usize, eqrel: bool) -> Self {
        Relation {
            arity,
            rows: Vec::new(),
            count: 0,
            delta: 0,
            end: 0,
            indexes: vec![Index::new(0..arity)],
            classes: eqrel.then(Equivalence::default),
            choices: Vec::new(),
            given: Vec::new(),
            rounds: Vec::new(),
        }
    }

    /// The relation with groups of columns on which no two tuples agree.
    pub fn choosing(mut self, choices: &[Vec<usize>]) -> Self {
        let choice = |columns: &Vec<usize>| Choice { columns: columns[..].into(), ..Choice::default() };
        self.choices = choices.iter().map(choice).collect();
        self
    }

    /// Add a tuple unless it agrees with another on the columns of a choice.
    pub fn choose(&mut self, tuple: &[i64]) -> Result<(), Fault> {
        let (rows, arity, count) = (&self.rows, self.arity, self.count);
        let mut free = true;
        for choice in &mut self.choices {
            while choice.seen < count {
                let row = &rows[choice.seen * arity..][..arity];
                choice.taken.insert(choice.columns.iter().map(|&c| row[c]).collect());
                choice.seen += 1;
            }
            let part: Box<[i64]> = choice.columns.iter().map(|&c| tuple[c]).collect();
            free &= !choice.taken.contains(&part);
        }
        if free {
            self.append(tuple)?;
        }
        Ok(())
    }

    /// Have these tuples, end to end, in place of those there are; all of them are old ones.
    pub fn replace(&mut self, words: Vec<i64>) -> Result<(), Fault> {
        let count = self.count;
        self.clear();
        (self.rows, self.count) = (words, count);
        self.settle();
        Ok(())
    }

    /// Delete tuples.
    pub fn remove(&mut self, deleted: &FxHashSet<Box<[i64]>>) {
        let old = std::mem::take(&mut self.rows);
        let (mut count, mut delta, mut end) = (0, 0, 0);
        let mut rounds = self.rounds.iter_mut().peekable();
        for row in 0..self.count {
            while let Some(first) = rounds.next_if(|first| **first <= row) {
                *first = count;
            }
            let tuple = &old[row * self.arity..][..self.arity];
            if !deleted.contains(tuple) {
                self.rows.extend_from_slice(tuple);
                count += 1;
                delta += usize::from(row < self.delta);
                end += usize::from(row < self.end);
            }
        }
        rounds.for_each(|first| *first = count);
        (self.count, self.delta, self.end) = (count, delta, end);
        self.indexes.iter_mut().for_each(Index::clear);
        self.choices.iter_mut().for_each(Choice::clear);
    }

    /// The round in which a tuple was found, by its number.
    pub fn round(&self, row: usize) -> usize {
        self.rounds.partition_point(|&first| first <= row)
    }

    /// Whether it is closed under equivalence.
    pub fn is_eqrel(&self) -> bool {
        self.classes.is_some()
    }

    /// The index on these columns, made if it does not exist.
    pub fn index_on(&mut self, columns: &[usize]) -> IndexId {
        let found = self.indexes.iter().position(|index| index.columns() == columns);
        IndexId(found.unwrap_or_else(|| {
            self.indexes.push(Index::new(columns.iter().copied()));
            self.indexes.len() - 1
        }))
    }

    pub fn tuple(&self, row: usize) -> &[i64] {
        &self.rows[row * self.arity..][..self.arity]
    }

    pub fn tuples(&self) -> impl Iterator<Item = &[i64]> + Clone {
        (0..self.count).map(|row| self.tuple(row))
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        let given = self.given.capacity() * size_of::<[i64; 2]>();
        self.rows.capacity() * size_of::<i64>() + given + self.indexes.iter().map(Index::bytes).sum::<usize>()
    }

    pub fn clear(&mut self) {
        self.given.clear();
        self.rounds.clear();
        if self.count > 0 {
            self.rows.clear();
            (self.count, self.delta, self.end) = (0, 0, 0);
            for index in &mut self.indexes {
                index.clear();
            }
            self.choices.iter_mut().for_each(Choice::clear);
            if let Some(classes) = &mut self.classes {
                classes.clear();
            }
        }
    }

    /// Add a fact: a tuple that no rule has derived.
    pub fn give(&mut self, tuple: &[i64]) -> Result<(), Fault> {
        match (&self.classes, tuple) {
            (Some(_), &[a, b]) => self.given.push([a, b]),
            _ => {
                self.append(tuple)?;
            }
        }
        Ok(())
    }

    /// The facts that it was given, before any rule has run.
    pub fn facts(&self) -> impl Iterator<Item = &[i64]> {
        self.tuples().chain(self.given.iter().map(|pair| pair.as_slice()))
    }

    /// Close an `eqrel` over its facts.
    pub fn close(&mut self, budget: &mut Budget) -> Result<(), Fault> {
        if self.given.is_empty() {
            return Ok(());
        }
        std::mem::take(&mut self.given).iter().try_for_each(|pair| self.insert(pair, budget))
    }

    /// Add a derived tuple unless it is there; an `eqrel` relation is closed at once.
    pub fn insert(&mut self, tuple: &[i64], budget: &mut Budget) -> Result<(), Fault> {
        let Some(mut classes) = self.classes.take() else {
            return if self.append(tuple)? { budget.derive() } else { Ok(()) };
        };
        let closed = classes.unite(tuple[0], tuple[1], |x, y| {
            if self.append(&[x, y])? {
                budget.derive()?;
            }
            if budget.is_over() {
                budget.check(self.bytes())?;
            }
            Ok(())
        });
        self.classes = Some(classes);
        closed
    }

    /// Add a tuple unless it is there.
    fn append(&mut self, tuple: &[i64]) -> Result<bool, Fault> {
        let new = if self.count < FEW {
            !self.tuples().any(|old| old == tuple)
        } else {
            let set = &mut self.indexes[0];
            set.cover(&self.rows, self.arity, self.count)?;
            set.insert(&self.rows, self.arity, tuple)?
        };
        if new {
            self.rows.try_reserve(tuple.len()).map_err(|_| Fault::OutOfMemory)?;
            self.rows.extend_from_slice(tuple);
            self.count += 1;
        }
        Ok(new)
    }

    /// Make all tuples visible as old ones: the relation is complete.
    pub fn settle(&mut self) {
        (self.delta, self.end) = (self.count, self.count);
    }

    /// Make all tuples the delta of the first round.
    pub fn restart(&mut self) {
        (self.delta, self.end) = (0, self.count);
    }

    /// The number of the first tuple of the delta.
    pub fn delta_start(&self) -> usize {
        self.delta
    }

    /// Make all tuples visible, those from number `row` on as the delta. False if there are none.
    pub fn show_since(&mut self, row: usize) -> bool {
        (self.delta, self.end) = (row, self.count);
        self.delta < self.end
    }

    /// Start the next round: new tuples become the delta. False if there are none.
    pub fn advance(&mut self) -> bool {
        self.rounds.push(self.end);
        (self.delta, self.end) = (self.end, self.count);
        self.delta < self.end
    }

    fn range(&self, version: Version) -> (usize, usize) {
        match version {
            Version::All => (0, self.end),
            Version::Delta => (self.delta, self.end),
            Version::Old => (0, self.delta),
        }
    }

    /// True if a scan of this version finds nothing.
    pub fn is_void(&self, version: Version) -> bool {
        let (start, end) = self.range(version);
        start == end
    }

    /// Start a search for the tuples with `key` in the columns of an index; None: every tuple.
    pub fn search(&mut self, version: Version, index: Option<IndexId>, key: &[i64]) -> Result<Cursor, Fault> {
        let (start, end) = self.range(version);
        Ok(match index {
            Some(IndexId(index)) if end - start >= FEW => {
                let index = &mut self.indexes[index];
                index.cover(&self.rows, self.arity, end)?;
                Cursor::Chain { next: index.newest(&self.rows, self.arity, key), start, end }
            }
            _ => Cursor::Rows { next: start, end },
        })
    }

    /// The next row that a search finds.
    pub fn find(&self, cursor: &mut Cursor, index: Option<IndexId>, key: &[i64]) -> Option<usize> {
        match cursor {
            Cursor::Rows { next, end } => {
                let columns = index.map_or(&[][..], |index| self.indexes[index.0].columns());
                while next < end {
                    let row = *next;
                    *next += 1;
                    let tuple = self.tuple(row);
                    if columns.iter().zip(key).all(|(&column, &word)| tuple[column] == word) {
                        return Some(row);
                    }
                }
                None
            }
            Cursor::Chain { next, start, end } => {
                let chain = &self.indexes[index?.0];
                while let Some(row) = *next {
                    if row < *start {
                        return None;
                    }
                    *next = chain.previous(row);
                    if row < *end {
                        return Some(row);
                    }
                }
                None
            }
        }
    }
}
