//! The Python module `shardlog.engine._core`.

mod agenda;
mod bytecode;
mod convert;
mod least;
mod order;
mod program;
mod store;
mod trace;

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::budget;
use crate::error::Error;

pyo3::import_exception!(shardlog.engine, EngineError);

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::agenda::Agenda;
    #[pymodule_export]
    use super::bytecode::read_bytecode;
    #[pymodule_export]
    use super::least::Sum;
    #[pymodule_export]
    use super::program::{Program, Solver};
    #[pymodule_export]
    use super::store::Store;
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        EngineError::new_err(error.to_string())
    }
}

/// `shardlog.engine.Limits`.
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

/// As `letting_go` for what hardly takes longer than to get the interpreter's lock back: other threads only run
/// now and then.
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
