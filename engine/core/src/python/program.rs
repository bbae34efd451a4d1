//! `Program` and `Solver` for Python.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::{PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;

use super::store::Store;
use super::{convert, holding, letting_go, EngineError, Limits};
use crate::agenda::solver;
use crate::compile::step::RelationId;
use crate::error::Error;
use crate::program;
use crate::relation::Database;
use crate::values::Type;

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
    #[pyo3(signature = (facts, outputs=None, limits=Limits::default()))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        facts: &Bound<'py, PyDict>,
        outputs: Option<Vec<String>>,
        limits: Limits,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (outputs, database) = self.run(py, facts, outputs, limits)?;
        convert::answers(py, &self.program, &database, &outputs)
    }

    /// Relation name -> sorted int64 array of shape (tuples, columns), for relations of numbers.
    #[pyo3(signature = (facts, outputs=None, limits=Limits::default()))]
    fn evaluate_arrays<'py>(
        &self,
        py: Python<'py>,
        facts: &Bound<'py, PyDict>,
        outputs: Option<Vec<String>>,
        limits: Limits,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (outputs, database) = self.run(py, facts, outputs, limits)?;
        let arrays = PyDict::new(py);
        for relation in outputs {
            let schema = self.program.schema(relation);
            if let Some(column) = schema.columns.iter().find(|column| column.kind != Type::Number) {
                let message = format!("`{}` is no array: column `{}` is no number", schema.name, column.name);
                return Err(EngineError::new_err(message));
            }
            let tuples = database.relations[relation.0].tuples();
            let tuples = convert::sorted(&self.program, &database, relation, &tuples)?;
            let array = PyArray2::<i64>::zeros(py, [tuples.len(), schema.columns.len()], false);
            for (mut row, tuple) in array.readwrite().as_array_mut().rows_mut().into_iter().zip(tuples) {
                row.iter_mut().zip(tuple).for_each(|(to, &word)| *to = word);
            }
            arrays.set_item(&schema.name, array)?;
        }
        Ok(arrays)
    }

    /// The program with facts that come bit by bit.
    fn store(&self) -> Store {
        Store::new(self.program.clone())
    }

    /// A solver for the keys of a keyed program; `facts` are the facts of shared relations.
    #[pyo3(signature = (facts, limits=Limits::default()))]
    fn solver(&self, py: Python, facts: &Bound<PyDict>, limits: Limits) -> PyResult<Solver> {
        let mut database = self.program.database();
        insert(&self.program, &mut database, convert::relations(&self.program, facts)?)?;
        let program = self.program.clone();
        let solver = letting_go(py, limits, |limits| solver::Solver::new(program, database, limits))?;
        Ok(Solver { solver: Mutex::new(solver), limits })
    }
}

impl Program {
    fn run(
        &self,
        py: Python,
        facts: &Bound<PyDict>,
        outputs: Option<Vec<String>>,
        limits: Limits,
    ) -> PyResult<(Vec<RelationId>, Database)> {
        let outputs = wanted(&self.program, outputs)?;
        let mut database = self.program.database();
        insert(&self.program, &mut database, convert::relations(&self.program, facts)?)?;
        self.program.note_appearances(&mut database);
        let strata = self.program.strata_of(&outputs);
        let program = &self.program;
        letting_go(py, limits, |limits| program.evaluate(&mut database, &strata, limits))?;
        Ok((outputs, database))
    }
}

/// Solves one key after another. The limits hold for each.
#[pyclass(frozen)]
pub struct Solver {
    solver: Mutex<solver::Solver>,
    pub limits: Limits,
}

#[pymethods]
impl Solver {
    /// Relation name -> sorted tuples, for the facts of one key.
    #[pyo3(signature = (facts, outputs=None))]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        facts: &Bound<'py, PyDict>,
        outputs: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut solver = self.lock(py);
        let program = solver.program.clone();
        let outputs = wanted(&program, outputs)?;
        solver.clear();
        let facts = convert::relations(&program, facts)?;
        for &(relation, _) in &facts {
            let schema = program.schema(relation);
            if !schema.keyed {
                let message =
                    format!("`{}` is shared by all keys: give its facts to the solver", schema.name);
                return Err(EngineError::new_err(message));
            }
        }
        insert(&program, &mut solver.database, facts)?;
        evaluate(py, &mut solver, self.limits, &outputs)
    }
}

impl Solver {
    /// The solver itself, for one thread at a time.
    pub fn lock(&self, py: Python) -> MutexGuard<'_, solver::Solver> {
        self.solver.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evaluate over the facts that are in a solver.
pub fn evaluate<'py>(
    py: Python<'py>,
    solver: &mut solver::Solver,
    limits: Limits,
    outputs: &[RelationId],
) -> PyResult<Bound<'py, PyDict>> {
    let program = solver.program.clone();
    holding(py, limits, |limits| solver.answer(outputs, limits))?;
    convert::answers(py, &program, &solver.database, outputs)
}

/// The relations that are asked for: those named, or all outputs.
pub fn wanted(program: &program::Program, outputs: Option<Vec<String>>) -> Result<Vec<RelationId>, Error> {
    match outputs {
        Some(names) => names.iter().map(|name| program.relation(name)).collect(),
        None => Ok(program.outputs()),
    }
}

fn insert(program: &program::Program, database: &mut Database, facts: convert::Facts) -> PyResult<()> {
    let Database { relations, values } = database;
    for (relation, rows) in facts {
        let relation_rows = &mut relations[relation.0];
        relation_rows.reserve(rows.len().unwrap_or(0)).map_err(Error::from)?;
        convert::each_tuple(program, values, relation, 0, 0, &rows, |tuple| Ok(relation_rows.give(tuple)?))?;
    }
    Ok(())
}
