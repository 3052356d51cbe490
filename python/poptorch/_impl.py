"""Names of PopTorch's private module `_impl` that scripts and tests use."""

from ._errors import Error
from ._execution.wrapping import is_wrapped as isWrapped
from ._running import isRunningOnIpu
from ._running import is_tracing as isDispatchTracing


def createPoptorchError(message):
    """An Error with this message."""
    return Error(message)


__all__ = ["createPoptorchError", "isDispatchTracing", "isRunningOnIpu", "isWrapped"]
