"""Names of PopTorch's native module that scripts and tests use."""

import enum

from . import _popart_options, _running
from ._errors import Error, RecoverableError, UnrecoverableError


def isCompilingWithDispatcher():
    """True while a model is compiled."""
    return _running.is_tracing()


def _validateOptions(values):
    """Raises Error for values of `Options.toDict()` that PopART does not know."""
    from ._options import Options
    known = set(Options().toDict_names())
    _popart_options.validate({name: value for name, value in values.items() if name not in known})


class TestErrorType(enum.IntEnum):
    """Kinds of errors that `_throwTestError` raises."""

    Poptorch = 0
    Popart = 1
    PopartInternal = 2
    Poplibs = 3
    PoplarUnrecoverable = 4
    PoplarUnknown = 5
    PoplarRecoverableFullReset = 6
    PoplarLinkError = 7


def _throwTestError(kind):
    """Raises an error of this kind, for trying out handlers of errors."""
    message, location = f"Test error of kind {TestErrorType(kind).name}", "poptorch_core._throwTestError"
    if kind == TestErrorType.PoplarRecoverableFullReset:
        raise RecoverableError(message, location=location, recovery_action="FULL_RESET")
    if kind == TestErrorType.PoplarUnrecoverable:
        raise UnrecoverableError(message, "poplar_unrecoverable_runtime_error", location)
    if kind == TestErrorType.PoplarLinkError:
        raise Error(f"{message}: -lfoo not found", "poplar_link_error", location)
    raise Error(message, "poptorch_cpp_error", location)


__all__ = ["Error", "RecoverableError", "UnrecoverableError", "isCompilingWithDispatcher"]
