//! The tuples of relations, as columns of words, and how they are had.

use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHashSet};

use super::clause::Clause;
use crate::relation::rows::Rows;

/// The words of a column, which may lie between those of others.
#[derive(Clone, Copy)]
pub enum Words<'a> {
    /// From the first one on, and how far each is from the one before.
    Narrow(&'a [i32], usize),
    Wide(&'a [i64], usize),
}

/// The columns of relations.
pub type Tables<'a> = [Vec<Words<'a>>];

impl<'a> Words<'a> {
    /// The columns of tuples that lie one behind the other.
    pub fn columns(rows: &'a Rows, arity: usize) -> Vec<Self> {
        let column = |first: usize| match rows {
            Rows::Narrow(words) => Words::Narrow(words.get(first..).unwrap_or_default(), arity),
            Rows::Wide(words) => Words::Wide(words.get(first..).unwrap_or_default(), arity),
        };
        (0..arity).map(column).collect()
    }

    #[inline]
    pub fn word(self, row: usize) -> i64 {
        match self {
            Words::Narrow(words, step) => words[row * step].into(),
            Words::Wide(words, step) => words[row * step],
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Words::Narrow(words, step) => words.len().div_ceil(step),
            Words::Wide(words, step) => words.len().div_ceil(step),
        }
    }
}

/// A height that all tuples are below, also those whose height is not known.
pub const WHOLE: i64 = i64::MAX;

/// How the tuples of a relation are had.
pub enum Origin {
    Facts,
    /// By clauses. Heights are `offset` more than the numbers of rounds, which begin with the tuples `starts`.
    Clauses {
        starts: Vec<usize>,
        offset: i64,
        clauses: Vec<Clause>,
        /// Of an equivalence: pairs that nothing gives lead from one to another.
        equivalence: Option<Equivalence>,
    },
    /// As someone else says.
    Asked,
}

/// The facts of an equivalence, in the order of their values, and the facts of each member.
pub struct Equivalence {
    facts: Vec<u32>,
    rows: FxHashSet<u32>,
    by_member: OnceLock<FxHashMap<i64, Vec<u32>>>,
}

impl Equivalence {
    pub fn new(facts: Vec<u32>) -> Self {
        Equivalence { rows: facts.iter().copied().collect(), facts, by_member: OnceLock::new() }
    }

    pub(super) fn facts_of<'a>(
        &'a self,
        table: &'a [Words],
        member: i64,
    ) -> impl Iterator<Item = [i64; 2]> + 'a {
        let by_member = self.by_member.get_or_init(|| {
            let mut found: FxHashMap<i64, Vec<u32>> = FxHashMap::default();
            for &fact in &self.facts {
                let [a, b] = [0, 1].map(|column: usize| table[column].word(fact as usize));
                found.entry(a).or_default().push(fact);
                if a != b {
                    found.entry(b).or_default().push(fact);
                }
            }
            found
        });
        let facts = by_member.get(&member).into_iter().flatten();
        facts.map(|&fact| [0, 1].map(|column: usize| table[column].word(fact as usize)))
    }
}

pub struct Relation {
    pub count: usize,
    pub origin: Origin,
    columns: Vec<Column>,
}

/// Of a column with so many words the first few that are asked for are looked for one by one: groups take four bytes a
/// row.
const MANY: usize = 1 << 16;

/// The rows of a column by their words.
#[derive(Default)]
struct Column {
    few: [OnceLock<(i64, Vec<u32>)>; 16],
    groups: OnceLock<Groups>,
}

impl Relation {
    pub fn new(width: usize, count: usize, origin: Origin) -> Self {
        Relation { count, origin, columns: (0..width).map(|_| Column::default()).collect() }
    }

    /// The rows, ascending, that have a word in a column, which has these words.
    pub(super) fn rows(&self, column: usize, words: Words, word: i64) -> &[u32] {
        let Column { few, groups } = &self.columns[column];
        if words.len() > MANY && groups.get().is_none() {
            let all = || (0..words.len() as u32).filter(|&row| words.word(row as usize) == word).collect();
            let mut found = few.iter().map(|one| one.get_or_init(|| (word, all())));
            if let Some((_, rows)) = found.find(|(other, _)| *other == word) {
                return rows;
            }
        }
        groups.get_or_init(|| Groups::new(words)).of(words, word)
    }

    /// The height of a tuple: 0 for facts, None if unknown. `near` is the round of the last tuple
    /// asked for; the next tuple's round is often the one before.
    pub(super) fn height(&self, row: usize, near: &mut usize) -> Option<i64> {
        match &self.origin {
            Origin::Facts => Some(0),
            Origin::Clauses { starts, offset, .. } => {
                let begun = |round: usize| round == 0 || starts[round - 1] <= row;
                *near -= usize::from(!begun(*near));
                if !begun(*near) || starts.get(*near).is_some_and(|&next| next <= row) {
                    *near = starts.partition_point(|&start| start <= row);
                }
                Some(*near as i64 + offset)
            }
            Origin::Asked => None,
        }
    }

    /// Whether a tuple of height 0 is a fact, and not added by an equivalence.
    pub(super) fn is_given(&self, row: u32) -> bool {
        match &self.origin {
            Origin::Clauses { equivalence: Some(Equivalence { rows, .. }), .. } => rows.contains(&row),
            _ => true,
        }
    }

    /// The row of a pair.
    pub(super) fn row_of(&self, table: &[Words], [a, b]: [i64; 2]) -> Option<u32> {
        let rows = self.rows(0, table[0], a);
        rows.iter().copied().find(|&row| table[1].word(row as usize) == b)
    }

    /// How many of the tuples are below a height.
    pub(super) fn below(&self, height: i64) -> usize {
        match &self.origin {
            _ if height == WHOLE => self.count,
            Origin::Facts => self.count,
            Origin::Clauses { starts, offset, .. } => match height - offset {
                round if round <= 0 => 0,
                round => starts.get(round as usize - 1).copied().unwrap_or(self.count),
            },
            Origin::Asked => 0,
        }
    }
}

/// The rows of a column by their words, ascending.
pub struct Groups {
    /// The least word and where the rows of each begin, unless words lie too far apart.
    dense: Option<(i64, Vec<u32>)>,
    rows: Vec<u32>,
}

impl Groups {
    pub(super) fn new(words: Words) -> Self {
        Self::grouped(words, 0..words.len() as u32)
    }

    /// Some rows, ascending, by their words.
    pub(super) fn grouped(words: Words, among: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let word = |row: u32| words.word(row as usize);
        let least = among.clone().map(word).min().unwrap_or(0);
        let span = among.clone().map(word).max().unwrap_or(0).wrapping_sub(least) as u64;
        if span > 4 * among.len() as u64 + 1024 {
            let mut rows: Vec<u32> = among.collect();
            rows.sort_by_key(|&row| word(row));
            return Groups { dense: None, rows };
        }
        let near = |row: u32| (word(row) - least) as usize;
        let mut starts = vec![0u32; span as usize + 2];
        among.clone().for_each(|row| starts[near(row) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut next, mut rows) = (starts.clone(), vec![0; among.len()]);
        for row in among {
            let at = &mut next[near(row)];
            rows[*at as usize] = row;
            *at += 1;
        }
        Groups { dense: Some((least, starts)), rows }
    }

    pub(super) fn of(&self, words: Words, word: i64) -> &[u32] {
        match &self.dense {
            Some((least, starts)) => {
                let near = word.checked_sub(*least).and_then(|near| usize::try_from(near).ok());
                match near.filter(|near| near + 1 < starts.len()) {
                    Some(near) => &self.rows[starts[near] as usize..starts[near + 1] as usize],
                    None => &[],
                }
            }
            None => {
                let first = self.rows.partition_point(|&row| words.word(row as usize) < word);
                let rows = &self.rows[first..];
                &rows[..rows.partition_point(|&row| words.word(row as usize) == word)]
            }
        }
    }
}
