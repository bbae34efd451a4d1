//! `trace::Trace` for Python.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use super::store::Store;
use super::{holding, EngineError, Limits};
use crate::compile::clauses::clauses;
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
    fn words(&self) -> Result<Words<'_>, numpy::AsSliceError> {
        Ok(match self {
            Read::Narrow(words) => Words::Narrow(words.as_slice()?),
            Read::Wide(words) => Words::Wide(words.as_slice()?),
        })
    }
}

/// The first tuple of each round but the first, what is to be added to the number of a round for the height, clauses as
/// JSON, and the facts of an equivalence in the order of their values.
type Derived<'py> = (PyReadonlyArray1<'py, i64>, i64, String, Option<Vec<u32>>);
/// The columns of a relation, how many tuples it has, whether all are facts, and how else they are had, if that is known.
pub type Table<'py> = (Vec<Column>, usize, bool, Option<Derived<'py>>);
type Numbers<'py> = Bound<'py, PyArray1<i64>>;

#[pyclass]
pub struct Trace {
    trace: trace::Trace,
    columns: Vec<Vec<Column>>,
    /// What has the values that words stand for.
    store: Py<Store>,
}

impl Trace {
    pub fn new(store: &Bound<Store>, tables: Vec<Table>) -> PyResult<Self> {
        let mut columns = Vec::new();
        let mut relations = Vec::new();
        let mut inside = store.get().lock(store.py());
        for (words, count, facts, derived) in tables {
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
            relations.push(Relation::new(words.len(), count, origin));
            columns.push(words);
        }
        Ok(Trace { trace: trace::Trace::new(relations), columns, store: store.clone().unbind() })
    }
}

#[pymethods]
impl Trace {
    fn start(&mut self, relation: u32, row: u32) {
        self.trace.start(relation, row);
    }

    fn go(&mut self, py: Python, depth: Option<u32>) -> PyResult<Option<usize>> {
        let read = |column: &Column| match column {
            Column::Narrow(words) => Read::Narrow(words.bind(py).readonly()),
            Column::Wide(words) => Read::Wide(words.bind(py).readonly()),
        };
        let tables: Vec<Vec<Read>> =
            self.columns.iter().map(|columns| columns.iter().map(read).collect()).collect();
        let tables = tables.iter().map(|columns| columns.iter().map(Read::words).collect());
        let tables = tables.collect::<Result<Vec<_>, numpy::AsSliceError>>();
        let tables = tables.map_err(|error| EngineError::new_err(error.to_string()))?;
        let values = &mut self.store.get().lock(py).database.values;
        let depth = depth.unwrap_or(u32::MAX);
        holding(py, Limits::default(), |limits| self.trace.go(&tables, values, depth, limits.interrupted))
    }

    fn tuple(&self, step: usize) -> (u32, u32) {
        (self.trace.steps[step].relation, self.trace.steps[step].row)
    }

    fn answer(&mut self, premises: Vec<(u32, u32)>) {
        self.trace.answer(&premises);
    }

    /// For each step: its relation, its tuple, its clause (or -1 to -4 for a fact, an open step,
    /// one that is asked for, or a path), and where its premises end. Then the premises, as numbers
    /// of steps.
    fn steps<'py>(
        &self,
        py: Python<'py>,
    ) -> (Numbers<'py>, Numbers<'py>, Numbers<'py>, Numbers<'py>, Numbers<'py>) {
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
            numbers(steps.iter().map(|step| step.row.into()).collect()),
            numbers(steps.iter().map(|step| how(step.how)).collect()),
            numbers(steps.iter().map(|step| step.end.into()).collect()),
            numbers(self.trace.premises.iter().map(|&step| step.into()).collect()),
        )
    }
}
