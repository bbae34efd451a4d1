//! An index of a relation on some of its columns: for each key its entries side by side, in the order of their
//! rows. An entry is the number of a row or, where one other narrow column is left, its word.

use crate::error::Fault;
use crate::relation::rows::{narrow, pack, Rows};
use crate::relation::set::hash;
use crate::relation::table::Table;

/// So many rows tell how many have the same key.
const SAMPLE: usize = 1 << 10;

/// The number of a row that is deleted.
pub const GONE: u32 = u32::MAX;

#[derive(Clone)]
pub struct Index {
    columns: Box<[usize]>,
    table: Table,
    /// In place of the table several ones, each for one thread.
    parts: Vec<Table>,
    covered: usize,
    form: Form,
    /// The number of rows from which the share of a key was estimated, and that share.
    sampled: (usize, f64),
}

/// How keys and entries are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Keys are exact; entries are words of this column.
    Word(usize),
    /// Keys are exact; entries are rows.
    Row,
    /// Keys are hashes.
    Hashed,
}

/// The entries of a key.
#[derive(Clone, Copy)]
pub enum Entries<'a> {
    Rows(&'a [u32]),
    /// The words of the only column that is not bound.
    Words(&'a [u32]),
}

impl Index {
    pub fn new(columns: impl IntoIterator<Item = usize>) -> Self {
        Index {
            columns: columns.into_iter().collect(),
            table: Table::default(),
            parts: Vec::new(),
            covered: 0,
            form: Form::Row,
            sampled: (0, 0.0),
        }
    }

    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub fn clear(&mut self) {
        self.table.clear();
        self.parts.clear();
        self.covered = 0;
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.parts.iter().map(Table::bytes).sum::<usize>()
    }

    /// How many of the rows up to `end` are not covered.
    pub fn uncovered(&self, end: usize) -> usize {
        end - self.covered.min(end)
    }

    /// About how many of the rows up to `end` have the key of one of them, from how often two rows of a sample
    /// have the same.
    pub fn share(&mut self, rows: &Rows, arity: usize, end: usize) -> f64 {
        if end < self.sampled.0 || end >= self.sampled.0 * 2 {
            let size = end.min(SAMPLE);
            let key = |i: usize| {
                let tuple = i * end / size * arity;
                hash(self.columns.iter().map(|&column| rows.word(tuple + column)))
            };
            let mut keys: Vec<u64> = (0..size).map(key).collect();
            keys.sort_unstable();
            let groups = keys.chunk_by(|a, b| a == b);
            let pairs: usize = groups.map(|group| group.len() * (group.len() - 1)).sum();
            self.sampled = (end, pairs as f64 / (size * (size - 1)).max(1) as f64);
        }
        (self.sampled.1 * end as f64).max(1.0)
    }

    /// Index the rows up to `end`; those from `delta` on are the delta.
    pub fn cover(&mut self, rows: &Rows, arity: usize, delta: usize, end: usize) -> Result<(), Fault> {
        if self.covered >= end {
            return Ok(());
        }
        if self.parts.is_empty() {
            let mut table = std::mem::take(&mut self.table);
            let result = self.begin(rows, arity).cover_in(&mut table, (0, 1), rows, arity, delta, end);
            self.table = table;
            result?;
        } else {
            let mut tables = std::mem::take(&mut self.parts);
            let parts = tables.len();
            let result = tables
                .iter_mut()
                .enumerate()
                .try_for_each(|(part, table)| self.cover_in(table, (part, parts), rows, arity, delta, end));
            self.parts = tables;
            result?;
        }
        self.covered = end;
        Ok(())
    }

    /// Have so many tables, which are taken out to be covered by several threads.
    pub fn divide(&mut self, rows: &Rows, arity: usize, parts: usize) -> Vec<Table> {
        if self.parts.len() != parts {
            self.clear();
            self.parts.resize_with(parts, Table::default);
        }
        self.begin(rows, arity);
        std::mem::take(&mut self.parts)
    }

    /// Take tables back that cover the rows up to `end`.
    pub fn unite(&mut self, parts: Vec<Table>, end: usize) {
        (self.parts, self.covered) = (parts, end);
    }

    /// See how keys and entries are written, before the first row.
    fn begin(&mut self, rows: &Rows, arity: usize) -> &Self {
        if self.covered == 0 {
            self.form = match (&*self.columns, arity, rows.is_narrow()) {
                (&[column], 2, true) => Form::Word(1 - column),
                (&[_], _, _) | (&[_, _], _, true) => Form::Row,
                _ => Form::Hashed,
            };
        }
        self
    }

    /// Cover the rows up to `end` in one table of so many: those whose keys are for it.
    pub fn cover_in(
        &self,
        table: &mut Table,
        (part, parts): (usize, usize),
        rows: &Rows,
        arity: usize,
        delta: usize,
        end: usize,
    ) -> Result<(), Fault> {
        let agree = |first: usize, row: usize| {
            self.columns.iter().all(|&c| rows.word(first * arity + c) == rows.word(row * arity + c))
        };
        let mut row = self.covered;
        while row < end {
            // Rows often come in runs with the same key. Old rows and rows of the delta are apart.
            let (first, last) = (row, if row < delta { end.min(delta) } else { end });
            row += 1;
            while row < last && agree(first, row) {
                row += 1;
            }
            let key = self.key(|i| rows.word(first * arity + self.columns[i])).unwrap_or_default();
            if parts > 1 && part_of(key, parts) != part {
                continue;
            }
            let found = table.find(key, |other| self.form != Form::Hashed || agree(other as usize, first));
            let since = if first >= delta { delta as u32 } else { 0 };
            let entry = |row: usize| match self.form {
                Form::Word(column) => rows.word(row * arity + column) as i32 as u32,
                Form::Row | Form::Hashed => row as u32,
            };
            table.add(found, key, since, (first..row).map(entry))?;
        }
        Ok(())
    }

    /// Let the delta start at a row that is covered already.
    pub fn mark(&mut self, rows: &Rows, arity: usize, delta: usize) {
        for pass in 0..2 {
            for row in delta..self.covered {
                let tuple = row * arity;
                let Some(key) = self.key(|i| rows.word(tuple + self.columns[i])) else { continue };
                let group = self.table_of(key).find(key, |first| {
                    let first = first as usize * arity;
                    self.form != Form::Hashed
                        || self.columns.iter().all(|&c| rows.word(first + c) == rows.word(tuple + c))
                });
                let table = match self.parts.len() {
                    0 => &mut self.table,
                    parts => &mut self.parts[part_of(key, parts)],
                };
                if let Some(group) = group.map(|group| &mut table.groups[group]) {
                    if pass == 0 {
                        (group.since, group.old) = (delta as u32, group.len);
                    } else {
                        group.old -= 1;
                    }
                }
            }
        }
    }

    /// Whether entries are rows.
    pub fn has_rows(&self) -> bool {
        self.covered > 0 && !matches!(self.form, Form::Word(_))
    }

    /// Delete rows, which are `gone`, so that so many are left; all have the numbers in `numbers`, which are needed only
    /// where `has_rows`. All rows are covered, or none.
    pub fn rearrange(&mut self, rows: &Rows, arity: usize, gone: &[u32], numbers: &[u32], left: usize) {
        if self.covered == 0 {
            return;
        }
        self.covered = left;
        let mut tables = std::mem::take(&mut self.parts);
        if tables.is_empty() {
            tables.push(std::mem::take(&mut self.table));
        }
        let mut words = vec![Vec::new(); tables.len()];
        if let Form::Word(column) = self.form {
            for &row in gone {
                let tuple = row as usize * arity;
                let Some(key) = self.key(|i| rows.word(tuple + self.columns[i])) else { continue };
                let part = part_of(key, tables.len());
                if let Some(group) = tables[part].find(key, |_| true) {
                    words[part].push((group, rows.word(tuple + column) as i32 as u32));
                }
            }
        }
        for (table, mut words) in tables.iter_mut().zip(words) {
            words.sort_unstable();
            let mut words = words.as_slice();
            table.change(|group, entries| {
                let (own, others) = words.split_at(words.partition_point(|word| word.0 == group));
                words = others;
                if matches!(self.form, Form::Word(_)) && own.is_empty() {
                    return entries.len();
                }
                let mut left = 0;
                for i in 0..entries.len() {
                    let entry = match self.form {
                        Form::Word(_) => {
                            Some(entries[i]).filter(|&word| own.binary_search(&(group, word)).is_err())
                        }
                        _ => Some(numbers[entries[i] as usize]).filter(|&row| row != GONE),
                    };
                    if let Some(entry) = entry {
                        entries[left] = entry;
                        left += 1;
                    }
                }
                left
            });
        }
        if tables.len() == 1 && self.parts.is_empty() {
            self.table = tables.pop().unwrap_or_default();
        } else {
            self.parts = tables;
        }
    }

    /// Cover the rows up to `end` if any are.
    pub fn catch_up(&mut self, rows: &Rows, arity: usize, end: usize) -> Result<(), Fault> {
        if self.covered == 0 {
            return Ok(());
        }
        self.cover(rows, arity, end, end)
    }

    /// The entries of a key: all, or those of the delta, which starts at a row, or those before it.
    #[inline]
    pub fn entries(&self, rows: &Rows, arity: usize, key: &[i64], part: Part) -> Entries<'_> {
        let same = |first: u32| {
            let first = first as usize * arity;
            self.form != Form::Hashed
                || self.columns.iter().zip(key).all(|(&c, &word)| rows.word(first + c) == word)
        };
        let found = self.key(|i| key[i]).and_then(|key| {
            let table = self.table_of(key);
            Some((table, &table.groups[table.find(key, same)?]))
        });
        let entries = found.map_or(&[][..], |(table, group)| {
            let all = table.of(group);
            let old = |delta: usize| if group.since as usize == delta { group.old } else { group.len };
            match part {
                Part::All => all,
                Part::Delta(delta) => &all[old(delta) as usize..],
                Part::Old(delta) => &all[..old(delta) as usize],
            }
        });
        match self.form {
            Form::Word(_) => Entries::Words(entries),
            Form::Row | Form::Hashed => Entries::Rows(entries),
        }
    }

    /// The table that a key is in.
    #[inline]
    fn table_of(&self, key: u64) -> &Table {
        match self.parts.len() {
            0 => &self.table,
            parts => &self.parts[part_of(key, parts)],
        }
    }

    /// A key from its words; None where no tuple can have it.
    #[inline]
    fn key(&self, word: impl Fn(usize) -> i64) -> Option<u64> {
        match (self.form, self.columns.len()) {
            (Form::Hashed, columns) => Some(hash((0..columns).map(word))),
            (_, 1) => Some(word(0) as u64),
            _ => Some(pack(narrow(word(0))?, narrow(word(1))?)),
        }
    }
}

/// Which entries are asked for; the delta starts at a row.
#[derive(Clone, Copy)]
pub enum Part {
    All,
    Delta(usize),
    Old(usize),
}

/// For which of so many tables a key is.
#[inline]
fn part_of(key: u64, parts: usize) -> usize {
    (((key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) * parts as u64) >> 32) as usize
}
