//! The Python module `shardlog.engine._core`.

use pyo3::prelude::*;

#[pymodule]
mod _core {}
