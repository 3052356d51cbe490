"""Names of PopTorch's native module that scripts and tests use."""

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


__all__ = ["Error", "RecoverableError", "UnrecoverableError", "isCompilingWithDispatcher"]
