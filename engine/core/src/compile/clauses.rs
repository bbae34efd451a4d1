//! Rules as proofs go through them backwards: from the JSON of `provenance.trace`.

use serde::Deserialize;
use serde_json::Value;

use crate::compile::step::{self, Expression};
use crate::compile::{function, kind, list, text, unexpected, Compiled, Compiler};
use crate::error::Error;
use crate::machine::functor::{Comparison, Functor};
use crate::trace::clause::{Aggregate, Atom, Clause, Range, Term, Test};
use crate::values::{Type, Values};

/// The number of a relation, and terms.
type Given = (usize, Vec<Value>);

#[derive(Deserialize)]
struct GivenClause {
    number: u32,
    head: Vec<Value>,
    body: Vec<Given>,
    variables: usize,
    higher: bool,
    /// Operator, type, and sides.
    tests: Vec<[Value; 4]>,
    denied: Vec<Given>,
    aggregates: Vec<GivenAggregate>,
    /// Variable, type, and terms.
    ranges: Vec<(usize, Value, Vec<Value>)>,
}

#[derive(Deserialize)]
struct GivenAggregate {
    variable: usize,
    function: Value,
    kind: Value,
    target: Value,
    outer: Vec<usize>,
    distinct: bool,
    body: GivenClause,
}

/// The clauses of a relation, whose constants are among `values`.
pub fn clauses(json: &str, values: &mut Values) -> Compiled<Vec<Clause>> {
    let given: Vec<GivenClause> =
        serde_json::from_str(json).map_err(|error| Error::Plan(error.to_string()))?;
    let mut index_on = |_, _: &[usize]| unreachable!("expressions look at no relation");
    let mut compiler = Compiler { values, index_on: &mut index_on, registers: 0, ordinals: false };
    given.into_iter().map(|clause| compiler.clause(clause)).collect()
}

impl Compiler<'_> {
    fn clause(&mut self, given: GivenClause) -> Compiled<Clause> {
        Ok(Clause {
            number: given.number,
            head: self.terms(&given.head)?,
            body: self.atoms(given.body)?,
            variables: given.variables,
            higher: given.higher,
            tests: given.tests.iter().map(|test| self.test(test)).collect::<Compiled<_>>()?,
            denied: self.atoms(given.denied)?,
            aggregates: given
                .aggregates
                .into_iter()
                .map(|given| self.aggregate(given))
                .collect::<Compiled<_>>()?,
            ranges: given
                .ranges
                .iter()
                .map(|(variable, type_, terms)| {
                    Ok(Range { variable: *variable, kind: kind(type_)?, terms: self.terms(terms)? })
                })
                .collect::<Compiled<_>>()?,
            order: Vec::new(),
        })
    }

    fn aggregate(&mut self, given: GivenAggregate) -> Compiled<Aggregate> {
        let target = if given.target.is_null() { None } else { Some(self.expression(&given.target)?) };
        let (function, kind) = (function(&given.function)?, kind(&given.kind)?);
        Ok(Aggregate {
            variable: given.variable,
            fold: step::Aggregate { function, kind, target, steps: Box::default() },
            outer: given.outer,
            distinct: given.distinct,
            body: self.clause(given.body)?,
        })
    }

    fn atoms(&mut self, given: Vec<Given>) -> Compiled<Vec<Atom>> {
        given.into_iter().map(|(relation, terms)| Ok(Atom::new(relation, self.terms(&terms)?))).collect()
    }

    fn terms(&mut self, given: &[Value]) -> Compiled<Vec<Term>> {
        given.iter().map(|term| self.term(term)).collect()
    }

    fn test(&mut self, [operator, kind_name, left, right]: &[Value; 4]) -> Compiled<Test> {
        let Some(comparison) = Comparison::named(text(operator, "an operator")?) else {
            return unexpected("an operator", operator);
        };
        let sides = [self.term(left)?, self.term(right)?];
        let mut variables = Vec::new();
        sides.iter().for_each(|side| side.variables(&mut variables));
        Ok(Test { comparison, kind: kind(kind_name)?, sides, variables: variables.into() })
    }

    fn term(&mut self, given: &Value) -> Compiled<Term> {
        Ok(match list(given, "a term")? {
            [tag] if tag == "any" => Term::Any,
            [tag, parts @ ..] if tag == "record" => Term::Record(self.terms(parts)?.into()),
            _ => Term::new(self.expression(given)?),
        })
    }
}

impl Term {
    fn new(expression: Expression) -> Term {
        use Expression::{Call, Register, Word};
        match &expression {
            Register(variable) => return Term::Variable(variable.0, 0),
            Word(word) => return Term::Word(*word),
            Call(functor, Type::Number | Type::Unsigned, args) => match (functor, &args[..]) {
                (Functor::Add, [Register(variable), Word(more)] | [Word(more), Register(variable)]) => {
                    return Term::Variable(variable.0, *more)
                }
                (Functor::Subtract, [Register(variable), Word(less)]) => {
                    return Term::Variable(variable.0, less.wrapping_neg())
                }
                _ => {}
            },
            _ => {}
        }
        let mut variables = Vec::new();
        read(&expression, &mut variables);
        Term::Computed(expression, variables.into())
    }

    pub fn variables(&self, found: &mut Vec<usize>) {
        match self {
            Term::Variable(variable, _) => found.push(*variable),
            Term::Word(_) | Term::Any => {}
            Term::Record(parts) => parts.iter().for_each(|part| part.variables(found)),
            Term::Computed(_, variables) => found.extend(variables),
        }
    }
}

fn read(expression: &Expression, found: &mut Vec<usize>) {
    match expression {
        Expression::Register(variable) => found.push(variable.0),
        Expression::Word(_) => {}
        Expression::Call(_, _, args) | Expression::Record(args) => {
            args.iter().for_each(|arg| read(arg, found))
        }
    }
}
