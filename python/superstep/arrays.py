"""Arrays in and out: which memory is shared, and what is said when it is not."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from .errors import CopyWarning

_TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
          "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
          # NumPy has no bfloat16: its bits.
          "bf16": "uint16"}


def numpy_type(element: str) -> numpy.dtype[Any]:
    """The type of NumPy for an element type of a port: ``"f32"`` is ``float32``; of ``"bf16"`` the bits, as ``uint16``."""
    return numpy.dtype(_TYPES[element])


def tell_of_copy(name: str) -> None:
    """Warns that an input had to be copied. ``warnings.simplefilter("error", superstep.CopyWarning)`` makes it an error."""
    warnings.warn(f"'{name}' was copied: its elements do not lie row by row, or not at an address of their type "
                  "(numpy.ascontiguousarray(x) once, outside of the loop, saves it)", CopyWarning, stacklevel=4)


def _first_foreign(arrays: Sequence[Any], named: Mapping[str, Any]) -> Any:
    for value in (*arrays, *named.values()):
        if not isinstance(value, (numpy.ndarray, memoryview, bytes)):
            return value
    return None


def like(array: numpy.ndarray, arrays: Sequence[Any], named: Mapping[str, Any], element: str) -> Any:
    """A result as the inputs were: a tensor for tensors of PyTorch, an array of JAX for arrays of JAX; the memory is the same."""
    module = type(_first_foreign(arrays, named)).__module__.partition(".")[0]
    if module == "torch":
        torch = sys.modules["torch"]
        tensor = torch.from_numpy(array)
        return tensor.view(torch.bfloat16) if element == "bf16" else tensor
    if module in ("jax", "jaxlib"):
        return sys.modules["jax"].numpy.from_dlpack(array)
    return array
