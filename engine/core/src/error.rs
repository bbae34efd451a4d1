//! Everything that can go wrong, as one enum. Messages say what was expected and end with advice.

use std::fmt;

/// Why a rule stopped. `Program` adds which rule it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    DivisionByZero,
    /// `to_number` and the like of a text that is no number.
    NotANumber(&'static str),
    BadPattern,
    TooManyTuples(usize),
    TooSlow,
    Interrupted,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// The plan is not what this evaluator reads: a mistake of the front end, not of the user.
    Plan(String),
    /// A rule failed; `place` is its file and line.
    Rule {
        place: String,
        fault: Fault,
    },
    UnknownRelation(String),
    /// Facts or agenda input that do not fit.
    Input(String),
    Interrupted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::DivisionByZero => write!(f, "division by zero; test the divisor in the rule first"),
            Fault::NotANumber(kind) => write!(f, "a text that is no {kind} cannot be converted"),
            Fault::BadPattern => write!(f, "the pattern of `match` is not a regular expression"),
            Fault::TooManyTuples(limit) => {
                write!(f, "more than {limit} tuples; raise the limit or bound the recursion")
            }
            Fault::TooSlow => write!(f, "the time limit was reached; raise it or bound the recursion"),
            Fault::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(what) => write!(f, "the plan cannot be read: {what}"),
            Error::Rule { place, fault } => write!(f, "{place}: {fault}"),
            Error::UnknownRelation(name) => write!(f, "there is no relation `{name}` in the program"),
            Error::Input(what) => write!(f, "{what}"),
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Error {}
