//! The order of the tuples of a relation: column by column, in the order of their types.

use rustc_hash::FxHashMap;

use crate::compile::step::RelationId;
use crate::program::{Column, Program};
use crate::relation::{Relation, Tuples};
use crate::values::{Type, Values};

/// Fewer tuples are compared value by value.
const FEW: usize = 64;

/// The tuples of a relation, sorted.
pub enum Sorted {
    /// Tuples of one or two words, by their codes in one number, which says all of a tuple.
    Keys(Vec<u64>, Vec<Code>),
    Columns(Vec<Vec<i64>>),
}

impl Sorted {
    pub fn new(program: &Program, values: &Values, id: RelationId, relation: &Relation) -> Sorted {
        let declared = &program.schema(id).columns;
        if let Some(words) = relation.narrow().filter(|_| (1..=2).contains(&declared.len())) {
            let codes = declared.iter().enumerate().map(|(place, column)| {
                let words = words.iter().skip(place).step_by(declared.len()).copied();
                Code::new(program, values, &column.kind, words)
            });
            let codes: Vec<Code> = codes.collect();
            let key = |tuple: &[i32]| {
                let words = tuple.iter().zip(&codes);
                words.fold(0, |key: u64, (&word, code)| key << 32 | u64::from(code.of(word)))
            };
            let mut keys: Vec<u64> = words.chunks_exact(declared.len()).map(key).collect();
            keys.sort_unstable();
            return Sorted::Keys(keys, codes);
        }
        let tuples = relation.tuples();
        let rows = order(program, values, id, &tuples);
        let column = |column: usize| rows.iter().map(|&row| tuples.tuple(row)[column]).collect();
        Sorted::Columns((0..declared.len()).map(column).collect())
    }

    /// How many tuples there are.
    pub fn len(&self) -> usize {
        match self {
            Sorted::Keys(keys, _) => keys.len(),
            Sorted::Columns(columns) => columns.first().map_or(0, Vec::len),
        }
    }

    #[inline]
    pub fn word(&self, row: usize, column: usize) -> i64 {
        match self {
            Sorted::Keys(keys, codes) => {
                let behind = codes.len() - 1 - column;
                codes[column].word((keys[row] >> (32 * behind)) as u32)
            }
            Sorted::Columns(columns) => columns[column][row],
        }
    }

    pub fn into_columns(self) -> Vec<Vec<i64>> {
        match self {
            Sorted::Columns(columns) => columns,
            Sorted::Keys(_, ref codes) => {
                let column = |column| (0..self.len()).map(|row| self.word(row, column)).collect();
                (0..codes.len()).map(column).collect()
            }
        }
    }
}

/// Numbers of 32 bits in the order of the values of a column.
pub enum Code {
    Signed,
    Bits,
    /// Words in the order of their values, and the place of each.
    Ranks(Vec<i64>, FxHashMap<i64, u32>),
}

impl Code {
    fn new(program: &Program, values: &Values, kind: &Type, words: impl Iterator<Item = i32>) -> Code {
        match kind {
            Type::Number => Code::Signed,
            Type::Unsigned => Code::Bits,
            Type::Float | Type::Symbol | Type::Record(_) => {
                let distinct = distinct(program, values, kind, words.map(i64::from).collect());
                let ranks = distinct.iter().copied().zip(0..).collect();
                Code::Ranks(distinct, ranks)
            }
        }
    }

    fn of(&self, word: i32) -> u32 {
        match self {
            Code::Signed => word as u32 ^ 1 << 31,
            Code::Bits => word as u32,
            Code::Ranks(_, ranks) => ranks[&word.into()],
        }
    }

    fn word(&self, code: u32) -> i64 {
        match self {
            Code::Signed => i64::from((code ^ 1 << 31) as i32),
            Code::Bits => i64::from(code as i32),
            Code::Ranks(words, _) => words[code as usize],
        }
    }
}

/// The numbers of the tuples, sorted.
pub fn order(program: &Program, values: &Values, relation: RelationId, tuples: &Tuples) -> Vec<usize> {
    let columns = &program.schema(relation).columns;
    let count = tuples.iter().len();
    if count < FEW {
        return compared(program, values, columns, tuples);
    }
    let keys: Vec<Vec<i64>> = (0..columns.len())
        .map(|column| keys(program, values, &columns[column].kind, tuples.iter().map(move |t| t[column])))
        .collect();
    match keys.as_slice() {
        [] => (0..count).collect(),
        [a] => by(count, |row| [a[row]]),
        [a, b] => by(count, |row| [a[row], b[row]]),
        [a, b, c] => by(count, |row| [a[row], b[row], c[row]]),
        _ => {
            let mut rows: Vec<usize> = (0..count).collect();
            rows.sort_unstable_by(|&a, &b| {
                keys.iter().map(|key| key[a].cmp(&key[b])).find(|order| order.is_ne()).unwrap_or(a.cmp(&b))
            });
            rows
        }
    }
}

/// The numbers of rows, sorted by key.
fn by<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut rows: Vec<(K, usize)> = (0..count).map(|row| (key(row), row)).collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, row)| row).collect()
}

fn compared(program: &Program, values: &Values, columns: &[Column], tuples: &Tuples) -> Vec<usize> {
    let tuples: Vec<&[i64]> = tuples.iter().collect();
    let mut rows: Vec<usize> = (0..tuples.len()).collect();
    rows.sort_unstable_by(|&a, &b| {
        let words = columns.iter().zip(tuples[a].iter().zip(tuples[b]));
        words
            .map(|(column, (&x, &y))| values.compare(&column.kind, &program.records, x, y))
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    rows
}

/// For each word of a column a number, in the order of the values.
fn keys(program: &Program, values: &Values, kind: &Type, words: impl Iterator<Item = i64>) -> Vec<i64> {
    match kind {
        Type::Number => words.collect(),
        Type::Unsigned => words.map(|word| word ^ i64::MIN).collect(),
        Type::Float => words.map(|word| word ^ (((word >> 63) as u64) >> 1) as i64).collect(), // as `total_cmp`
        Type::Symbol | Type::Record(_) => {
            let mut words: Vec<i64> = words.collect();
            let distinct = distinct(program, values, kind, words.clone());
            let ranks: FxHashMap<i64, i64> = distinct.into_iter().zip(0..).collect();
            words.iter_mut().for_each(|word| *word = ranks[word]);
            words
        }
    }
}

/// Words, each once, in the order of their values.
fn distinct(program: &Program, values: &Values, kind: &Type, mut words: Vec<i64>) -> Vec<i64> {
    words.sort_unstable();
    words.dedup();
    words.sort_unstable_by(|&a, &b| values.compare(kind, &program.records, a, b));
    words
}
