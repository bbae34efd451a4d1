//! The Python module `shardlog.engine._core`.

mod agenda;
mod convert;
mod program;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::Error;
use crate::machine::Limits;

pyo3::import_exception!(shardlog.engine.diagnostics, EngineError);

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::agenda::Agenda;
    #[pymodule_export]
    use super::program::{Program, Solver};
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        EngineError::new_err(error.to_string())
    }
}

/// Run `work` under limits. Ctrl-C stops it; then Python's own exception is raised.
fn limited<T>(
    py: Python,
    tuples: Option<usize>,
    seconds: Option<f64>,
    work: impl FnOnce(&Limits) -> PyResult<T>,
) -> PyResult<T> {
    let signal = RefCell::new(None);
    let interrupted = || match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            signal.replace(Some(error));
            true
        }
    };
    let deadline = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limits = Limits {
        tuples: tuples.unwrap_or(usize::MAX).min(u32::MAX as usize),
        deadline: deadline.map(|duration| Instant::now() + duration),
        interrupted: &interrupted,
    };
    let result = work(&limits);
    match signal.take() {
        Some(error) => Err(error),
        None => result,
    }
}
