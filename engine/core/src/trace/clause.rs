//! Rules as proofs go through them.

use std::sync::OnceLock;

use super::relation::Groups;
use crate::compile::step::{self, Expression, Register};
use crate::machine::functor::Comparison;
use crate::values::Type;

#[derive(Clone)]
pub enum Term {
    /// A variable, and the number added to it.
    Variable(usize, i64),
    Word(i64),
    Any,
    Record(Box<[Term]>),
    /// What is computed of variables.
    Computed(Expression, Box<[usize]>),
}

/// A comparison and its variables.
pub struct Test {
    pub comparison: Comparison,
    pub kind: Type,
    pub sides: [Term; 2],
    pub variables: Box<[usize]>,
}

pub struct Atom {
    pub relation: usize,
    pub terms: Vec<Term>,
    pub(super) keys: Vec<Key>,
}

/// A key of an atom's tuples besides its columns: parts of records, or terms computed from its
/// variables.
pub struct Key {
    pub value: Expression,
    /// What it has to be.
    pub known: Term,
    /// By this value the rows that the atom may have.
    pub rows: OnceLock<(Vec<i64>, Groups)>,
}

impl Atom {
    pub fn new(relation: usize, terms: Vec<Term>) -> Self {
        Atom { relation, terms, keys: Vec::new() }
    }

    /// Add the further keys of an atom.
    fn add_keys(&mut self, tests: &[Test]) {
        let (mut inner, mut variables) = (Vec::new(), Vec::new());
        for term in &self.terms {
            term.variables(if matches!(term, Term::Record(_)) { &mut inner } else { &mut variables });
        }
        variables.extend(&inner);
        let mut add = |value, known| self.keys.push(Key { value, known, rows: OnceLock::new() });
        for variable in inner {
            add(Expression::Register(Register(variable)), Term::Variable(variable, 0));
        }
        for test in tests.iter().filter(|test| test.comparison == Comparison::Equal) {
            let [left, right] = &test.sides;
            for (side, known) in [(left, right), (right, left)] {
                if let Term::Computed(value, used) = side {
                    if !used.is_empty() && used.iter().all(|variable| variables.contains(variable)) {
                        add(value.clone(), known.clone());
                    }
                }
            }
        }
    }
}

/// A rule. Only its tests compute, and equations among them give values to variables.
pub struct Clause {
    pub number: u32,
    pub head: Vec<Term>,
    pub body: Vec<Atom>,
    pub variables: usize,
    /// Whether its tuples follow from more than facts.
    pub higher: bool,
    pub tests: Vec<Test>,
    /// Of these no tuple may hold.
    pub denied: Vec<Atom>,
    pub aggregates: Vec<Aggregate>,
    pub ranges: Vec<Range>,
    /// The atoms, those of small relations first.
    pub order: Vec<usize>,
}

/// A fold over all solutions of a body, whose variables are among those of the clause around it.
pub struct Aggregate {
    /// The variable that has its value.
    pub variable: usize,
    pub fold: step::Aggregate,
    /// The variables that the body has of the clause around it.
    pub outer: Vec<usize>,
    /// Whether solutions count once for the values of their variables.
    pub distinct: bool,
    pub body: Clause,
}

/// A variable that takes each number of a range: its start, its end, and its step, if any.
pub struct Range {
    pub variable: usize,
    pub kind: Type,
    pub terms: Vec<Term>,
}

impl Clause {
    /// See how its atoms can be found; `counts` says how many tuples relations have.
    pub(super) fn prepare(&mut self, counts: &[usize]) {
        let Clause { body, order, tests, aggregates, .. } = self;
        aggregates.iter_mut().for_each(|aggregate| aggregate.body.prepare(counts));
        body.iter_mut().for_each(|atom| atom.add_keys(tests));
        *order = (0..body.len()).collect();
        order.sort_by_key(|&atom| counts[body[atom].relation]);
    }
}
