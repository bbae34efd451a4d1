//! Runs one rule: nested loops over its steps, with the values of its variables in registers.

use crate::budget::{Budget, Limits};
use crate::error::Fault;
use crate::functor::{float, float_word, Comparison, Functor};
use crate::program::Database;
use crate::relation::{Cursor, Relation};
use crate::step::{Aggregate, Expression, Function, Pattern, Register, RelationId, Rule, Step};
use crate::values::{Type, NIL};

/// How many sources `Machine::busiest` names.
const BUSIEST: usize = 3;

/// The loops and memory that all rules of an evaluation share.
pub struct Machine<'a> {
    pub database: &'a mut Database,
    budget: Budget<'a>,
    /// How many tuples the rules of each source have derived.
    made: Vec<usize>,
    registers: Vec<i64>,
    tuple: Vec<i64>,
    fields: Vec<i64>,
    fold: Fold,
    /// The number that the next `Step::Next` gives.
    next: i64,
}

/// The end of a body: after its last step it derives a tuple, or adds to an aggregate.
#[derive(Clone, Copy)]
enum Goal<'p> {
    Head(&'p Rule),
    Fold(&'p Aggregate),
}

/// An aggregate so far.
#[derive(Clone, Copy, Default)]
struct Fold {
    count: u64,
    word: i64,
}

type Run<T = ()> = Result<T, Fault>;

impl<'a> Machine<'a> {
    /// For rules of so many `sources`.
    pub fn new(database: &'a mut Database, limits: &'a Limits<'a>, sources: usize) -> Self {
        Machine {
            database,
            budget: Budget::new(limits),
            made: vec![0; sources],
            registers: Vec::new(),
            tuple: Vec::new(),
            fields: Vec::new(),
            fold: Fold::default(),
            next: 0,
        }
    }

    /// Derive all tuples that a rule gives now.
    pub fn apply(&mut self, rule: &Rule) -> Run {
        let relations = &self.database.relations;
        if rule.needs.iter().any(|&(relation, version)| relations[relation.0].is_void(version)) {
            return Ok(());
        }
        if self.registers.len() < rule.registers {
            self.registers.resize(rule.registers, 0);
        }
        let before = self.budget.derived;
        let result = self.run(&rule.steps, Goal::Head(rule));
        self.made[rule.source] += self.budget.derived - before;
        result
    }

    /// Close a relation over its facts.
    pub fn close(&mut self, relation: RelationId) -> Run {
        self.database.relations[relation.0].close(&mut self.budget)
    }

    /// The sources that have derived the most tuples, and how many.
    pub fn busiest(&self) -> Vec<(usize, usize)> {
        let mut made: Vec<_> = self.made.iter().copied().enumerate().filter(|pair| pair.1 > 0).collect();
        made.sort_by_key(|&(source, count)| (std::cmp::Reverse(count), source));
        made.truncate(BUSIEST);
        made.retain(|&(_, count)| count >= self.budget.derived / 100);
        made
    }

    /// Stop at once where the time is over or someone asks.
    pub fn start(&mut self) -> Run {
        self.budget.check(0)
    }

    /// Stop where a limit is reached or someone asks.
    fn check(&mut self) -> Run {
        let relations: usize = self.database.relations.iter().map(Relation::bytes).sum();
        self.budget.check(relations + self.database.values.bytes())
    }

    /// Count texts that are read: long ones take long.
    fn count(&mut self, texts: &[i64]) -> Run {
        if texts.is_empty() {
            return Ok(());
        }
        let bytes = texts.iter().map(|&text| self.database.values.text(text).len()).sum();
        if self.budget.has_read(bytes) {
            self.check()?;
        }
        Ok(())
    }

    fn run(&mut self, steps: &[Step], goal: Goal) -> Run {
        let Some((step, rest)) = steps.split_first() else {
            return self.finish(goal);
        };
        match step {
            Step::Scan(pattern, loads) => {
                let mut cursor = self.search(pattern)?;
                while let Some(row) = self.find(pattern, &mut cursor) {
                    if self.budget.is_over() {
                        self.check()?;
                    }
                    let tuple = self.database.relations[pattern.relation.0].tuple(row);
                    for &(column, Register(register)) in loads {
                        self.registers[register] = tuple[column];
                    }
                    self.run(rest, goal)?;
                }
                Ok(())
            }
            Step::Exists(pattern) => {
                let exists = self.exists(pattern)?;
                self.when(exists, rest, goal)
            }
            Step::Absent(pattern) => {
                let exists = self.exists(pattern)?;
                self.when(!exists, rest, goal)
            }
            Step::Test(comparison, kind, left, right) => {
                let holds = self.holds(*comparison, kind, left, right)?;
                self.when(holds, rest, goal)
            }
            Step::Let(register, expression) => {
                self.registers[register.0] = self.value(expression)?;
                self.run(rest, goal)
            }
            Step::Next(register) => {
                self.registers[register.0] = self.next;
                self.next += 1;
                self.run(rest, goal)
            }
            Step::Unpack(record, targets) => {
                let unpacked = self.unpack(record, targets)?;
                self.when(unpacked, rest, goal)
            }
            Step::Range(register, kind, bounds) => self.range(*register, kind, bounds, rest, goal),
            Step::Aggregate(register, aggregate) => {
                let outer = std::mem::take(&mut self.fold);
                self.run(&aggregate.steps, Goal::Fold(aggregate))?;
                let fold = std::mem::replace(&mut self.fold, outer);
                match fold.result(aggregate) {
                    Some(word) => {
                        self.registers[register.0] = word;
                        self.run(rest, goal)
                    }
                    None => Ok(()),
                }
            }
        }
    }

    fn holds(&mut self, test: Comparison, kind: &Type, left: &Expression, right: &Expression) -> Run<bool> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        if *kind == Type::Symbol {
            self.count(&[left, right])?;
        }
        test.holds(kind, left, right, &self.database.values)
    }

    /// Load the fields of a record into registers; nil has none, and does not match.
    fn unpack(&mut self, record: &Expression, targets: &[Option<Register>]) -> Run<bool> {
        let record = self.value(record)?;
        if record == NIL {
            return Ok(false);
        }
        let fields = self.database.values.fields(record);
        for (target, &field) in targets.iter().zip(fields.iter()) {
            if let Some(register) = target {
                self.registers[register.0] = field;
            }
        }
        Ok(true)
    }

    fn when(&mut self, holds: bool, rest: &[Step], goal: Goal) -> Run {
        if holds {
            self.run(rest, goal)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, goal: Goal) -> Run {
        match goal {
            Goal::Head(rule) => {
                self.tuple.clear();
                for arg in &rule.args {
                    let word = self.value(arg)?;
                    self.tuple.push(word);
                }
                self.database.relations[rule.head.0].insert(&self.tuple, &mut self.budget)?;
            }
            Goal::Fold(aggregate) => {
                let word = match &aggregate.target {
                    Some(target) => self.value(target)?,
                    None => 0,
                };
                self.fold.add(aggregate, word, &self.database.values);
            }
        }
        Ok(())
    }

    fn search(&mut self, pattern: &Pattern) -> Run<Cursor> {
        let Register(keys) = pattern.keys;
        for (i, value) in pattern.values.iter().enumerate() {
            self.registers[keys + i] = self.value(value)?;
        }
        let key = &self.registers[keys..keys + pattern.values.len()];
        let relation = &mut self.database.relations[pattern.relation.0];
        relation.search(pattern.version, pattern.index, key)
    }

    fn find(&self, pattern: &Pattern, cursor: &mut Cursor) -> Option<usize> {
        let Register(keys) = pattern.keys;
        let key = &self.registers[keys..keys + pattern.values.len()];
        self.database.relations[pattern.relation.0].find(cursor, pattern.index, key)
    }

    fn exists(&mut self, pattern: &Pattern) -> Run<bool> {
        let mut cursor = self.search(pattern)?;
        Ok(self.find(pattern, &mut cursor).is_some())
    }

    fn range(
        &mut self,
        register: Register,
        kind: &Type,
        bounds: &[Expression; 3],
        rest: &[Step],
        goal: Goal,
    ) -> Run {
        let [from, to, step] = bounds;
        let (mut at, to, step) = (self.value(from)?, self.value(to)?, self.value(step)?);
        let less = |a, b| match kind {
            Type::Unsigned => (a as u64) < (b as u64),
            Type::Float => float(a) < float(b),
            _ => a < b,
        };
        let upwards = less(0, step);
        if step == 0 {
            self.registers[register.0] = at;
            return self.when(at != to, rest, goal);
        }
        while if upwards { less(at, to) } else { less(to, at) } {
            if self.budget.is_over() {
                self.check()?;
            }
            self.registers[register.0] = at;
            self.run(rest, goal)?;
            let next = Functor::Add.apply(kind, [at, step, 0], &mut self.database.values)?;
            if less(at, next) != upwards {
                break; // the end of the numbers
            }
            at = next;
        }
        Ok(())
    }

    fn value(&mut self, expression: &Expression) -> Run<i64> {
        match expression {
            Expression::Register(register) => Ok(self.registers[register.0]),
            Expression::Word(word) => Ok(*word),
            Expression::Call(functor, kind, args) => {
                let mut words = [0; 3];
                for (word, arg) in words.iter_mut().zip(args) {
                    *word = self.value(arg)?;
                }
                self.count(&words[..functor.texts(kind)])?;
                functor.apply(kind, words, &mut self.database.values)
            }
            Expression::Record(args) => {
                let start = self.fields.len();
                for arg in args {
                    let word = self.value(arg)?;
                    self.fields.push(word);
                }
                let record = self.database.values.record(&self.fields[start..]);
                self.fields.truncate(start);
                Ok(record)
            }
        }
    }
}

impl Fold {
    fn add(&mut self, aggregate: &Aggregate, word: i64, values: &crate::values::Values) {
        let kind = &aggregate.kind;
        self.count += 1;
        self.word = match (aggregate.function, kind) {
            (Function::Count, _) => 0,
            (Function::Min | Function::Max, _) if self.count == 1 => word,
            (Function::Min, _) if values.compare(kind, &[], word, self.word).is_lt() => word,
            (Function::Max, _) if values.compare(kind, &[], word, self.word).is_gt() => word,
            (Function::Min | Function::Max, _) => self.word,
            (Function::Mean, Type::Number) => float_word(float(self.word) + word as f64),
            (Function::Mean, Type::Unsigned) => float_word(float(self.word) + word as u64 as f64),
            (Function::Sum | Function::Mean, Type::Float) => float_word(float(self.word) + float(word)),
            (Function::Sum | Function::Mean, _) => self.word.wrapping_add(word),
        };
    }

    /// The value of the aggregate; None where it has none.
    fn result(self, aggregate: &Aggregate) -> Option<i64> {
        match aggregate.function {
            Function::Count => Some(self.count as i64),
            Function::Sum => Some(self.word),
            Function::Min | Function::Max => (self.count > 0).then_some(self.word),
            Function::Mean => (self.count > 0).then(|| float_word(float(self.word) / self.count as f64)),
        }
    }
}
