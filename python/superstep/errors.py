"""What goes wrong, as exceptions.

Every one is an ``Error``: what (``message``), where (a file, an operator, an input: ``where``) and what to do about it
(``hint``). Each kind is a class of its own and, where Python has an exception for it, one of those too, so
``except FileNotFoundError`` and ``except superstep.NotFound`` both do. Ctrl-C is ``KeyboardInterrupt``, as everywhere.
"""

from __future__ import annotations

import errno

__all__ = ["Error", "InvalidArgument", "NotFound", "BadFile", "BadGraph", "Unsupported", "InputOutput", "OutOfMemory",
           "Diverged", "Interrupted", "Internal", "CopyWarning", "of_kind"]


class Error(Exception):
    """An error of Superstep.

    Attributes:
        code: its kind in words: ``"bad file"``.
        message: what went wrong.
        where: the file, operator, input or option; may be empty.
        hint: what to do about it; may be empty.
    """

    code = "internal"

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message, where, hint)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{advice}"


class InvalidArgument(Error, ValueError):
    """The call was wrong: an option, a shape, an element type, a name."""

    code = "invalid argument"


class NotFound(Error, FileNotFoundError):
    """A file, a workload or a machine that is not there."""

    code = "not found"

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message, where, hint)
        self.errno, self.strerror, self.filename = errno.ENOENT, message, where or None


class BadFile(Error, ValueError):
    """A file that is damaged, or of another format."""

    code = "bad file"


class BadGraph(Error, ValueError):
    """A model that breaks a rule of its operators."""

    code = "bad graph"


class Unsupported(Error, NotImplementedError):
    """Right, but not something this build can do; ``where`` names the operator and its node."""

    code = "unsupported"


class InputOutput(Error, OSError):
    """The operating system refused: permission, space."""

    code = "input/output"

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message, where, hint)
        self.errno, self.strerror, self.filename = errno.EIO, message, where or None


class OutOfMemory(Error, MemoryError):
    """A plan, or a tile of a machine, has no room."""

    code = "out of memory"


class Diverged(Error, ArithmeticError):
    """Numbers stopped being finite."""

    code = "diverged"


class Interrupted(Error):
    """The work was asked to stop, by other means than Ctrl-C."""

    code = "interrupted"


class Internal(Error, RuntimeError):
    """A fault of Superstep itself."""

    code = "internal"


class CopyWarning(UserWarning):
    """An array was copied before it could be read, because its elements do not lie row by row."""


_KINDS = {kind.code: kind for kind in (InvalidArgument, NotFound, BadFile, BadGraph, Unsupported, InputOutput, OutOfMemory,
                                       Diverged, Interrupted, Internal)}


def of_kind(code: str, message: str, where: str = "", hint: str = "") -> Error:
    """The exception of a kind, by the kind's words; unknown words are of kind ``Internal``."""
    return _KINDS.get(code, Internal)(message, where, hint)
