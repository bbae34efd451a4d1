//! The Python module `shardlog.importers._core`.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pyo3::import_exception!(shardlog.errors, ShardlogError);

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::read_bytecode;
}

/// The ops, values and regions of a module that MLIR in this process has written as bytecode of version 6: the
/// arrays of `Listing` by their names.
#[pyfunction]
pub fn read_bytecode<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let listing =
        py.detach(|| crate::read(data)).map_err(|error| ShardlogError::new_err(error.to_string()))?;
    let arrays = [
        ("kinds", listing.kinds),
        ("parents", listing.parents),
        ("regions", listing.regions),
        ("ends", listing.ends),
        ("operand_offsets", listing.operand_offsets),
        ("operands", listing.operands),
        ("first_results", listing.first_results),
        ("results", listing.results),
        ("types", listing.types),
        ("definers", listing.definers),
        ("owners", listing.owners),
        ("blocks", listing.blocks),
        ("first_arguments", listing.first_arguments),
        ("arguments", listing.arguments),
        ("inner_first", listing.inner_first),
    ];
    let found = PyDict::new(py);
    for (name, array) in arrays {
        found.set_item(name, array.into_pyarray(py))?;
    }
    Ok(found)
}
