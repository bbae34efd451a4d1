//! `Agenda` for Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList};

use super::program::{evaluate, wanted, Solver};
use super::{convert, letting_go, EngineError};
use crate::agenda::facts::{tuples, FactSet};
use crate::agenda::graph::{check, Graph, Retirement, RetirementArrays};
use crate::agenda::{self, Pass, State};
use crate::error::Error;

type Numbers<'py> = PyReadonlyArray1<'py, i32>;
type PyLists<'py> = (Numbers<'py>, Numbers<'py>);
/// See `Retirement`.
#[derive(FromPyObject)]
struct PyRetirement<'py>(
    Numbers<'py>,
    PyLists<'py>,
    PyLists<'py>,
    Numbers<'py>,
    PyLists<'py>,
    Numbers<'py>,
    Numbers<'py>,
);

impl PyRetirement<'_> {
    fn arrays(&self) -> PyResult<RetirementArrays<'_>> {
        let PyRetirement(keepers, inside, uses, makers, users, waits, later) = self;
        Ok(RetirementArrays {
            keepers: keepers.as_slice()?,
            inside: lists(inside)?,
            uses: lists(uses)?,
            makers: makers.as_slice()?,
            users: lists(users)?,
            waits: waits.as_slice()?,
            later: later.as_slice()?,
        })
    }
}

fn lists<'a>(lists: &'a PyLists) -> PyResult<[&'a [i32]; 2]> {
    Ok([lists.0.as_slice()?, lists.1.as_slice()?])
}

/// Kind of pass, its items and the static facts of each class.
type PyPass<'py> = (bool, Numbers<'py>, Numbers<'py>);
/// Turns, solved neighbourhoods, changes, seconds.
type PassStatistics = (usize, usize, usize, f64);
/// Contents of the cells, log of shape (changes, 6), statistics of the passes.
type PyOutcome<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray2<i32>>, Vec<PassStatistics>);

#[pyclass(frozen)]
pub struct Agenda {
    solver: Py<Solver>,
    agenda: Mutex<agenda::Agenda>,
}

#[pymethods]
impl Agenda {
    /// `state`: state relation -> its successor; `changed`: the relation of slots that get new content;
    /// `spread`: the state relations that the first content of a cell brings to its companions.
    #[new]
    fn new(
        py: Python,
        solver: Py<Solver>,
        state: &Bound<PyDict>,
        changed: &str,
        spread: Vec<String>,
    ) -> PyResult<Self> {
        let program = solver.get().lock(py).program.clone();
        let pairs = state.iter().map(|(now, next)| {
            Ok(State { now: program.relation(now.extract()?)?, next: program.relation(next.extract()?)? })
        });
        let state = pairs.collect::<PyResult<Vec<_>>>()?;
        let spread = spread.iter().map(|name| program.relation(name)).collect::<Result<_, _>>()?;
        let agenda = agenda::Agenda::new(&program, state, program.relation(changed)?, spread)?;
        Ok(Agenda { solver, agenda: Mutex::new(agenda) })
    }

    /// The number of these static facts.
    #[pyo3(name = "static")]
    fn intern_static(&self, py: Python, facts: &Bound<PyDict>) -> PyResult<u32> {
        let facts = self.fact_set(py, facts, 0)?;
        Ok(self.lock(py).intern_static(&facts).0)
    }

    /// The number of this content: state relation -> tuples without the slot.
    fn content(&self, py: Python, facts: &Bound<PyDict>) -> PyResult<u32> {
        let program = self.solver.get().lock(py).program.clone();
        let mut agenda = self.lock(py);
        for (relation, _) in convert::relations(&program, facts)? {
            if !agenda.is_state(relation) {
                let name = &program.schema(relation).name;
                return Err(EngineError::new_err(format!("`{name}` is no state relation")));
            }
        }
        let facts = self.fact_set(py, facts, 1)?;
        Ok(agenda.intern_content(&facts).0)
    }

    /// The content with this number: state relation -> sorted tuples without the slot.
    fn facts<'py>(&self, py: Python<'py>, content: i32) -> PyResult<Bound<'py, PyDict>> {
        let agenda = self.lock(py);
        let solver = self.solver.get().lock(py);
        let (program, values) = (&solver.program, &solver.database.values);
        let facts = PyDict::new(py);
        for (relation, words) in tuples(agenda.content(content)?) {
            let name = &program.schema(relation).name;
            let tuple = convert::to_tuple(py, program, values, relation, 1, words)?;
            match facts.get_item(name)? {
                Some(list) => list.cast_into::<PyList>()?.append(tuple)?,
                None => facts.set_item(name, PyList::new(py, [tuple])?)?,
            }
        }
        for list in facts.values() {
            list.cast_into::<PyList>()?.sort()?;
        }
        Ok(facts)
    }

    #[allow(clippy::too_many_arguments)]
    fn run<'py>(
        &self,
        py: Python<'py>,
        classes: Numbers<'py>,
        slots: PyLists<'py>,
        place_cell: Numbers<'py>,
        cells: PyLists<'py>,
        companions: PyLists<'py>,
        neighbours: PyLists<'py>,
        retirement: PyRetirement<'py>,
        contents: Numbers<'py>,
        passes: Vec<PyPass<'py>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyOutcome<'py>> {
        let classes = classes.as_slice()?;
        let mut contents = contents.as_slice()?.to_vec();
        let graph = Graph::new(
            classes,
            lists(&slots)?,
            place_cell.as_slice()?,
            contents.len(),
            (lists(&cells)?, lists(&companions)?),
            lists(&neighbours)?,
            Retirement::new(classes.len(), retirement.arrays()?)?,
        )?;
        let checked = checked(&passes, classes, retirement.arrays()?.later)?;
        let (mut agenda, mut solver) = (self.lock(py), self.solver.get().lock(py));
        let (agenda, solver) = (&mut *agenda, &mut *solver);
        let mut failure = None;
        let ran = letting_go(py, self.solver.get().limits, |limits| {
            let mut report = |pass: usize, turns: usize| {
                let told = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (pass, turns)).map(|_| ()))
                });
                told.map_err(|error| {
                    failure = Some(error);
                    Error::Interrupted
                })
            };
            agenda.run(solver, &graph, &mut contents, &checked, limits, &mut report)
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let (log, statistics) = ran?;
        let statistics = statistics.iter().map(|s| (s.turns, s.solved, s.changes, s.seconds)).collect();
        let log = PyArray2::from_owned_array(py, numpy::ndarray::Array2::from(log));
        Ok((contents.into_pyarray(py), log, statistics))
    }

    /// Solve one neighbourhood again: the sorted tuples of `outputs`.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        facts: i32,
        contents: Vec<i32>,
        outputs: Vec<String>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (agenda, mut solver) = (self.lock(py), self.solver.get().lock(py));
        let outputs = wanted(&solver.program, Some(outputs))?;
        agenda.fill(&mut solver, facts, contents.into_iter())?;
        evaluate(py, &mut solver, self.solver.get().limits, &outputs)
    }
}

/// The passes, whose items there are, with static facts for every class.
fn checked<'a>(passes: &'a [PyPass], classes: &[i32], later: &[i32]) -> PyResult<Vec<Pass<'a>>> {
    let mut checked = Vec::new();
    for (worklist, items, statics) in passes {
        let (items, statics) = (items.as_slice()?, statics.as_slice()?);
        check("items of a pass", items, classes.len())?;
        checked.push(Pass { worklist: *worklist, items, statics });
    }
    if let Some(known) = checked.iter().map(|pass| pass.statics.len()).min() {
        check("classes", classes, known)?;
        check("later", later, known)?;
    }
    Ok(checked)
}

impl Agenda {
    /// Who needs the solver too locks it after this.
    fn lock(&self, py: Python) -> MutexGuard<'_, agenda::Agenda> {
        self.agenda.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn fact_set(&self, py: Python, facts: &Bound<PyDict>, skipped: usize) -> PyResult<FactSet> {
        let mut solver = self.solver.get().lock(py);
        let program = solver.program.clone();
        let (mut set, mut words) = (FactSet::roomy(), Vec::with_capacity(64));
        for (relation, rows) in convert::relations(&program, facts)? {
            words.clear();
            let values = &mut solver.database.values;
            let mut count = 0;
            convert::each_tuple(&program, values, relation, skipped, 0, &rows, |tuple| {
                words.extend_from_slice(tuple);
                count += 1;
                Ok(())
            })?;
            let width = program.schema(relation).columns.len() - skipped;
            set.add(relation, width, (0..count).map(|i| &words[i * width..][..width]));
        }
        Ok(set)
    }
}
