//! A rule in the form in which it runs: steps, each a loop or a test around the steps that follow.

use crate::functor::{Comparison, Functor};
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
    Range(Register, Type, [Expression; 3]),
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
    /// The relations that the rule scans: it derives nothing while one of these is empty.
    pub needs: Box<[(RelationId, Version)]>,
}

impl Rule {
    /// Call `visit` with every relation that the body reads, and whether the rule keeps all that it derives
    /// when that relation grows: it is neither denied nor aggregated over.
    pub fn reads(&self, visit: &mut dyn FnMut(RelationId, bool)) {
        read(&self.steps, true, visit);
    }
}

fn read(steps: &[Step], grows: bool, visit: &mut dyn FnMut(RelationId, bool)) {
    for step in steps {
        match step {
            Step::Scan(pattern, _) | Step::Exists(pattern) => visit(pattern.relation, grows),
            Step::Absent(pattern) => visit(pattern.relation, false),
            Step::Aggregate(_, aggregate) => read(&aggregate.steps, false, visit),
            Step::Test(..) | Step::Next(..) | Step::Let(..) | Step::Unpack(..) | Step::Range(..) => {}
        }
    }
}
