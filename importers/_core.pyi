# The reader of MLIR's bytecode in Rust: what core/src/python.rs exports.

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_bytecode"]

def read_bytecode(data: bytes) -> dict[str, NDArray[np.int32]]: ...
