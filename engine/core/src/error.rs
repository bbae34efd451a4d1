//! All errors, as one enum. Messages say what was expected and end with advice.

use std::fmt;
use std::time::Duration;

/// Why a rule stopped. `Program` adds which rule it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    DivisionByZero,
    /// `to_number` and the like of a text that is no number.
    NotANumber(&'static str),
    TooManyTuples(usize),
    /// More than so many bytes.
    TooMuchMemory(usize),
    /// The machine has no more.
    OutOfMemory,
    /// It took longer than this.
    TooSlow(Duration),
    Interrupted,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// This evaluator cannot read the plan: a bug of the front end, not an error of the user.
    Plan(String),
    /// A rule failed; `place` is its file and line, `made` the places of the rules that gave the most tuples.
    Rule {
        place: String,
        fault: Fault,
        made: Vec<(String, usize)>,
    },
    UnknownRelation(String),
    /// Facts or agenda input that do not fit.
    Input(String),
    Interrupted,
}

impl Fault {
    /// Whether the evaluation took too much.
    pub fn is_limit(self) -> bool {
        use Fault::{OutOfMemory, TooManyTuples, TooMuchMemory, TooSlow};
        matches!(self, TooManyTuples(_) | TooMuchMemory(_) | OutOfMemory | TooSlow(_))
    }
}

impl From<Fault> for Error {
    /// Of facts, which no rule has made.
    fn from(fault: Fault) -> Error {
        Error::Input(fault.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::DivisionByZero => write!(f, "division by zero; test the divisor in the rule first"),
            Fault::NotANumber(kind) => write!(f, "a text that is no {kind} cannot be converted"),
            Fault::TooManyTuples(limit) => {
                write!(f, "more than {limit} tuples; bound the recursion, or raise the limit")
            }
            Fault::TooMuchMemory(limit) => {
                let limit = limit.div_ceil(1 << 20);
                write!(f, "more than {limit} MiB of memory; bound the recursion, or raise the limit")
            }
            Fault::OutOfMemory => {
                write!(f, "there is no more memory; bound the recursion, or give fewer facts")
            }
            Fault::TooSlow(limit) => {
                let limit = limit.as_secs_f64();
                write!(f, "more than {limit} seconds; bound the recursion, or raise the limit")
            }
            Fault::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(what) => write!(f, "the plan cannot be read: {what}"),
            Error::Rule { place, fault, made } => {
                write!(f, "{place}: {fault}")?;
                made.iter().try_for_each(|(place, count)| write!(f, "\n  {count} tuples by {place}"))
            }
            Error::UnknownRelation(name) => write!(f, "there is no relation `{name}` in the program"),
            Error::Input(what) => write!(f, "{what}"),
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Error {}
