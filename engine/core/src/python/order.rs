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
    /// The same of three or four words.
    LongKeys(Vec<u128>, Vec<Code>),
    Columns(Vec<Vec<i64>>),
}

impl Sorted {
    pub fn new(program: &Program, values: &Values, id: RelationId, relation: &Relation) -> Sorted {
        let declared = &program.schema(id).columns;
        let width = declared.len();
        if let Some(words) = relation.narrow().filter(|_| (1..=4).contains(&width)) {
            let codes = declared.iter().enumerate().map(|(place, column)| {
                Code::new(program, values, &column.kind, words.iter().skip(place).step_by(width).copied())
            });
            let codes: Vec<Code> = codes.collect();
            let codes_of =
                |tuple| std::iter::zip(&codes, tuple).map(|(code, &word): (&Code, _)| code.of(word));
            if width <= 2 {
                let key = |tuple| codes_of(tuple).fold(0, |key, code| key << 32 | u64::from(code));
                let mut keys: Vec<u64> = words.chunks_exact(width).map(key).collect();
                keys.sort_unstable();
                return Sorted::Keys(keys, codes);
            }
            let key = |tuple| codes_of(tuple).fold(0, |key, code| key << 32 | u128::from(code));
            let mut keys: Vec<u128> = words.chunks_exact(width).map(key).collect();
            keys.sort_unstable();
            return Sorted::LongKeys(keys, codes);
        }
        let tuples = relation.tuples();
        let rows = order(program, values, id, &tuples);
        let column = |column: usize| rows.iter().map(|&row| tuples.tuple(row)[column]).collect();
        Sorted::Columns((0..width).map(column).collect())
    }

    /// How many tuples there are.
    pub fn len(&self) -> usize {
        match self {
            Sorted::Keys(keys, _) => keys.len(),
            Sorted::LongKeys(keys, _) => keys.len(),
            Sorted::Columns(columns) => columns.first().map_or(0, Vec::len),
        }
    }

    #[inline]
    pub fn word(&self, row: usize, column: usize) -> i64 {
        match self {
            Sorted::Keys(keys, codes) => {
                codes[column].word((keys[row] >> (32 * (codes.len() - 1 - column))) as u32)
            }
            Sorted::LongKeys(keys, codes) => {
                codes[column].word((keys[row] >> (32 * (codes.len() - 1 - column))) as u32)
            }
            Sorted::Columns(columns) => columns[column][row],
        }
    }

    pub fn into_columns(self) -> Vec<Vec<i64>> {
        match self {
            Sorted::Columns(columns) => columns,
            Sorted::Keys(_, ref codes) | Sorted::LongKeys(_, ref codes) => {
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
    Ranks(Ranks),
}

impl Code {
    fn new(program: &Program, values: &Values, kind: &Type, words: impl Iterator<Item = i32>) -> Code {
        match kind {
            Type::Number => Code::Signed,
            Type::Unsigned => Code::Bits,
            Type::Float | Type::Symbol | Type::Record(_) => {
                Code::Ranks(Ranks::new(program, values, kind, words.map(i64::from)))
            }
        }
    }

    #[inline]
    fn of(&self, word: i32) -> u32 {
        match self {
            Code::Signed => word as u32 ^ 1 << 31,
            Code::Bits => word as u32,
            Code::Ranks(ranks) => ranks.of(word.into()),
        }
    }

    #[inline]
    fn word(&self, code: u32) -> i64 {
        match self {
            Code::Signed => i64::from((code ^ 1 << 31) as i32),
            Code::Bits => i64::from(code as i32),
            Code::Ranks(ranks) => ranks.words[code as usize],
        }
    }
}

/// Words, each once, in the order of their values, and the place of each.
pub struct Ranks {
    words: Vec<i64>,
    places: Places,
}

enum Places {
    /// By word: symbols are numbered from 0 on.
    Dense(Vec<u32>),
    Sparse(FxHashMap<i64, u32>),
}

impl Ranks {
    fn new(program: &Program, values: &Values, kind: &Type, words: impl Iterator<Item = i64>) -> Ranks {
        // Where there are many more symbols, a table of all of them is not worth while.
        if *kind == Type::Symbol && values.count() / 8 <= words.size_hint().0 {
            const NOT_THERE: u32 = u32::MAX;
            let mut places = vec![NOT_THERE; values.count()];
            words.for_each(|word| places[word as usize] = 0);
            let there = (0..).zip(&places).filter(|(_, &place)| place != NOT_THERE);
            let words = by_text(values, there.map(|(word, _)| word).collect());
            (0..).zip(&words).for_each(|(place, &word)| places[word as usize] = place);
            return Ranks { words, places: Places::Dense(places) };
        }
        let mut words: Vec<i64> = words.collect();
        words.sort_unstable();
        words.dedup();
        words.sort_unstable_by(|&a, &b| values.compare(kind, &program.records, a, b));
        let places = words.iter().copied().zip(0..).collect();
        Ranks { words, places: Places::Sparse(places) }
    }

    #[inline]
    fn of(&self, word: i64) -> u32 {
        match &self.places {
            Places::Dense(places) => places[word as usize],
            Places::Sparse(places) => places[&word],
        }
    }
}

/// Symbols in the order of their texts. What differs is mostly in the first bytes behind those that all of them have,
/// which are compared without looking up the texts.
fn by_text(values: &Values, symbols: Vec<i64>) -> Vec<i64> {
    let text = |symbol: i64| values.text(symbol).as_bytes();
    let Some(&first) = symbols.first() else { return symbols };
    let common = |symbol: i64| std::iter::zip(text(first), text(symbol)).take_while(|(a, b)| a == b).count();
    let skipped = symbols.iter().map(|&symbol| common(symbol)).min().unwrap_or(0);
    let bytes = |symbol: i64| {
        let bytes = text(symbol)[skipped..].iter().copied().chain(std::iter::repeat(0)).take(8);
        bytes.fold(0, |all: u64, byte| all << 8 | u64::from(byte))
    };
    let mut keyed: Vec<(u64, i64)> = symbols.into_iter().map(|symbol| (bytes(symbol), symbol)).collect();
    keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| text(a.1).cmp(text(b.1))));
    keyed.into_iter().map(|(_, symbol)| symbol).collect()
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
            let ranks = Ranks::new(program, values, kind, words.iter().copied());
            words.iter_mut().for_each(|word| *word = ranks.of(*word).into());
            words
        }
    }
}
