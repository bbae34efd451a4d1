//! A rule in the form in which it runs: steps, each a loop or a test around the steps that follow.

use std::sync::Arc;

use crate::machine::functor::{Comparison, Functor};
use crate::relation::{IndexId, Version};
use crate::values::Type;

/// An index into the relations of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationId(pub usize);

/// An index into the registers of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub usize);

#[derive(Clone, Debug)]
pub enum Expression {
    Register(Register),
    Word(i64),
    Call(Functor, Type, Box<[Expression]>),
    Record(Box<[Expression]>),
}

/// The tuples of a relation that have given values in some columns.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub relation: RelationId,
    pub version: Version,
    /// The index on the bound columns; None where no column is bound.
    pub index: Option<IndexId>,
    /// The values of the bound columns, in the order of the index.
    pub values: Box<[Expression]>,
    /// The first of the registers that hold these values while the search goes on.
    pub keys: Register,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// For every tuple: load columns into registers.
    Scan(Pattern, Box<[(usize, Register)]>),
    Exists(Pattern),
    Absent(Pattern),
    Test(Comparison, Type, Expression, Expression),
    Let(Register, Expression),
    Unpack(Expression, Box<[Option<Register>]>),
    Next(Register),
    /// The number of the round.
    Round(Register),
    /// From, to and step; without a step 1, or -1 where it goes down.
    Range(Register, Type, [Expression; 2], Option<Expression>),
    Aggregate(Register, Aggregate),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Count,
    Sum,
    Min,
    Max,
    Mean,
}

#[derive(Clone, Debug)]
pub struct Aggregate {
    pub function: Function,
    pub kind: Type,
    pub target: Option<Expression>,
    pub steps: Box<[Step]>,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub head: RelationId,
    pub args: Box<[Expression]>,
    pub steps: Box<[Step]>,
    pub registers: usize,
    pub source: usize,
    /// The number of the rule in the plan, and of its order of joins.
    pub number: usize,
    pub order: usize,
    /// The relations that the rule scans: it derives nothing while one of these is empty.
    pub needs: Box<[(RelationId, Version)]>,
    /// The indexes that the body searches.
    pub searches: Box<[(RelationId, Version, IndexId)]>,
    /// The column of the head that alone depends on what the last step loads, where that is a scan of one column.
    pub emit: Option<usize>,
    /// The number of steps at the end that only decide whether the tuple is derived; its columns
    /// are known before them.
    pub cut: usize,
    /// Whether several threads can run it.
    pub plain: bool,
    /// The same rule with its joins in other orders.
    pub orders: Box<[Arc<Rule>]>,
}

impl Rule {
    /// Call `visit` with every relation that the body reads, and whether the rule keeps all that it derives
    /// when that relation grows: it is neither denied nor aggregated over.
    pub fn reads(&self, visit: &mut dyn FnMut(RelationId, bool)) {
        patterns(&self.steps, true, &mut |pattern, grows| visit(pattern.relation, grows));
    }
}

/// Call `visit` with every pattern in steps, and whether the result only grows with the pattern's
/// relation (never, unless it `grows`).
pub fn patterns(steps: &[Step], grows: bool, visit: &mut dyn FnMut(&Pattern, bool)) {
    for step in steps {
        match step {
            Step::Scan(pattern, _) | Step::Exists(pattern) => visit(pattern, grows),
            Step::Absent(pattern) => visit(pattern, false),
            Step::Aggregate(_, aggregate) => patterns(&aggregate.steps, false, visit),
            Step::Test(..)
            | Step::Next(..)
            | Step::Round(..)
            | Step::Let(..)
            | Step::Unpack(..)
            | Step::Range(..) => {}
        }
    }
}

impl Expression {
    /// Whether its value depends on a register.
    pub fn reads(&self, register: Register) -> bool {
        match self {
            Expression::Register(read) => *read == register,
            Expression::Word(_) => false,
            Expression::Call(_, _, args) | Expression::Record(args) => {
                args.iter().any(|arg| arg.reads(register))
            }
        }
    }
}

impl Step {
    /// The registers that it sets, if it neither fails nor makes values.
    fn sets(&self) -> Option<Vec<Register>> {
        let plain =
            |expression: &Expression| matches!(expression, Expression::Register(_) | Expression::Word(_));
        let known = |pattern: &Pattern| pattern.values.iter().all(plain);
        match self {
            Step::Scan(pattern, loads) if known(pattern) => Some(loads.iter().map(|load| load.1).collect()),
            Step::Exists(pattern) | Step::Absent(pattern) if known(pattern) => Some(Vec::new()),
            Step::Unpack(record, targets) if plain(record) => {
                Some(targets.iter().copied().flatten().collect())
            }
            _ => None,
        }
    }
}

/// The column of a head that alone depends on what the last step loads, where that is a scan of one column.
pub fn emitted(args: &[Expression], steps: &[Step]) -> Option<usize> {
    let Some(Step::Scan(_, loads)) = steps.last() else { return None };
    let &[(_, register)] = &**loads else { return None };
    let mut columns = (0..args.len()).filter(|&column| args[column].reads(register));
    let column = columns.next().filter(|_| columns.next().is_none())?;
    matches!(args[column], Expression::Register(_)).then_some(column)
}

/// The number of steps at the end that do not change the tuple, where they hold a loop that can end early.
pub fn cut(args: &[Expression], steps: &[Step]) -> usize {
    if args.iter().any(|arg| !matches!(arg, Expression::Register(_) | Expression::Word(_))) {
        return 0;
    }
    let constant = |step: &&Step| {
        let sets = step.sets();
        sets.is_some_and(|sets| !sets.iter().any(|&register| args.iter().any(|arg| arg.reads(register))))
    };
    let cut = steps.iter().rev().take_while(constant).count();
    let loops = steps[steps.len() - cut..].iter().any(|step| matches!(step, Step::Scan(..)));
    if loops {
        cut
    } else {
        0
    }
}
