//! The order of the tuples of a relation: that of their types, column by column.

use rustc_hash::FxHashMap;

use crate::compile::step::RelationId;
use crate::program::{Column, Program};
use crate::relation::Tuples;
use crate::values::{Type, Values};

/// Fewer tuples are compared value by value.
const FEW: usize = 64;

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

/// The numbers of rows, sorted by what each has for a key.
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
            let mut distinct = words.clone();
            distinct.sort_unstable();
            distinct.dedup();
            distinct.sort_unstable_by(|&a, &b| values.compare(kind, &program.records, a, b));
            let ranks: FxHashMap<i64, i64> = distinct.into_iter().zip(0..).collect();
            words.iter_mut().for_each(|word| *word = ranks[word]);
            words
        }
    }
}
