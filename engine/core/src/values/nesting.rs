//! Records that nest as deep as they like. A record is interned after all that it holds, so that in the order of their
//! numbers what holds for a record follows from those inside of it, without recursion.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{RecordType, Type, Values, NIL};

/// A record by its number, as one of a type.
type Record = (i64, RecordType);

/// How many records a block of the order has at most: so many places change where one comes in.
const BLOCK: usize = 128;

/// How many levels of records the deepest of some values of a type has: 0 where there are none.
pub fn depth(values: &Values, records: &[Vec<Type>], kind: &Type, words: impl Iterator<Item = i64>) -> usize {
    let found = nested(values, records, kind, words, |_| false);
    let mut depths: Vec<usize> = Vec::with_capacity(found.len());
    for &record in &found {
        let place = |inner| found.binary_search(&inner).ok();
        let inner =
            inside(values, records, record).filter_map(place).filter_map(|place| depths.get(place)).max();
        depths.push(inner.map_or(1, |inner| inner + 1));
    }
    depths.into_iter().max().unwrap_or(0)
}

/// The records of some values of a type and all that are nested in them, each once, behind those inside of it. Those
/// that are `known` are left out with what they hold.
fn nested(
    values: &Values,
    records: &[Vec<Type>],
    kind: &Type,
    words: impl Iterator<Item = i64>,
    known: impl Fn(&Record) -> bool,
) -> Vec<Record> {
    let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
    let mut open: Vec<Record> = words.filter_map(|word| typed(kind, word)).collect();
    while let Some(record) = open.pop() {
        if !known(&record) && seen.insert(record) {
            found.push(record);
            open.extend(inside(values, records, record));
        }
    }
    found.sort_unstable();
    found
}

/// Whether records of a type hold others. Where they do not, two are compared in as many steps as they have fields.
fn nests(records: &[Vec<Type>], kind: &Type) -> bool {
    let holds =
        |record: &RecordType| records[record.0].iter().any(|field| matches!(field, Type::Record(Some(_))));
    matches!(kind, Type::Record(Some(record)) if holds(record))
}

/// The records that are fields of a record.
fn inside<'v>(
    values: &'v Values,
    records: &'v [Vec<Type>],
    (word, record): Record,
) -> impl Iterator<Item = Record> + 'v {
    let fields = records[record.0].iter().zip(values.fields(word).iter());
    fields.filter_map(|(kind, &field)| typed(kind, field))
}

fn typed(kind: &Type, word: i64) -> Option<Record> {
    match kind {
        Type::Record(Some(record)) if word != NIL => Some((word, *record)),
        _ => None,
    }
}

/// Records in the order of their values. Each comes in after those inside of it, whose places are known, so that to
/// compare two takes no longer than they have fields. What came in stays in order as others come between.
#[derive(Default)]
pub struct Order {
    /// By record the number of its block, and its place there.
    places: FxHashMap<Record, (usize, usize)>,
    /// The blocks in order, with their numbers.
    blocks: Vec<(usize, Vec<Record>)>,
    /// By number of a block its place among the blocks.
    ranks: Vec<usize>,
}

impl Order {
    /// Take in records that are values of a type, with all that are nested in them. `plain` is the order of values of
    /// other types, the same at every call.
    pub fn add(
        &mut self,
        values: &Values,
        records: &[Vec<Type>],
        kind: &Type,
        words: impl Iterator<Item = i64>,
        plain: impl Fn(&Type, i64, i64) -> Ordering,
    ) {
        if !nests(records, kind) {
            return;
        }
        for record in nested(values, records, kind, words, |record| self.places.contains_key(record)) {
            let less = |other: &Record| {
                let kinds = &records[record.1 .0];
                let fields = std::iter::zip(values.fields(other.0).iter(), values.fields(record.0).iter());
                let mut orders =
                    kinds.iter().zip(fields).map(|(kind, (&x, &y))| self.compare(kind, x, y, &plain));
                let by_fields = || orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
                other.1.cmp(&record.1).then_with(by_fields).is_lt()
            };
            let before = self.blocks.partition_point(|(_, block)| block.last().is_some_and(less));
            let rank = before.min(self.blocks.len().saturating_sub(1));
            let place = self.blocks.get(rank).map_or(0, |(_, block)| block.partition_point(less));
            self.insert(rank, place, record);
        }
    }

    /// The order of two values of a type; `plain` as there.
    pub fn compare(
        &self,
        kind: &Type,
        a: i64,
        b: i64,
        plain: impl Fn(&Type, i64, i64) -> Ordering,
    ) -> Ordering {
        match kind {
            _ if a == b => Ordering::Equal,
            Type::Record(Some(_)) => match (self.place(kind, a), self.place(kind, b)) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => plain(kind, a, b), // nil, or records that hold no others
            },
            _ => plain(kind, a, b),
        }
    }

    fn place(&self, kind: &Type, word: i64) -> Option<(usize, usize)> {
        let (block, place) = *self.places.get(&typed(kind, word)?)?;
        Some((self.ranks[block], place))
    }

    fn insert(&mut self, rank: usize, place: usize, record: Record) {
        if self.blocks.is_empty() {
            self.open(0, Vec::new());
        }
        let block = &mut self.blocks[rank].1;
        block.insert(place, record);
        let upper = (block.len() > BLOCK).then(|| block.split_off(BLOCK / 2));
        self.number(rank, place);
        if let Some(upper) = upper {
            self.open(rank + 1, upper);
            self.number(rank + 1, 0);
        }
    }

    /// Put a block among the others.
    fn open(&mut self, rank: usize, block: Vec<Record>) {
        self.blocks.insert(rank, (self.ranks.len(), block));
        self.ranks.push(rank);
        self.blocks.iter().enumerate().skip(rank).for_each(|(rank, &(block, _))| self.ranks[block] = rank);
    }

    /// Note the places of the records of a block from one of them on.
    fn number(&mut self, rank: usize, from: usize) {
        let (number, block) = &self.blocks[rank];
        self.places
            .extend(block.iter().enumerate().skip(from).map(|(place, &record)| (record, (*number, place))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of numbers, and a tree with a symbol: [head, tail], [left, name, right].
    fn types() -> Vec<Vec<Type>> {
        let record = |number| Type::Record(Some(RecordType(number)));
        vec![vec![Type::Number, record(0)], vec![record(1), Type::Symbol, record(1), record(0)]]
    }

    fn order<'v>(values: &'v Values, types: &'v [Vec<Type>]) -> impl Fn(&Type, i64, i64) -> Ordering + 'v {
        |kind, a, b| values.compare(kind, types, a, b)
    }

    /// Numbers that look random.
    fn mixed(seed: &mut u64) -> usize {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as usize
    }

    #[test]
    fn records_are_ordered_as_they_are_compared() {
        let (types, mut values, mut seed) = (types(), Values::default(), 7);
        let names = ["b", "a", "", "c"].map(|name| values.symbol(name));
        let (mut lists, mut trees) = (vec![NIL], vec![NIL]);
        let mut ordered = Order::default();
        for _ in 0..6 {
            for _ in 0..300 {
                let tail = lists[mixed(&mut seed) % lists.len()];
                lists.push(values.record(&[mixed(&mut seed) as i64 % 3 - 1, tail]));
                let tree = |seed: &mut u64| trees[mixed(seed) % trees.len()];
                let (left, right) = (tree(&mut seed), tree(&mut seed));
                trees.push(values.record(&[left, names[mixed(&mut seed) % 4], right, tail]));
            }
            let plain = order(&values, &types);
            for (number, words) in [&lists, &trees].into_iter().enumerate() {
                let kind = Type::Record(Some(RecordType(number)));
                ordered.add(&values, &types, &kind, words.iter().copied(), &plain);
                let mut sorted = words.clone();
                sorted.sort_by(|&a, &b| ordered.compare(&kind, a, b, &plain));
                let mut expected = words.clone();
                expected.sort_by(|&a, &b| values.compare(&kind, &types, a, b));
                assert_eq!(sorted, expected);
            }
        }
    }

    #[test]
    fn pairs_in_lists_and_alone_have_one_order() {
        let record = |number| Type::Record(Some(RecordType(number)));
        let types = vec![vec![Type::Number, Type::Number], vec![record(0), record(1)]];
        let (mut values, mut ordered) = (Values::default(), Order::default());
        let pairs: Vec<i64> = (0..40).map(|n| values.record(&[n * 7 % 5, n])).collect();
        let lists: Vec<i64> = pairs.iter().step_by(3).map(|&pair| values.record(&[pair, NIL])).collect();
        let plain = order(&values, &types);
        for (number, words) in [(0, [&pairs[..], &[NIL]].concat()), (1, lists), (0, pairs)] {
            let kind = record(number);
            ordered.add(&values, &types, &kind, words.iter().copied(), &plain);
            let (mut sorted, mut expected) = (words.clone(), words);
            sorted.sort_by(|&a, &b| ordered.compare(&kind, a, b, &plain));
            expected.sort_by(|&a, &b| values.compare(&kind, &types, a, b));
            assert_eq!(sorted, expected);
        }
    }

    #[test]
    fn a_deep_list_is_behind_what_it_ends_with() {
        let (types, mut values) = (types(), Values::default());
        let kind = Type::Record(Some(RecordType(0)));
        let mut lists = vec![NIL];
        for _ in 0..5000 {
            lists.push(values.record(&[1, lists[lists.len() - 1]]));
        }
        let before = values.record(&[0, lists[5000]]);
        let plain = order(&values, &types);
        let mut ordered = Order::default();
        ordered.add(&values, &types, &kind, [before, lists[5000]].into_iter(), &plain);
        assert!(lists.windows(2).all(|pair| ordered.compare(&kind, pair[0], pair[1], &plain).is_lt()));
        assert!(ordered.compare(&kind, before, lists[1], &plain).is_lt());
        assert!(ordered.compare(&kind, before, NIL, &plain).is_gt());
    }

    #[test]
    fn the_depth_is_that_of_the_deepest() {
        let (types, mut values) = (types(), Values::default());
        let name = values.symbol("n");
        let list = values.record(&[3, NIL]);
        let mut tree = values.record(&[NIL, name, NIL, list]);
        let depth = |values: &Values, number, words: &[i64]| {
            depth(values, &types, &Type::Record(Some(RecordType(number))), words.iter().copied())
        };
        assert_eq!(depth(&values, 0, &[NIL, list]), 1);
        assert_eq!(depth(&values, 1, &[tree]), 2);
        for _ in 0..5000 {
            tree = values.record(&[tree, name, tree, NIL]);
        }
        assert_eq!(depth(&values, 1, &[NIL, tree]), 5002);
        assert_eq!(depth(&values, 1, &[NIL]), 0);
    }
}
