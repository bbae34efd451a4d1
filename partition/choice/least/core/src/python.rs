//! The Python module `shardlog.partition.choice.least._core`.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::{Error, Given, Rows};

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::Sum;
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        PyValueError::new_err(error.to_string())
    }
}

type Floats<'py> = PyReadonlyArray1<'py, f64>;
type Table<'py> = PyReadonlyArray2<'py, f64>;
type Choice<'py> = PyReadonlyArray1<'py, i64>;
/// See `Given`.
type Terms<'py> = (Floats<'py>, Vec<Choice<'py>>, Vec<Table<'py>>, PyReadonlyArray2<'py, i64>, Floats<'py>);

#[pyclass]
pub struct Sum(crate::Sum);

#[pymethods]
impl Sum {
    /// `alone`: the cost of each value of each variable on its own, from `far` on it does not have the value;
    /// `size`: the number of variables that each stands for.
    #[new]
    fn new(terms: Vec<Terms>, alone: Table, size: Floats, far: f64) -> PyResult<Self> {
        let given = terms.iter().map(|(base, lines, tables, variables, counts)| {
            let variables = variables.as_array();
            let lines = lines.iter().map(|lines| numbers(lines.as_array().iter()));
            Ok(Given {
                base: base.as_array().to_vec(),
                lines: lines.collect::<Result<_, Error>>()?,
                tables: tables.iter().map(floats).collect(),
                variables: Rows { width: variables.ncols(), numbers: numbers(variables.iter())? },
                counts: counts.as_array().to_vec(),
            })
        });
        let given = given.collect::<Result<_, Error>>()?;
        Ok(Sum(crate::Sum::new(given, floats(&alone), size.as_array().to_vec(), far)?))
    }

    fn energy(&self, chosen: Choice) -> PyResult<f64> {
        Ok(self.0.energy(&numbers(chosen.as_array().iter())?)?)
    }

    fn taken(&self, term: usize, chosen: Choice) -> PyResult<Vec<usize>> {
        Ok(self.0.taken(term, &numbers(chosen.as_array().iter())?)?)
    }

    fn gains<'py>(&self, py: Python<'py>, chosen: Choice) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.0.gains(&numbers(chosen.as_array().iter())?)?)
    }

    /// Other threads of Python run meanwhile.
    fn moved<'py>(&self, py: Python<'py>, chosen: Choice, turn: u64) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let chosen = numbers(chosen.as_array().iter())?;
        let found = py.detach(|| self.0.moved(&chosen, turn))?;
        Ok(found.into_iter().map(|value| value as i64).collect::<Vec<_>>().into_pyarray(py))
    }

    fn best<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let best: Vec<i64> = self.0.best().into_iter().map(|value| value as i64).collect();
        best.into_pyarray(py)
    }

    /// Other threads of Python run meanwhile.
    /// `saying`: the fields of a `Saying`.
    fn sweep(&mut self, py: Python, backwards: bool, saying: (f64, Option<f64>), lasting: bool) {
        let (step, left) = saying;
        py.detach(|| self.0.sweep(backwards, crate::Saying { step, left }, lasting));
    }

    fn messages<'py>(
        &self,
        py: Python<'py>,
        term: usize,
        slot: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.0.messages(term, slot)?)
    }

    fn bound(&self) -> f64 {
        self.0.bound()
    }

    fn left(&self) -> f64 {
        self.0.left()
    }
}

fn floats(array: &Table) -> Rows<f64> {
    let array = array.as_array();
    Rows { width: array.ncols(), numbers: array.iter().copied().collect() }
}

/// Numbers of variables, values or lines.
fn numbers<'a>(array: impl Iterator<Item = &'a i64>) -> Result<Vec<usize>, Error> {
    let known = |&number| usize::try_from(number).map_err(|_| Error(format!("{number} is below 0")));
    array.map(known).collect()
}

fn array<'py>(py: Python<'py>, rows: Rows<f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let shape = (rows.numbers.len() / rows.width, rows.width);
    rows.numbers.into_pyarray(py).reshape(shape)
}
