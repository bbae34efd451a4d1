//! Relations: sets of tuples in the order in which they were found.
//!
//! A tuple's life. It is inserted as *new*: no scan sees it yet. `advance` makes the new tuples the *delta*
//! of the next round, and the last delta *old*. As rows are only appended, the two are row ranges,
//! `0 .. delta .. end`; the new tuples are in the sink.

pub(crate) mod equivalence;
pub(crate) mod index;
pub(crate) mod places;
pub(crate) mod rows;
pub(crate) mod set;
pub(crate) mod sink;
pub(crate) mod table;

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::budget::Budget;
use crate::error::Fault;
use crate::relation::index::{Entries, Index, Part, GONE};
use crate::relation::places::Places;
use crate::relation::rows::Rows;
use crate::relation::set::packed;
use crate::relation::sink::Sink;
use crate::relation::table::Table;
use crate::values::Values;

/// Fewer rows are scanned, which is faster than building and searching an index.
const FEW: usize = 16;

/// Which tuples a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    All,
    Delta,
    Old,
}

/// The tuples of all relations, by `RelationId`, and the values in them.
#[derive(Clone)]
pub struct Database {
    pub relations: Vec<Relation>,
    pub values: Values,
}

#[derive(Clone)]
pub struct Relation {
    arity: usize,
    rows: Rows,
    delta: usize,
    end: usize,
    /// Made for scans.
    indexes: Vec<Index>,
    /// Takes new tuples.
    pub sink: Sink,
    /// Groups of columns on which no two tuples agree.
    choices: Vec<Choice>,
    /// Facts of an `eqrel`, which is closed over them when an evaluation starts.
    given: Vec<[i64; 2]>,
    /// The number of the first tuple of each round but the first. A tuple follows from tuples of
    /// earlier rounds.
    rounds: Vec<usize>,
}

/// Which of the rows of a relation are deleted, and which are moved to other rounds. A round has a label; that of each
/// round that there is, is its number times `scale`.
#[derive(Default)]
pub struct Order {
    /// In their order.
    pub gone: Vec<u32>,
    /// Labels and rows, in their order.
    pub moved: Vec<(u32, u32)>,
    /// The labels of all rounds from now on, in their order.
    pub labels: Vec<u32>,
    pub scale: u32,
}

impl Order {
    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        (self.gone.capacity() + self.moved.capacity() * 2 + self.labels.capacity()) * size_of::<u32>()
    }
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

/// What a search finds.
pub enum Matches<'a> {
    /// The rows of a range that have the key in the columns of an index, which is for the reader to see.
    Among(usize, usize, IndexId),
    Every(usize, usize),
    Entries(Entries<'a>),
}

/// An index of a relation, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexId(usize);

/// The tuples of a relation.
pub struct Tuples<'a> {
    words: Cow<'a, [i64]>,
    arity: usize,
    count: usize,
}

impl Tuples<'_> {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[i64]> + Clone {
        (0..self.count).map(|row| self.tuple(row))
    }

    pub fn tuple(&self, row: usize) -> &[i64] {
        &self.words[row * self.arity..][..self.arity]
    }
}

impl Relation {
    pub fn new(arity: usize, eqrel: bool) -> Self {
        Relation {
            arity,
            rows: Rows::default(),
            delta: 0,
            end: 0,
            indexes: Vec::new(),
            sink: Sink::new(arity, eqrel),
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
        let mut free = true;
        for choice in &mut self.choices {
            while choice.seen < self.sink.count() {
                let at = choice.seen * self.arity;
                let part = choice.columns.iter().map(|&column| self.sink.word(&self.rows, at + column));
                choice.taken.insert(part.collect());
                choice.seen += 1;
            }
            let part: Box<[i64]> = choice.columns.iter().map(|&c| tuple[c]).collect();
            free &= !choice.taken.contains(&part);
        }
        if free {
            self.sink.append(&self.rows, tuple)?;
        }
        Ok(())
    }

    /// Have these tuples, end to end, in place of those there are; all of them are old ones.
    pub fn replace(&mut self, words: &[i64]) -> Result<(), Fault> {
        if self.arity == 0 {
            return self.settle();
        }
        self.clear();
        for tuple in words.chunks_exact(self.arity) {
            self.sink.append(&self.rows, tuple)?;
        }
        self.settle()
    }

    /// Delete tuples that are not new.
    pub fn remove(&mut self, deleted: &FxHashSet<Box<[i64]>>) -> Result<(), Fault> {
        let (mut words, mut count, mut delta) = (Vec::new(), 0, 0);
        let mut rounds = std::mem::take(&mut self.rounds);
        let mut starts = rounds.iter_mut().peekable();
        for (row, tuple) in self.tuples().iter().enumerate() {
            while let Some(first) = starts.next_if(|first| **first <= row) {
                *first = count;
            }
            if !deleted.contains(tuple) {
                words.extend_from_slice(tuple);
                count += 1;
                delta += usize::from(row < self.delta);
            }
        }
        starts.for_each(|first| *first = count);
        self.replace(&words)?;
        (self.rounds, self.delta) = (rounds, delta);
        Ok(())
    }

    /// Delete tuples that no scan has seen yet, and for which `is_gone` holds.
    pub fn forget(&mut self, is_gone: impl Fn(&[i64]) -> bool) -> Result<(), Fault> {
        self.choices.iter_mut().for_each(Choice::clear);
        self.sink.forget(&self.rows, is_gone)
    }

    /// Put all tuples into the set, for `contains`.
    pub fn cover(&mut self) -> Result<(), Fault> {
        self.sink.cover(&self.rows)
    }

    /// Whether a tuple is there, new or not.
    pub fn has_tuple(&mut self, tuple: &[i64]) -> Result<bool, Fault> {
        self.sink.cover(&self.rows)?;
        Ok(self.sink.contains(&self.rows, tuple))
    }

    /// A place for each tuple that scans see.
    pub fn places(&mut self) -> Result<Places, Fault> {
        self.sink.cover(&self.rows)?;
        Ok(Places::new(self.sink.sets(), self.end))
    }

    /// The place of a tuple; one that no scan has seen may have one, too.
    #[inline]
    pub fn place(&self, places: &Places, tuple: &[i64]) -> Option<usize> {
        match self.sink.sets() {
            Some(sets) => places.place(sets, packed(tuple)?),
            None => self.sink.row(&self.rows, tuple).filter(|&row| row < self.end),
        }
    }

    /// The places of the tuples that scans see, in their order.
    pub fn by_row<'r>(&'r self, places: &'r Places) -> impl Iterator<Item = usize> + 'r {
        let sets = self.sink.sets();
        (0..self.end).map(move |row| places.of_row(sets, &self.rows, self.arity, row))
    }

    /// One in `each` of the tuples that scans see, with the same indexes.
    pub fn sample(&self, each: usize) -> Result<Relation, Fault> {
        let mut sample = Relation::new(self.arity, false);
        sample.indexes.extend(self.indexes.iter().map(|index| Index::new(index.columns().iter().copied())));
        let mut tuple = vec![0; self.arity];
        for first in (0..self.end).step_by(each) {
            // Steps differ, as what is found together often comes in a period.
            let row = first + set::hash([first as i64].into_iter()) as usize % each;
            if row < self.end {
                tuple.iter_mut().enumerate().for_each(|(column, word)| *word = self.word(row, column));
                sample.sink.push(&tuple)?;
            }
        }
        sample.settle()?;
        Ok(sample)
    }

    /// How many tuples scans see.
    pub fn visible(&self) -> usize {
        self.end
    }

    pub fn arity(&self) -> usize {
        self.arity
    }

    /// About how many bytes `rearrange` takes until it is done.
    pub fn rearranging(&self) -> usize {
        self.rows.bytes() + self.end * size_of::<u32>()
    }

    /// Delete tuples and move others, of those that scans see; all of them are old ones then. Returns the first number
    /// now of a tuple of the rows from `since` on.
    pub fn rearrange(&mut self, order: &Order, since: usize) -> Result<usize, Fault> {
        self.choices.iter_mut().for_each(Choice::clear);
        self.sink.cover(&self.rows)?;
        for index in &mut self.indexes {
            index.catch_up(&self.rows, self.arity, self.end)?;
        }
        if !order.moved.is_empty() {
            return self.reorder(order, since);
        }
        let Order { gone, labels, .. } = order;
        let before = |row: usize| row - gone.partition_point(|&gone| (gone as usize) < row);
        let numbers = if self.sink.sets().is_none() || self.indexes.iter().any(Index::has_rows) {
            let mut numbers: Vec<u32> = Vec::with_capacity(self.end);
            let mut next = gone.iter().copied().peekable();
            let mut count = 0;
            for row in 0..self.end as u32 {
                let is_gone = next.next_if_eq(&row).is_some();
                numbers.push(if is_gone { GONE } else { count });
                count += u32::from(!is_gone);
            }
            numbers
        } else {
            Vec::new()
        };
        let end = self.end - gone.len();
        self.renumber(gone, &numbers, end);
        self.rows.delete(self.arity, gone);
        let round = |i: usize| self.rounds.get(i).map_or(end, |&first| before(first.min(self.end)));
        self.rounds = (0..labels.len().saturating_sub(1)).map(round).collect();
        let since = before(since.min(self.end));
        (self.delta, self.end) = (end, end);
        Ok(since)
    }

    /// Delete rows from the set and the indexes, and give others the numbers that they have in `numbers`, if these are
    /// needed. So many are left.
    fn renumber(&mut self, gone: &[u32], numbers: &[u32], left: usize) {
        self.sink.rearrange(&self.rows, gone, numbers);
        for index in &mut self.indexes {
            index.rearrange(&self.rows, self.arity, gone, numbers, left);
        }
    }

    /// As `rearrange`, with tuples that move.
    fn reorder(&mut self, order: &Order, since: usize) -> Result<usize, Fault> {
        let Order { gone, moved, labels, scale } = order;
        const ELSEWHERE: u32 = GONE - 1;
        let mut numbers = vec![0; self.end];
        gone.iter().for_each(|&row| numbers[row as usize] = GONE);
        moved.iter().for_each(|&(_, row)| numbers[row as usize] = ELSEWHERE);
        let mut rows = self.rows.alike((self.end - gone.len()) * self.arity)?;
        let (mut rounds, mut count, mut moved) = (Vec::with_capacity(labels.len()), 0, moved.as_slice());
        let mut put = |row: usize, number: &mut u32| {
            rows.extend_from(&self.rows, row * self.arity, (row + 1) * self.arity);
            *number = count as u32;
            count += 1;
            count
        };
        let mut end = 0;
        for (i, &label) in labels.iter().enumerate() {
            if i > 0 {
                rounds.push(end);
            }
            let round = (label / scale) as usize;
            if label % scale == 0 && round <= self.rounds.len() {
                let first = round.checked_sub(1).map_or(0, |before| self.rounds[before]).min(self.end);
                let last = self.rounds.get(round).copied().unwrap_or(self.end).min(self.end);
                for (row, number) in (first..last).zip(&mut numbers[first..]) {
                    if *number < ELSEWHERE {
                        end = put(row, number);
                    }
                }
            }
            let (now, later) = moved.split_at(moved.partition_point(|each| each.0 <= label));
            for &(_, row) in now {
                end = put(row as usize, &mut numbers[row as usize]);
            }
            moved = later;
        }
        self.renumber(gone, &numbers, end);
        (self.rows, self.rounds, self.delta, self.end) = (rows, rounds, end, end);
        let first = numbers[since.min(numbers.len())..].iter().min(); // those deleted are last
        Ok(first.map_or(end, |&first| end.min(first as usize)))
    }

    /// The number of the first tuple of each round but the first.
    pub fn rounds(&self) -> &[usize] {
        &self.rounds
    }

    /// Whether it is closed under equivalence.
    pub fn is_eqrel(&self) -> bool {
        self.sink.is_eqrel()
    }

    /// The index on these columns, made if it does not exist.
    pub fn index_on(&mut self, columns: &[usize]) -> IndexId {
        let found = self.indexes.iter().position(|index| index.columns() == columns);
        IndexId(found.unwrap_or_else(|| {
            self.indexes.push(Index::new(columns.iter().copied()));
            self.indexes.len() - 1
        }))
    }

    /// The columns of an index.
    pub fn indexed(&self, IndexId(index): IndexId) -> &[usize] {
        self.indexes[index].columns()
    }

    /// Have these tuples, which are distinct, in place of those there are; all of them are old ones.
    pub fn fill(&mut self, tuples: impl Iterator<Item = impl AsRef<[i64]>>) -> Result<(), Fault> {
        self.clear();
        for tuple in tuples {
            self.sink.push(tuple.as_ref())?;
        }
        self.settle()
    }

    /// Copy a tuple that scans see.
    pub fn tuple(&self, row: usize) -> Vec<i64> {
        (0..self.arity).map(|column| self.word(row, column)).collect()
    }

    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    #[inline]
    pub fn word(&self, row: usize, column: usize) -> i64 {
        self.rows.word(row * self.arity + column)
    }

    /// Copy a tuple, which may be new.
    pub fn copy_tuple(&self, row: usize, to: &mut [i64]) {
        let words = to.iter_mut().enumerate();
        words.for_each(|(column, word)| *word = self.sink.word(&self.rows, row * self.arity + column));
    }

    /// The number of tuples, including new ones.
    pub fn len(&self) -> usize {
        self.sink.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All tuples, new ones too.
    pub fn tuples(&self) -> Tuples<'_> {
        let fresh = self.sink.fresh();
        let words = match &self.rows {
            Rows::Wide(words) if fresh.len() == 0 => Cow::Borrowed(words.as_slice()),
            rows => {
                let rows = (0..rows.len()).map(|at| rows.word(at));
                rows.chain((0..fresh.len()).map(|at| fresh.word(at))).collect()
            }
        };
        Tuples { words, arity: self.arity, count: self.sink.count() }
    }

    /// The words of all tuples, where they have 32 bits and none is new.
    pub fn narrow(&self) -> Option<&[i32]> {
        match &self.rows {
            Rows::Narrow(words) if self.sink.fresh().len() == 0 => Some(words),
            _ => None,
        }
    }

    /// All tuples column by column, new ones too.
    pub fn columns(&self) -> Vec<Rows> {
        let both = [&self.rows, self.sink.fresh()];
        let column = |column: usize| match both {
            [Rows::Narrow(words), Rows::Narrow(fresh)] => {
                let mut found = Vec::with_capacity(self.len());
                for words in [words, fresh] {
                    found.extend(words.iter().skip(column).step_by(self.arity));
                }
                Rows::Narrow(found)
            }
            _ => {
                let mut found = Vec::with_capacity(self.len());
                for rows in both {
                    found.extend((column..rows.len()).step_by(self.arity).map(|at| rows.word(at)));
                }
                Rows::Wide(found)
            }
        };
        (0..self.arity).map(column).collect()
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        let given = self.given.capacity() * size_of::<[i64; 2]>();
        let indexes = self.indexes.iter().map(Index::bytes).sum::<usize>();
        self.rows.bytes() + self.sink.bytes() + given + indexes
    }

    pub fn clear(&mut self) {
        self.given.clear();
        self.rounds.clear();
        if self.sink.count() > 0 {
            self.rows.clear();
            (self.delta, self.end) = (0, 0);
            self.indexes.iter_mut().for_each(Index::clear);
            self.choices.iter_mut().for_each(Choice::clear);
            self.sink.clear();
        }
    }

    /// Make room for so many facts.
    pub fn reserve(&mut self, count: usize) -> Result<(), Fault> {
        self.sink.reserve(count)
    }

    /// Make room for the rows alone of so many facts.
    pub fn reserve_rows(&mut self, count: usize) -> Result<(), Fault> {
        self.sink.reserve_rows(count)
    }

    /// Add a fact: a tuple that no rule has derived.
    pub fn give(&mut self, tuple: &[i64]) -> Result<(), Fault> {
        match *tuple {
            [a, b] if self.sink.is_eqrel() => self.given.push([a, b]),
            _ => {
                self.sink.append(&self.rows, tuple)?;
            }
        }
        Ok(())
    }

    /// How many facts of an `eqrel` wait to be closed over.
    pub fn waiting(&self) -> usize {
        self.given.len()
    }

    /// Take facts back that were given last, so that there are so many tuples, and so many facts that wait.
    pub fn shorten(&mut self, count: usize, waiting: usize) {
        self.given.truncate(waiting);
        self.sink.shorten(&self.rows, count);
    }

    /// The facts that it was given, before any rule has run.
    pub fn facts(&self) -> Vec<Vec<i64>> {
        let tuples = self.tuples();
        tuples.iter().map(<[i64]>::to_vec).chain(self.given.iter().map(|pair| pair.to_vec())).collect()
    }

    /// Close an `eqrel` over its facts.
    pub fn close(&mut self, budget: &mut Budget) -> Result<(), Fault> {
        if self.given.is_empty() {
            return Ok(());
        }
        let given = std::mem::take(&mut self.given);
        given.iter().try_for_each(|pair| self.sink.insert(&self.rows, pair, budget))
    }

    /// Take packed tuples that are new, and are in the sets of this relation's `sink`. No scan sees
    /// them yet.
    pub fn take<'k>(
        &mut self,
        sink: &mut Sink,
        count: usize,
        runs: impl Iterator<Item = &'k [u64]>,
    ) -> Result<(), Fault> {
        sink.drain_packed(&mut self.rows, count, runs)
    }

    /// Make the new tuples visible; those from number `delta` on are the delta.
    fn show(&mut self, delta: usize) -> Result<(), Fault> {
        if self.end < self.sink.count() {
            let narrow = self.rows.is_narrow();
            self.sink.drain(&mut self.rows)?;
            if narrow && !self.rows.is_narrow() {
                self.indexes.iter_mut().for_each(Index::clear);
            }
            self.end = self.sink.count();
        }
        if delta < self.delta {
            self.indexes.iter_mut().for_each(|index| index.mark(&self.rows, self.arity, delta));
        }
        self.delta = delta;
        Ok(())
    }

    /// Make all tuples visible as old ones: the relation is complete.
    #[inline]
    pub fn settle(&mut self) -> Result<(), Fault> {
        let count = self.sink.count();
        if self.delta == count {
            return Ok(()); // it is already
        }
        self.show(count)
    }

    /// Make all tuples the delta of the first round.
    pub fn restart(&mut self) -> Result<(), Fault> {
        self.show(0)
    }

    /// The number of the first tuple of the delta.
    pub fn delta_start(&self) -> usize {
        self.delta
    }

    /// Make all tuples visible, those from number `row` on as the delta. False if there are none.
    pub fn show_since(&mut self, row: usize) -> Result<bool, Fault> {
        self.show(row)?;
        Ok(self.delta < self.end)
    }

    /// Start a round whose delta are the tuples from number `row` on. False if there are none.
    pub fn start_at(&mut self, row: usize) -> Result<bool, Fault> {
        self.rounds.push(row);
        self.show_since(row)
    }

    /// Start the next round: new tuples become the delta. False if there are none.
    pub fn advance(&mut self) -> Result<bool, Fault> {
        self.start_at(self.end)
    }

    fn range(&self, version: Version) -> (usize, usize) {
        match version {
            Version::All => (0, self.end),
            Version::Delta => (self.delta, self.end),
            Version::Old => (0, self.delta),
        }
    }

    /// The words of a version in one column.
    pub fn column(&self, version: Version, column: usize) -> impl ExactSizeIterator<Item = i64> + '_ {
        let (start, end) = self.range(version);
        (start..end).map(move |row| self.word(row, column))
    }

    /// How many tuples a scan of this version finds.
    pub fn count(&self, version: Version) -> usize {
        let (start, end) = self.range(version);
        end - start
    }

    /// How many tuples an index has yet to be made of for a search, in a rule whose `head` this may be.
    pub fn uncovered(&self, version: Version, IndexId(index): IndexId, head: bool) -> usize {
        if !head && self.is_whole(version, self.indexes[index].columns().len()) {
            return 0;
        }
        self.indexes[index].uncovered(self.end)
    }

    /// About how many tuples have the key of one of them.
    pub fn share(&mut self, IndexId(index): IndexId) -> f64 {
        self.indexes[index].share(&self.rows, self.arity, self.end)
    }

    /// Bring up to date what a search needs, in a rule whose `head` this may be: the index, or the set that keeps
    /// tuples distinct. The head's is not there while the rule runs.
    pub fn prepare(&mut self, version: Version, IndexId(index): IndexId, head: bool) -> Result<(), Fault> {
        if !head && self.is_whole(version, self.indexes[index].columns().len()) {
            self.sink.cover(&self.rows)?;
        } else if self.count(version) >= FEW {
            self.indexes[index].cover(&self.rows, self.arity, self.delta, self.end)?;
        }
        Ok(())
    }

    /// Whether a search with so many known columns looks for a tuple that the set has, if any.
    #[inline]
    pub fn is_whole(&self, version: Version, columns: usize) -> bool {
        columns == self.arity
            && version == Version::All
            && self.sink.count() == self.end
            && self.sink.fresh().len() == 0
    }

    /// Whether a tuple is in the set, which is up to date.
    #[inline]
    pub fn contains(&self, tuple: &[i64]) -> bool {
        self.sink.contains(&self.rows, tuple)
    }

    /// The tables of an index, so many, for `cover_in`, and then for `unite`.
    pub fn divide(&mut self, IndexId(index): IndexId, parts: usize) -> Vec<Table> {
        self.indexes[index].divide(&self.rows, self.arity, parts)
    }

    /// Bring one of so many tables of an index up to date.
    pub fn cover_in(
        &self,
        IndexId(index): IndexId,
        table: &mut Table,
        part: (usize, usize),
    ) -> Result<(), Fault> {
        self.indexes[index].cover_in(table, part, &self.rows, self.arity, self.delta, self.end)
    }

    /// Give an index its tables back.
    pub fn unite(&mut self, IndexId(index): IndexId, tables: Vec<Table>) {
        self.indexes[index].unite(tables, self.end);
    }

    /// The tuples with `key` in the columns of a prepared index; None: every tuple.
    #[inline]
    pub fn search(&self, version: Version, index: Option<IndexId>, key: &[i64]) -> Matches<'_> {
        let (start, end) = self.range(version);
        let Some(IndexId(index)) = index else {
            return Matches::Every(start, end);
        };
        if end - start < FEW {
            return Matches::Among(start, end, IndexId(index));
        }
        let part = match version {
            Version::All => Part::All,
            Version::Delta => Part::Delta(self.delta),
            Version::Old => Part::Old(self.delta),
        };
        Matches::Entries(self.indexes[index].entries(&self.rows, self.arity, key, part))
    }

    /// Whether a row has a key in the columns of an index.
    #[inline]
    pub fn has(&self, row: usize, IndexId(index): IndexId, key: &[i64]) -> bool {
        self.indexes[index].columns().iter().zip(key).all(|(&column, &word)| self.word(row, column) == word)
    }
}
