//! One rule on several threads. Each takes pieces of the first scan's tuples, and keeps its derived
//! tuples. Then the sets are updated, each by one thread, in the order of the pieces. So the new
//! tuples, and their order, are the same as with one thread.

use std::sync::{Arc, Mutex};

use crate::budget::{Budget, MOST_THREADS};
use crate::compile::step::{Expression, Pattern, RelationId, Rule, Step};
use crate::error::Fault;
use crate::machine::body::{Body, Derived, Run, Scratch};
use crate::machine::pool::{lock, Apart, Pool, Work};
use crate::relation::rows::{narrow, pack, Rows};
use crate::relation::set::{packed, part_of, Set, NONE};
use crate::relation::sink::Sink;
use crate::relation::table::Table;
use crate::relation::{IndexId, Relation};
use crate::values::{Type, Values};

/// A body that looks at fewer tuples is not worth the threads.
const LEAST: f64 = 1_000.0;
/// Pieces for each thread: some take longer than others.
const PIECES: usize = 4;
/// The approximate number of tuples of a piece, if there are several. A piece's results stay in the
/// cache.
const PIECE: f64 = 16_384.0;
/// Pieces that find less, on average, are too small.
const FEW: usize = 2_048;
/// Pieces for each thread before their tuples are added to the relation, fewer where they find more tuples than `LOTS`.
const WAVE: usize = 16;
const LOTS: usize = 1 << 19;
/// So many keys are put away at a time. Of each `LOOK`th it is looked whether the relation has it.
const BLOCK: usize = 1 << 10;
const LOOK: usize = 1 << 6;
/// An index that fewer rows are to be added to is not worth the threads.
const ROWS: usize = 1 << 12;
/// Of more keys those are kept once that are there several times.
const MANY: usize = 1 << 18;

/// In how many pieces a rule runs, if it looks at about `cost` tuples.
pub fn pieces(rule: &Rule, relations: &[Relation], cost: f64, threads: usize) -> usize {
    let Some(Step::Scan(first, _)) = rule.steps.first() else { return 1 };
    let head = &relations[rule.head.0];
    if threads == 1 || cost < LEAST || first.index.is_some() || head.sink.is_eqrel() {
        return 1;
    }
    let pieces = ((cost / PIECE) as usize).max(threads * PIECES);
    pieces.min(relations[first.relation.0].count(first.version)).max(1)
}

/// Whether a rule neither makes values nor looks into them, so that several threads can run it.
pub fn is_plain(args: &[Expression], steps: &[Step]) -> bool {
    let plain = |e: &Expression| matches!(e, Expression::Register(_) | Expression::Word(_));
    let known = |pattern: &Pattern| pattern.values.iter().all(plain);
    args.iter().all(plain)
        && steps.iter().all(|step| match step {
            Step::Scan(pattern, _) | Step::Exists(pattern) | Step::Absent(pattern) => known(pattern),
            Step::Test(_, Type::Number | Type::Unsigned | Type::Float, left, right) => {
                plain(left) && plain(right)
            }
            _ => false,
        })
}

/// Bring those indexes up to date that many rows are not in yet.
pub fn prepare(
    pool: &Pool,
    rule: &Rule,
    relations: &mut Vec<Relation>,
    budget: &mut Budget,
    threads: usize,
) -> Run {
    for &(RelationId(relation), version, index) in &rule.searches {
        let own = RelationId(relation) == rule.head;
        if relations[relation].uncovered(version, index, own) < ROWS {
            continue;
        }
        let tables = closed(relations[relation].divide(index, threads));
        let cover = Cover { relations: std::mem::take(relations), relation, index, tables };
        let (cover, result) = pool.run(cover, threads, budget);
        *relations = cover.relations;
        relations[relation].unite(index, opened(cover.tables));
        result?;
    }
    Ok(())
}

/// The tables of an index.
struct Cover {
    relations: Vec<Relation>,
    relation: usize,
    index: IndexId,
    tables: Locks<Table>,
}

impl Work for Cover {
    fn piece(&self, number: usize, _: &mut Budget) -> Run {
        let table = &mut *lock(&self.tables[number].0);
        self.relations[self.relation].cover_in(self.index, table, (number, self.tables.len()))
    }
}

/// Run a rule in pieces; `spare` are buffers of earlier ones.
pub fn run(
    pool: &Pool,
    rule: &Arc<Rule>,
    relations: &mut Vec<Relation>,
    sink: &mut Sink,
    spare: &mut Vec<Found>,
    budget: &mut Budget,
    (threads, pieces): (usize, usize),
) -> Run {
    // How many pieces there are is an estimate: where little is found, more and more are taken as one.
    let (mut first, mut together, mut most) = (0, 1, threads * WAVE);
    while first < pieces {
        let packed = sink.divide(relations[rule.head.0].rows(), threads)?;
        let mut found = std::mem::take(spare);
        together = (pieces - first).div_ceil(threads * PIECES).min(together);
        let wave = (pieces - first).div_ceil(together).min(most);
        found.resize_with(wave, Found::default);
        found.iter_mut().for_each(|found| found.clear(if packed { threads } else { 0 }, sink.arity()));
        let derive = Derive {
            rule: rule.clone(),
            first,
            together,
            pieces,
            found: closed(found),
            relations: std::mem::take(relations),
            sink: std::mem::take(sink),
        };
        let (derive, result) = pool.run(derive, wave, budget);
        (*relations, *sink) = (derive.relations, derive.sink);
        *spare = opened(derive.found);
        result?;
        first += wave * together;
        let count: usize = spare.iter().map(|found| found.count + found.rest.count()).sum();
        if count < wave * FEW {
            together *= 2;
        } else if count > LOTS {
            most = (most / 2).max(threads * PIECES);
        }
        let head = &mut relations[rule.head.0];
        if spare.iter().any(|found| found.rest.count() > 0) {
            for found in &mut *spare {
                found.unpack(budget)?;
                sink.absorb(head.rows(), &found.rest, budget)?;
            }
        } else if count > 0 {
            insert(pool, head, sink, spare, budget)?;
        }
    }
    Ok(())
}

/// Add the packed tuples of all pieces to their relation.
fn insert(
    pool: &Pool,
    head: &mut Relation,
    sink: &mut Sink,
    spare: &mut [Found],
    budget: &mut Budget,
) -> Run {
    let sets = std::mem::take(sink.parts()).into_iter().enumerate().map(|(part, set)| {
        let keys = spare.iter_mut().map(|found| std::mem::take(&mut found.keys[part].0));
        Part { set, keys: keys.collect(), new: 0 }
    });
    let insert = Insert(closed(sets.collect()));
    let threads = insert.0.len();
    let (insert, result) = pool.run(insert, threads, budget);
    let mut new = 0;
    for (part, done) in opened(insert.0).into_iter().enumerate() {
        sink.parts().push(done.set);
        new += done.new;
        for (found, keys) in spare.iter_mut().zip(done.keys) {
            found.keys[part].0 = keys;
        }
    }
    result?;
    head.take(sink, new, spare.iter().flat_map(Found::runs))?;
    budget.derive(new)
}

/// What pieces make, each behind a lock, which only one thread takes.
type Locks<T> = Vec<Apart<Mutex<T>>>;

fn closed<T>(all: Vec<T>) -> Locks<T> {
    all.into_iter().map(|one| Apart(Mutex::new(one))).collect()
}

fn opened<T: Default>(locks: Locks<T>) -> Vec<T> {
    locks.into_iter().map(|Apart(one)| std::mem::take(&mut *lock(&one))).collect()
}

/// The derivations of a rule, in pieces.
struct Derive {
    rule: Arc<Rule>,
    /// The number of the first, how many are taken as one, and how many there are in all.
    first: usize,
    together: usize,
    pieces: usize,
    relations: Vec<Relation>,
    sink: Sink,
    found: Locks<Found>,
}

impl Work for Derive {
    fn piece(&self, number: usize, budget: &mut Budget) -> Run {
        let found = &mut *lock(&self.found[number].0);
        let rows = self.relations[self.rule.head.0].rows();
        let (mut values, mut scratch) = (Values::default(), Scratch::default());
        let last = Vec::with_capacity(BLOCK);
        let mut candidates = Candidates { sink: &self.sink, rows, found, last };
        let mut body =
            Body::new(&self.rule, &self.relations, &mut values, budget, &mut candidates, &mut scratch);
        let first = self.first + number * self.together;
        body.take_parts(first..self.pieces.min(first + self.together), self.pieces);
        body.run(&self.rule.steps)?;
        candidates.put_away(budget)
    }
}

/// The sets of a relation.
struct Insert(Locks<Part>);

/// A set and the keys for it, piece by piece. Those that are not new become `NONE`.
#[derive(Default)]
struct Part {
    set: Set,
    keys: Vec<Vec<u64>>,
    /// How many are new.
    new: usize,
}

impl Work for Insert {
    fn piece(&self, number: usize, _: &mut Budget) -> Run {
        let Part { set, keys, new } = &mut *lock(&self.0[number].0);
        for key in keys.iter_mut().flatten() {
            if set.insert(*key)? {
                *new += 1;
            } else {
                *key = NONE;
            }
        }
        Ok(())
    }
}

/// What a piece gives; some tuples may be there several times.
#[derive(Default)]
pub struct Found {
    /// Packed tuples by the set that they are for, each in the order in which they were found. None where
    /// tuples are not packed.
    keys: Vec<Apart<Vec<u64>>>,
    /// Runs of keys for the same set, in the order of all: for which, and of how many.
    runs: Vec<(u8, u8)>,
    count: usize,
    /// From how many on those are looked for that are there several times.
    many: usize,
    /// The tuples, where they are not packed.
    rest: Sink,
}

impl Found {
    /// Be empty, for packed tuples in so many sets; 0: for others.
    fn clear(&mut self, sets: usize, arity: usize) {
        self.keys.resize_with(sets, Apart::default);
        self.keys.iter_mut().for_each(|keys| keys.0.clear());
        self.runs.clear();
        (self.count, self.many, self.rest) = (0, MANY, Sink::new(arity, false));
    }

    /// Add packed tuples. Those that follow each other are often for the same set.
    fn extend(&mut self, mut keys: &[u64], budget: &Budget) -> Run {
        if self.count >= self.many {
            self.shrink(budget)?;
        }
        let parts = self.keys.len();
        while let Some(&first) = keys.first() {
            let part = part_of(first, parts);
            let same = keys[1..].iter().take_while(|&&key| part_of(key, parts) == part);
            let (run, rest) = keys.split_at(1 + same.count());
            let found = &mut self.keys[part].0;
            found.try_reserve(run.len()).map_err(|_| Fault::OutOfMemory)?;
            found.extend_from_slice(run);
            self.note(part, run.len())?;
            keys = rest;
        }
        Ok(())
    }

    /// Write down that so many keys for a set come next.
    #[inline]
    fn note(&mut self, part: usize, mut count: usize) -> Run {
        self.count += count;
        if let Some((_, last)) = self.runs.last_mut().filter(|run| usize::from(run.0) == part) {
            let more = count.min(usize::from(u8::MAX - *last));
            *last += more as u8;
            count -= more;
        }
        while count > 0 {
            let run = count.min(usize::from(u8::MAX));
            self.runs.try_reserve(1).map_err(|_| Fault::OutOfMemory)?;
            self.runs.push((part as u8, run as u8));
            count -= run;
        }
        Ok(())
    }

    /// The packed tuples in the order in which they were found, run by run.
    fn runs(&self) -> impl Iterator<Item = &[u64]> {
        let mut next = [0; MOST_THREADS];
        self.runs.iter().map(move |&(part, count)| {
            let (part, count) = (usize::from(part), usize::from(count));
            next[part] += count;
            &self.keys[part].0[next[part] - count..next[part]]
        })
    }

    /// Keep each key once.
    #[cold]
    fn shrink(&mut self, budget: &Budget) -> Run {
        let (mut set, mut once) = (Set::default(), Found::default());
        once.clear(self.keys.len(), self.rest.arity());
        once.many = usize::MAX;
        for &key in self.runs().flatten() {
            if set.insert(key)? {
                once.extend(&[key], budget)?;
            }
        }
        once.many = MANY.max(2 * once.count);
        *self = once;
        budget.has_room(self.count)
    }

    /// Go over to tuples that are not packed.
    fn unpack(&mut self, budget: &mut Budget) -> Run {
        let arity = self.rest.arity();
        let mut rest = std::mem::take(&mut self.rest);
        for &key in self.runs().flatten() {
            let tuple = [(key >> 32) as i32, key as i32].map(i64::from);
            rest.append(&Rows::default(), &tuple[2 - arity..])?;
        }
        (self.rest, self.keys, self.runs) = (rest, Vec::new(), Vec::new());
        budget.has_room(self.rest.count())
    }

    fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|keys| keys.0.capacity()).sum();
        keys * size_of::<u64>() + self.runs.capacity() * size_of::<(u8, u8)>() + self.rest.bytes()
    }
}

/// Takes the tuples that a piece derives, without most of those that the relation already has.
struct Candidates<'r> {
    sink: &'r Sink,
    rows: &'r Rows,
    found: &'r mut Found,
    /// Packed tuples that are not put away yet, at most `BLOCK`.
    last: Vec<u64>,
}

impl Candidates<'_> {
    /// Take packed tuples, one for each word.
    #[inline]
    fn take<W: Copy>(&mut self, words: &[W], key: impl Fn(W) -> u64, budget: &Budget) -> Run {
        for words in words.chunks(BLOCK) {
            if self.last.len() + words.len() > BLOCK {
                self.put_away(budget)?;
            }
            self.last.extend(words.iter().map(|&word| key(word)));
        }
        Ok(())
    }

    /// Store the last packed tuples. If the relation has most of them already, those are left out.
    fn put_away(&mut self, budget: &Budget) -> Run {
        let looks = self.last.len().div_ceil(LOOK);
        let known = self.last.iter().step_by(LOOK).filter(|&&key| self.sink.contains_key(key)).count();
        if known * 4 >= looks * 3 {
            self.last.retain(|&key| !self.sink.contains_key(key));
        }
        self.found.extend(&self.last, budget)?;
        self.last.clear();
        Ok(())
    }
}

impl Derived for Candidates<'_> {
    fn insert(&mut self, tuple: &[i64], budget: &mut Budget) -> Run<bool> {
        if !self.found.keys.is_empty() {
            match packed(tuple) {
                Some(key) => return self.take(&[key], |key| key, budget).map(|()| true),
                None => {
                    self.put_away(budget)?;
                    self.found.unpack(budget)?;
                }
            }
        }
        if !self.sink.contains(self.rows, tuple) {
            self.found.rest.append(&Rows::default(), tuple)?;
            budget.has_room(self.found.rest.count())?;
        }
        Ok(true)
    }

    fn extend(&mut self, tuple: &mut [i64], column: usize, words: &[u32], budget: &mut Budget) -> Run {
        let other = if tuple.len() == 2 { narrow(tuple[1 - column]) } else { None };
        if let Some(other) = other.filter(|_| !self.found.keys.is_empty()) {
            return match column {
                0 => self.take(words, |word| pack(word as i32, other), budget),
                _ => self.take(words, |word| pack(other, word as i32), budget),
            };
        }
        for &word in words {
            tuple[column] = i64::from(word as i32);
            self.insert(tuple, budget)?;
        }
        Ok(())
    }

    fn contains(&self, tuple: &[i64]) -> bool {
        self.sink.contains(self.rows, tuple)
    }

    const KNOWS: bool = true;

    fn bytes(&self) -> usize {
        self.sink.bytes() + self.found.bytes()
    }
}
