//! `Program` and `Solver` for Python.

use std::sync::Arc;

use numpy::{PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{convert, limited, EngineError};
use crate::error::Error;
use crate::program::Database;
use crate::step::RelationId;
use crate::values::Type;
use crate::{program, solver};

/// A program that was read from the JSON of a plan.
#[pyclass(frozen)]
pub struct Program {
    program: Arc<program::Program>,
}

#[pymethods]
impl Program {
    #[new]
    fn new(plan: &str) -> Result<Self, Error> {
        Ok(Program { program: Arc::new(program::Program::new(plan)?) })
    }

    /// Relation name -> sorted tuples, for `outputs` or all output relations.
    #[pyo3(signature = (facts, outputs=None, *, tuples=None, seconds=None))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        facts: &Bound<'py, PyDict>,
        outputs: Option<Vec<String>>,
        tuples: Option<usize>,
        seconds: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (outputs, database) = self.run(py, facts, outputs, tuples, seconds)?;
        convert::answers(py, &self.program, &database, &outputs)
    }

    /// Relation name -> sorted int64 array of shape (tuples, columns), for relations of numbers.
    #[pyo3(signature = (facts, outputs=None, *, tuples=None, seconds=None))]
    fn evaluate_arrays<'py>(
        &self,
        py: Python<'py>,
        facts: &Bound<'py, PyDict>,
        outputs: Option<Vec<String>>,
        tuples: Option<usize>,
        seconds: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (outputs, database) = self.run(py, facts, outputs, tuples, seconds)?;
        let arrays = PyDict::new(py);
        for relation in outputs {
            let schema = self.program.schema(relation);
            if let Some(column) = schema.columns.iter().find(|column| column.kind != Type::Number) {
                let message = format!("`{}` is no array: column `{}` is no number", schema.name, column.name);
                return Err(EngineError::new_err(message));
            }
            let tuples = convert::sorted(&self.program, &database, relation);
            let array = PyArray2::<i64>::zeros(py, [tuples.len(), schema.columns.len()], false);
            for (mut row, tuple) in array.readwrite().as_array_mut().rows_mut().into_iter().zip(tuples) {
                row.iter_mut().zip(tuple).for_each(|(to, &word)| *to = word);
            }
            arrays.set_item(&schema.name, array)?;
        }
        Ok(arrays)
    }

    /// A solver for the keys of a keyed program; `facts` are those of shared relations.
    #[pyo3(signature = (facts, *, tuples=None, seconds=None))]
    fn solver(
        &self,
        py: Python,
        facts: &Bound<PyDict>,
        tuples: Option<usize>,
        seconds: Option<f64>,
    ) -> PyResult<Solver> {
        let mut database = self.program.database();
        insert(&self.program, &mut database, facts)?;
        let solver = limited(py, tuples, seconds, |limits| {
            Ok(solver::Solver::new(self.program.clone(), database, limits)?)
        })?;
        Ok(Solver { solver, tuples, seconds })
    }
}

impl Program {
    fn run(
        &self,
        py: Python,
        facts: &Bound<PyDict>,
        outputs: Option<Vec<String>>,
        tuples: Option<usize>,
        seconds: Option<f64>,
    ) -> PyResult<(Vec<RelationId>, Database)> {
        let outputs = wanted(&self.program, outputs)?;
        let mut database = self.program.database();
        insert(&self.program, &mut database, facts)?;
        let strata = self.program.strata_of(&outputs);
        limited(py, tuples, seconds, |limits| Ok(self.program.evaluate(&mut database, &strata, limits)?))?;
        Ok((outputs, database))
    }
}

/// Solves one key after another. The limits hold for each.
#[pyclass]
pub struct Solver {
    pub solver: solver::Solver,
    pub tuples: Option<usize>,
    pub seconds: Option<f64>,
}

#[pymethods]
impl Solver {
    /// Relation name -> sorted tuples, for the facts of one key.
    #[pyo3(signature = (facts, outputs=None))]
    fn solve<'py>(
        &mut self,
        py: Python<'py>,
        facts: &Bound<'py, PyDict>,
        outputs: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let program = self.solver.program.clone();
        let outputs = wanted(&program, outputs)?;
        self.solver.clear();
        for (relation, _) in convert::relations(&program, facts)? {
            let schema = program.schema(relation);
            if !schema.keyed {
                let message =
                    format!("`{}` is shared by all keys: give its facts to the solver", schema.name);
                return Err(EngineError::new_err(message));
            }
        }
        insert(&program, &mut self.solver.database, facts)?;
        self.evaluate(py, &outputs)
    }
}

impl Solver {
    /// Evaluate over the facts that are in the solver.
    pub fn evaluate<'py>(&mut self, py: Python<'py>, outputs: &[RelationId]) -> PyResult<Bound<'py, PyDict>> {
        let program = self.solver.program.clone();
        let strata = program.strata_of(outputs);
        limited(py, self.tuples, self.seconds, |limits| Ok(self.solver.evaluate(&strata, limits)?))?;
        convert::answers(py, &program, &self.solver.database, outputs)
    }
}

/// The relations that are asked for: those named, or all outputs.
pub fn wanted(program: &program::Program, outputs: Option<Vec<String>>) -> Result<Vec<RelationId>, Error> {
    match outputs {
        Some(names) => names.iter().map(|name| program.relation(name)).collect(),
        None => Ok(program.outputs()),
    }
}

fn insert(program: &program::Program, database: &mut Database, facts: &Bound<PyDict>) -> PyResult<()> {
    let Database { relations, values } = database;
    for (relation, rows) in convert::relations(program, facts)? {
        convert::each_tuple(program, values, relation, 0, &rows, |tuple| {
            relations[relation.0].insert(tuple);
        })?;
    }
    Ok(())
}
