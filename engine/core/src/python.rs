//! The Python module `_core` of the package `engine`.

mod agenda;
mod convert;
mod order;
mod program;
mod store;
mod trace;

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::budget;
use crate::error::Error;

/// `EngineError` of the package that this module is in: the engine is part of packages of several names.
struct EngineError;

static ENGINE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

impl EngineError {
    fn new_err(message: impl Into<String>) -> PyErr {
        let message = message.into();
        Python::attach(|py| match ENGINE_ERROR.get(py) {
            Some(kind) => PyErr::from_type(kind.bind(py).clone(), message),
            None => PyRuntimeError::new_err(message),
        })
    }
}

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::agenda::Agenda;
    #[pymodule_export]
    use super::program::{Program, Solver};
    #[pymodule_export]
    use super::store::Store;

    #[pymodule_init]
    fn init(module: &Bound<PyModule>) -> PyResult<()> {
        let (name, py) = (module.name()?.to_string(), module.py());
        let package = name.strip_suffix("._core").unwrap_or(&name);
        let error = py.import(package)?.getattr("EngineError")?.cast_into::<PyType>()?;
        let _ = ENGINE_ERROR.set(py, error.unbind());
        Ok(())
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        EngineError::new_err(error.to_string())
    }
}

/// `engine.Limits`.
#[derive(Clone, Copy, Default, FromPyObject)]
pub struct Limits {
    tuples: Option<usize>,
    memory: Option<usize>,
    seconds: Option<f64>,
    threads: Option<usize>,
}

/// Time between two looks for Ctrl-C, which take the interpreter's lock.
const LOOK: Duration = Duration::from_millis(50);
/// Time for which the interpreter's lock is held: as long as its own threads hold it.
const HOLD: Duration = Duration::from_millis(5);

/// Run `work` under limits while other threads run. Ctrl-C stops it; then Python's own exception is raised.
fn letting_go<T: Send>(
    py: Python,
    limits: Limits,
    work: impl FnOnce(&budget::Limits) -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(|| watched(limits, LOOK, || Python::attach(|py| py.check_signals()), work))
}

/// As `letting_go`, for calls that take hardly longer than reacquiring the interpreter's lock:
/// other threads run only now and then.
fn holding<T>(
    py: Python,
    limits: Limits,
    work: impl FnOnce(&budget::Limits) -> Result<T, Error>,
) -> PyResult<T> {
    let look = || {
        py.detach(|| ());
        py.check_signals()
    };
    watched(limits, HOLD, look, work)
}

/// Run `work` under limits; `look` is called now and then, and its error ends the work.
fn watched<T>(
    limits: Limits,
    every: Duration,
    look: impl Fn() -> PyResult<()>,
    work: impl FnOnce(&budget::Limits) -> Result<T, Error>,
) -> PyResult<T> {
    let start = Instant::now();
    let (looked, signal) = (Cell::new(start), RefCell::new(None));
    let interrupted = || {
        if looked.get().elapsed() < every {
            return false;
        }
        let result = look();
        looked.set(Instant::now());
        result.map_err(|error| signal.replace(Some(error))).is_err()
    };
    let time = limits.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limits = budget::Limits {
        tuples: limits.tuples.unwrap_or(usize::MAX).min(u32::MAX as usize),
        memory: limits.memory.unwrap_or(usize::MAX),
        time: time.and_then(|time| Some((time, start.checked_add(time)?))),
        threads: limits.threads.unwrap_or(1).clamp(1, budget::MOST_THREADS),
        interrupted: &interrupted,
    };
    let result = work(&limits);
    match signal.take() {
        Some(error) => Err(error),
        None => Ok(result?),
    }
}
