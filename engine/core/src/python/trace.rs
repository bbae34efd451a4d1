//! `trace::Trace` for Python.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use super::store::Store;
use super::{holding, EngineError, Limits};
use crate::compile::clauses::clauses;
use crate::compile::step::RelationId;
use crate::relation::Database;
use crate::trace::relation::{Equivalence, Origin, Relation, Words};
use crate::trace::{self, How};

/// The words of a column, in 32 or 64 bits.
#[derive(FromPyObject)]
pub enum Column {
    #[pyo3(transparent)]
    Narrow(Py<PyArray1<i32>>),
    #[pyo3(transparent)]
    Wide(Py<PyArray1<i64>>),
}

enum Read<'py> {
    Narrow(PyReadonlyArray1<'py, i32>),
    Wide(PyReadonlyArray1<'py, i64>),
}

impl Read<'_> {
    fn words(&self) -> PyResult<Words<'_>> {
        let words = match self {
            Read::Narrow(words) => words.as_slice().map(|words| Words::Narrow(words, 1)),
            Read::Wide(words) => words.as_slice().map(|words| Words::Wide(words, 1)),
        };
        words.map_err(|error| EngineError::new_err(error.to_string()))
    }
}

/// The tuples of a relation: columns, or the name of a relation of the store, as it is then.
#[derive(FromPyObject)]
pub enum Tuples {
    #[pyo3(transparent)]
    Stored(String),
    #[pyo3(transparent)]
    Columns(Vec<Column>),
}

/// The first tuple of each round but the first, what is to be added to the number of a round for the height, clauses as
/// JSON, and the facts of an equivalence in the order of their values.
type Derived<'py> = (PyReadonlyArray1<'py, i64>, i64, String, Option<Vec<u32>>);
/// A relation's tuples, how many they are and of how many columns, whether all are facts, and how else they are had, if
/// that is known.
pub type Table<'py> = (Tuples, usize, usize, bool, Option<Derived<'py>>);
type Numbers<'py> = Bound<'py, PyArray1<i64>>;

/// The tuples of a relation, as `Tuples`.
enum Source {
    Stored(RelationId),
    Columns(Vec<Column>),
}

#[pyclass]
pub struct Trace {
    trace: trace::Trace,
    tables: Vec<Source>,
    /// What has the values that words stand for.
    store: Py<Store>,
}

impl Trace {
    pub fn new(store: &Bound<Store>, tables: Vec<Table>) -> PyResult<Self> {
        let mut sources = Vec::new();
        let mut relations = Vec::new();
        let mut inside = store.get().lock(store.py());
        for (tuples, count, width, facts, derived) in tables {
            let origin = match derived {
                _ if facts => Origin::Facts,
                None => Origin::Asked,
                Some((starts, offset, json, facts)) => Origin::Clauses {
                    starts: starts.as_array().iter().map(|&start| start as usize).collect(),
                    offset,
                    clauses: clauses(&json, &mut inside.database.values)?,
                    equivalence: facts.map(Equivalence::new),
                },
            };
            relations.push(Relation::new(width, count, origin));
            sources.push(match tuples {
                Tuples::Stored(name) => Source::Stored(inside.program.relation(&name)?),
                Tuples::Columns(columns) => Source::Columns(columns),
            });
        }
        Ok(Trace { trace: trace::Trace::new(relations), tables: sources, store: store.clone().unbind() })
    }
}

/// The arrays among the columns of tables.
fn read<'py>(py: Python<'py>, tables: &[Source]) -> Vec<Vec<Read<'py>>> {
    let read = |column: &Column| match column {
        Column::Narrow(words) => Read::Narrow(words.bind(py).readonly()),
        Column::Wide(words) => Read::Wide(words.bind(py).readonly()),
    };
    let arrays = |source: &Source| match source {
        Source::Stored(_) => Vec::new(),
        Source::Columns(columns) => columns.iter().map(read).collect(),
    };
    tables.iter().map(arrays).collect()
}

/// The words of tables, of which the arrays have been read.
fn words<'a>(
    tables: &[Source],
    read: &'a [Vec<Read>],
    relations: &'a [crate::relation::Relation],
) -> PyResult<Vec<Vec<Words<'a>>>> {
    let words = |(source, read): (&Source, &'a Vec<Read>)| match source {
        Source::Stored(RelationId(relation)) => {
            let relation = &relations[*relation];
            Ok(Words::columns(relation.rows(), relation.arity()))
        }
        Source::Columns(_) => read.iter().map(Read::words).collect(),
    };
    tables.iter().zip(read).map(words).collect()
}

#[pymethods]
impl Trace {
    fn start(&mut self, relation: u32, row: u32) {
        self.trace.start(relation, row);
    }

    fn go(&mut self, py: Python, depth: Option<u32>) -> PyResult<Option<usize>> {
        let Trace { trace, tables, store } = self;
        let store = &mut *store.get().lock(py);
        let Database { relations, values } = &mut store.database;
        let read = read(py, tables);
        let tables = words(tables, &read, relations)?;
        let depth = depth.unwrap_or(u32::MAX);
        holding(py, Limits::default(), |limits| trace.go(&tables, values, depth, limits.interrupted))
    }

    /// For each relation the words of its tuples in the steps, column by column, in the order of the steps.
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Vec<Vec<Numbers<'py>>>> {
        let store = &*self.store.get().lock(py);
        let read = read(py, &self.tables);
        let tables = words(&self.tables, &read, &store.database.relations)?;
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); tables.len()];
        self.trace.steps.iter().for_each(|step| rows[step.relation as usize].push(step.row as usize));
        let of = |(columns, rows): (&Vec<Words>, &Vec<usize>)| {
            let words = |column: &Words| rows.iter().map(|&row| column.word(row)).collect::<Vec<_>>();
            columns.iter().map(|column| words(column).into_pyarray(py)).collect()
        };
        Ok(tables.iter().zip(&rows).map(of).collect())
    }

    fn tuple(&self, step: usize) -> (u32, u32) {
        (self.trace.steps[step].relation, self.trace.steps[step].row)
    }

    fn answer(&mut self, premises: Vec<(u32, u32)>) {
        self.trace.answer(&premises);
    }

    /// For each step: its relation, its clause (or -1 to -4 for a fact, an open step,
    /// one that is asked for, or a path), and where its premises end. Then the premises, as numbers
    /// of steps.
    fn steps<'py>(&self, py: Python<'py>) -> (Numbers<'py>, Numbers<'py>, Numbers<'py>, Numbers<'py>) {
        let how = |how: How| match how {
            How::Fact => -1,
            How::Open => -2,
            How::Asked => -3,
            How::Path => -4,
            How::Clause(number) => number as i64,
        };
        let steps = &self.trace.steps;
        let numbers = |numbers: Vec<i64>| numbers.into_pyarray(py);
        (
            numbers(steps.iter().map(|step| step.relation.into()).collect()),
            numbers(steps.iter().map(|step| how(step.how)).collect()),
            numbers(steps.iter().map(|step| step.end.into()).collect()),
            numbers(self.trace.premises.iter().map(|&step| step.into()).collect()),
        )
    }
}
