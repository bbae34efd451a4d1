//! Runs the body of a rule: nested loops over its steps, with the values of its variables in registers.

use std::ops::Range;

use crate::budget::Budget;
use crate::compile::step::{Aggregate, Expression, Function, Pattern, Register, Rule, Step};
use crate::error::Fault;
use crate::machine::fold::Fold;
use crate::machine::functor::Comparison;
use crate::machine::range::Numbers;
use crate::relation::index::Entries;
use crate::relation::rows::Rows;
use crate::relation::sink::Sink;
use crate::relation::{Matches, Relation};
use crate::values::{Type, Values, NIL};

/// Rows of a scan that are looked through at once for few words.
const SIEVED: usize = 1 << 10;
/// Words are few if there are so many rows for each.
const SELECTIVE: usize = 16;
/// Bits for each of these words.
const BITS: usize = 16;

pub type Run<T = ()> = Result<T, Fault>;

/// Memory that one body after the other uses.
pub struct Scratch {
    registers: Vec<i64>,
    tuple: Vec<i64>,
    fields: Vec<i64>,
    /// The number that the next `Step::Next` gives.
    next: i64,
    /// The number of the round.
    pub round: i64,
    /// How often each step of the rule was come to, and its end; empty unless someone asks.
    pub counts: Vec<u64>,
}

impl Default for Scratch {
    /// With room for most rules.
    fn default() -> Self {
        let [registers, tuple, fields] = [64, 16, 16].map(Vec::with_capacity);
        Scratch { registers, tuple, fields, next: 0, round: 0, counts: Vec::new() }
    }
}

/// Takes the tuples that a body derives.
pub trait Derived {
    /// Take a tuple. False: the steps that only decide whether it is derived have to find more solutions.
    fn insert(&mut self, tuple: &[i64], budget: &mut Budget) -> Run<bool>;

    /// Take `tuple` with each of `words` in one column.
    fn extend(&mut self, tuple: &mut [i64], column: usize, words: &[u32], budget: &mut Budget) -> Run {
        for &word in words {
            tuple[column] = i64::from(word as i32);
            self.insert(tuple, budget)?;
        }
        Ok(())
    }

    /// Whether a tuple is known to be there already.
    fn contains(&self, _: &[i64]) -> bool {
        false
    }

    /// Whether `contains` may be asked.
    const KNOWS: bool = false;

    fn bytes(&self) -> usize;
}

/// The sink of a relation and its rows besides those in the sink.
pub struct Head<'r> {
    pub sink: &'r mut Sink,
    pub rows: &'r Rows,
}

impl Derived for Head<'_> {
    fn insert(&mut self, tuple: &[i64], budget: &mut Budget) -> Run<bool> {
        self.sink.insert(self.rows, tuple, budget)?;
        Ok(true)
    }

    fn extend(&mut self, tuple: &mut [i64], column: usize, words: &[u32], budget: &mut Budget) -> Run {
        self.sink.extend(self.rows, tuple, column, words, budget)
    }

    fn contains(&self, tuple: &[i64]) -> bool {
        self.sink.contains(self.rows, tuple)
    }

    const KNOWS: bool = true;

    fn bytes(&self) -> usize {
        self.sink.bytes()
    }
}

/// A body that runs over relations, which do not change meanwhile. Derived tuples go to `head`.
pub struct Body<'r, 'l, D> {
    rule: &'r Rule,
    relations: &'r [Relation],
    values: &'r mut Values,
    budget: &'r mut Budget<'l>,
    head: &'r mut D,
    scratch: &'r mut Scratch,
    /// Which parts of the tuples of the first scan are looked at, and of how many.
    parts: (Range<usize>, usize),
    /// The aggregate around the steps, if there is one.
    aggregate: Option<&'r Aggregate>,
    fold: Fold,
}

impl<'r, 'l, D: Derived> Body<'r, 'l, D> {
    pub fn new(
        rule: &'r Rule,
        relations: &'r [Relation],
        values: &'r mut Values,
        budget: &'r mut Budget<'l>,
        head: &'r mut D,
        scratch: &'r mut Scratch,
    ) -> Self {
        if scratch.registers.len() < rule.registers {
            scratch.registers.resize(rule.registers, 0);
        }
        let fold = Fold::default();
        let (parts, aggregate) = ((0..1, 1), None);
        Body { rule, relations, values, budget, head, scratch, parts, aggregate, fold }
    }

    /// Look only at some of `count` parts of the rows of the first scan.
    pub fn take_parts(&mut self, parts: Range<usize>, count: usize) {
        self.parts = (parts, count);
    }

    /// Stop where a limit is reached or someone asks.
    fn check(&mut self) -> Run {
        let relations: usize = self.relations.iter().map(Relation::bytes).sum();
        self.budget.check(relations + self.head.bytes() + self.values.bytes())
    }

    /// Count texts that are read: long ones take long.
    fn count(&mut self, texts: &[i64]) -> Run {
        if texts.is_empty() {
            return Ok(());
        }
        let bytes = texts.iter().map(|&text| self.values.text(text).len()).sum();
        if self.budget.has_read(bytes) {
            self.check()?;
        }
        Ok(())
    }

    /// Run steps. True: the tuple that they derive is derived, so that no more solutions need be found.
    pub fn run(&mut self, steps: &'r [Step]) -> Run<bool> {
        if !self.scratch.counts.is_empty() {
            self.count_rows(steps.len(), 1);
        }
        let Some((step, rest)) = steps.split_first() else {
            return self.finish();
        };
        if D::KNOWS && steps.len() == self.rule.cut && self.aggregate.is_none() && self.is_known()? {
            return Ok(false);
        }
        match step {
            Step::Scan(pattern, loads) => self.scan(pattern, loads, steps),
            Step::Exists(pattern) => {
                let exists = self.exists(pattern)?;
                self.when(exists, rest)
            }
            Step::Absent(pattern) => {
                let exists = self.exists(pattern)?;
                self.when(!exists, rest)
            }
            Step::Test(comparison, kind, left, right) => {
                let holds = self.holds(*comparison, kind, left, right)?;
                self.when(holds, rest)
            }
            Step::Let(register, expression) => {
                self.scratch.registers[register.0] = self.value(expression)?;
                self.run(rest)
            }
            Step::Next(register) => {
                self.scratch.registers[register.0] = self.scratch.next;
                self.scratch.next += 1;
                self.run(rest)
            }
            Step::Round(register) => {
                self.scratch.registers[register.0] = self.scratch.round;
                self.run(rest)
            }
            Step::Unpack(record, targets) => {
                let unpacked = self.unpack(record, targets)?;
                self.when(unpacked, rest)
            }
            Step::Range(register, kind, [from, to], step) => {
                let (from, to) = (self.value(from)?, self.value(to)?);
                let step = step.as_ref().map(|step| self.value(step)).transpose()?;
                self.range(*register, Numbers::new(kind, from, to, step), rest)
            }
            Step::Aggregate(register, aggregate) => {
                let outer = self.aggregate.replace(aggregate);
                let fold = std::mem::take(&mut self.fold);
                self.run(&aggregate.steps)?;
                let fold = std::mem::replace(&mut self.fold, fold);
                self.aggregate = outer;
                match fold.result(aggregate) {
                    Some(word) => {
                        self.scratch.registers[register.0] = word;
                        self.run(rest)
                    }
                    None => Ok(false),
                }
            }
        }
    }

    fn scan(&mut self, pattern: &'r Pattern, loads: &'r [(usize, Register)], steps: &'r [Step]) -> Run<bool> {
        let matches = self.search(pattern)?;
        let rest = &steps[1..];
        if rest.is_empty() {
            match (self.aggregate, self.rule.emit, &matches) {
                (None, Some(column), Matches::Entries(Entries::Words(words))) => {
                    return self.emit(column, words);
                }
                (Some(aggregate), _, &Matches::Every(start, end))
                    if aggregate.function == Function::Count =>
                {
                    self.fold.count += (end - start) as u64;
                    return Ok(false);
                }
                _ => {}
            }
        }
        let cuts = steps.len() <= self.rule.cut && self.aggregate.is_none();
        let relation = &self.relations[pattern.relation.0];
        let next = |body: &mut Self, row: usize| -> Run<bool> {
            for &(column, Register(register)) in loads {
                body.scratch.registers[register] = relation.word(row, column);
            }
            Ok(body.step(rest)? && cuts)
        };
        match matches {
            Matches::Every(start, end) => {
                let whole = (0..1, 1);
                let (parts, count) = if steps.len() == self.rule.steps.len() { &self.parts } else { &whole };
                let at = |part: usize| start + (end - start) * part / count;
                let (start, end) = (at(parts.start), at(parts.end));
                let mut sieve = self.sieve(loads, rest, end - start);
                for first in (start..end).step_by(SIEVED) {
                    let last = end.min(first + SIEVED);
                    let Some(words) = &sieve else {
                        for row in first..last {
                            if next(self, row)? {
                                return Ok(true);
                            }
                        }
                        continue;
                    };
                    if self.budget.is_over(last - first) {
                        self.check()?;
                    }
                    let mut found = 0;
                    for row in (first..last).filter(|&row| words.may_have(relation.word(row, words.column))) {
                        found += 1;
                        if next(self, row)? {
                            return Ok(true);
                        }
                    }
                    if found * 2 > SIEVED {
                        sieve = None; // it does not pay
                    }
                }
            }
            Matches::Among(start, end, index) => {
                let keys = pattern.keys.0..pattern.keys.0 + pattern.values.len();
                for row in start..end {
                    if relation.has(row, index, &self.scratch.registers[keys.clone()]) && next(self, row)? {
                        return Ok(true);
                    }
                }
            }
            Matches::Entries(Entries::Rows(rows)) => {
                for &row in rows {
                    if next(self, row as usize)? {
                        return Ok(true);
                    }
                }
            }
            Matches::Entries(Entries::Words(words)) => {
                for &word in words {
                    for &(_, Register(register)) in loads {
                        self.scratch.registers[register] = i64::from(word as i32);
                    }
                    if self.step(rest)? && cuts {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Where the first of the steps after a scan looks for one of few tuples by a column of that scan: the words that
    /// this column has to have. Most of many rows are seen not to have them before anything else is done.
    fn sieve(&self, loads: &[(usize, Register)], rest: &[Step], rows: usize) -> Option<Sieve> {
        let (Step::Scan(pattern, _) | Step::Exists(pattern)) = rest.first()? else { return None };
        let relation = &self.relations[pattern.relation.0];
        let few = rows / SELECTIVE;
        if rows < SIEVED || relation.count(pattern.version) > few || !self.scratch.counts.is_empty() {
            return None;
        }
        let columns = relation.indexed(pattern.index?);
        let found = columns.iter().zip(&*pattern.values).find_map(|(&theirs, value)| {
            let Expression::Register(register) = value else { return None };
            let (own, _) = loads.iter().find(|(_, loaded)| loaded == register)?;
            Some((*own, theirs))
        });
        let (own, theirs) = found?;
        Some(Sieve::new(own, relation.column(pattern.version, theirs)))
    }

    /// Run the steps after a scan for one of its tuples.
    #[inline]
    fn step(&mut self, rest: &'r [Step]) -> Run<bool> {
        if self.budget.is_over(1) {
            self.check()?;
        }
        self.run(rest)
    }

    /// Count rows for which so many steps are left.
    #[cold]
    fn count_rows(&mut self, left: usize, rows: usize) {
        if self.aggregate.is_none() {
            self.scratch.counts[self.rule.steps.len() - left] += rows as u64;
        }
    }

    /// Derive a tuple for each of the words that the last scan finds, which stand in one column.
    fn emit(&mut self, column: usize, words: &[u32]) -> Run<bool> {
        if !self.scratch.counts.is_empty() {
            self.count_rows(0, words.len());
        }
        self.fill_tuple()?;
        self.head.extend(&mut self.scratch.tuple, column, words, self.budget)?;
        if self.budget.is_over(words.len()) {
            self.check()?;
        }
        Ok(!words.is_empty())
    }

    fn holds(&mut self, test: Comparison, kind: &Type, left: &Expression, right: &Expression) -> Run<bool> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        if *kind == Type::Symbol {
            self.count(&[left, right])?;
        }
        Ok(test.holds(kind, left, right, self.values))
    }

    /// Load the fields of a record into registers; nil has none, and does not match.
    fn unpack(&mut self, record: &Expression, targets: &[Option<Register>]) -> Run<bool> {
        let record = self.value(record)?;
        if record == NIL {
            return Ok(false);
        }
        let fields = self.values.fields(record);
        for (target, &field) in targets.iter().zip(fields.iter()) {
            if let Some(register) = target {
                self.scratch.registers[register.0] = field;
            }
        }
        Ok(true)
    }

    fn when(&mut self, holds: bool, rest: &'r [Step]) -> Run<bool> {
        if holds {
            self.run(rest)
        } else {
            Ok(false)
        }
    }

    /// After the last step: derive a tuple, or add to an aggregate.
    fn finish(&mut self) -> Run<bool> {
        if let Some(aggregate) = self.aggregate {
            let word = match &aggregate.target {
                Some(target) => self.value(target)?,
                None => 0,
            };
            self.fold.add(aggregate, word, self.values);
            return Ok(false);
        }
        self.fill_tuple()?;
        self.head.insert(&self.scratch.tuple, self.budget)
    }

    /// Put the tuple that the rule derives into `scratch`.
    fn fill_tuple(&mut self) -> Run {
        self.scratch.tuple.clear();
        for arg in &self.rule.args {
            let word = self.value(arg)?;
            self.scratch.tuple.push(word);
        }
        Ok(())
    }

    /// Whether the tuple that the rule would derive is there already.
    fn is_known(&mut self) -> Run<bool> {
        self.fill_tuple()?;
        Ok(self.head.contains(&self.scratch.tuple))
    }

    /// The values of the bound columns, which stay in their registers.
    #[inline]
    fn key(&mut self, pattern: &Pattern) -> Run<&[i64]> {
        let Register(keys) = pattern.keys;
        for (i, value) in pattern.values.iter().enumerate() {
            self.scratch.registers[keys + i] = self.value(value)?;
        }
        Ok(&self.scratch.registers[keys..keys + pattern.values.len()])
    }

    #[inline]
    fn search(&mut self, pattern: &Pattern) -> Run<Matches<'r>> {
        let relations = self.relations;
        Ok(relations[pattern.relation.0].search(pattern.version, pattern.index, self.key(pattern)?))
    }

    fn exists(&mut self, pattern: &Pattern) -> Run<bool> {
        let relation = &self.relations[pattern.relation.0];
        let key = self.key(pattern)?;
        if relation.is_whole(pattern.version, key.len()) {
            return Ok(relation.contains(key));
        }
        Ok(match relation.search(pattern.version, pattern.index, key) {
            Matches::Every(start, end) => start < end,
            Matches::Entries(Entries::Rows(found) | Entries::Words(found)) => !found.is_empty(),
            Matches::Among(start, end, index) => (start..end).any(|row| relation.has(row, index, key)),
        })
    }

    fn range(&mut self, register: Register, numbers: Numbers, rest: &'r [Step]) -> Run<bool> {
        for number in numbers {
            if self.budget.is_over(1) {
                self.check()?;
            }
            self.scratch.registers[register.0] = number;
            self.run(rest)?;
        }
        Ok(false)
    }

    #[inline(always)]
    fn value(&mut self, expression: &Expression) -> Run<i64> {
        match expression {
            Expression::Register(register) => Ok(self.scratch.registers[register.0]),
            Expression::Word(word) => Ok(*word),
            _ => self.computed(expression),
        }
    }

    /// The value of an expression that has parts.
    fn computed(&mut self, expression: &Expression) -> Run<i64> {
        match expression {
            Expression::Register(_) | Expression::Word(_) => self.value(expression),
            Expression::Call(functor, kind, args) => {
                let mut words = [0; 3];
                for (word, arg) in words.iter_mut().zip(args) {
                    *word = self.value(arg)?;
                }
                self.count(&words[..functor.texts(kind)])?;
                functor.apply(kind, words, self.values)
            }
            Expression::Record(args) => {
                let start = self.scratch.fields.len();
                for arg in args {
                    let word = self.value(arg)?;
                    self.scratch.fields.push(word);
                }
                let record = self.values.record(&self.scratch.fields[start..]);
                self.scratch.fields.truncate(start);
                Ok(record)
            }
        }
    }
}

/// Of a column whether it may have one of some words: most others are seen not to be among them.
struct Sieve {
    column: usize,
    bits: Vec<u64>,
    shift: u32,
}

impl Sieve {
    fn new(column: usize, words: impl ExactSizeIterator<Item = i64>) -> Self {
        let bits = (words.len() * BITS).next_power_of_two().max(u64::BITS as usize);
        let mut sieve =
            Sieve { column, bits: vec![0; bits / u64::BITS as usize], shift: u64::BITS - bits.ilog2() };
        for word in words {
            let (at, bit) = sieve.place(word);
            sieve.bits[at] |= bit;
        }
        sieve
    }

    #[inline]
    fn may_have(&self, word: i64) -> bool {
        let (at, bit) = self.place(word);
        self.bits[at] & bit != 0
    }

    #[inline]
    fn place(&self, word: i64) -> (usize, u64) {
        let bit = (word as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((bit / 64) as usize, 1 << (bit % 64))
    }
}
