"""The package's logger, `poptorch::python`, on standard error; its level is set by POPTORCH_LOG_LEVEL or `setLogLevel`."""

import logging
import os
import sys

logger = logging.getLogger("poptorch::python")

# Names of levels, their numbers in PopTorch's interface, and Python's level for each.
_LEVELS = {
    "TRACE": (0, logging.DEBUG),
    "TRACE_ALL": (0, logging.DEBUG),
    "DEBUG": (1, logging.DEBUG),
    "DEBUG_IR": (1, logging.DEBUG),
    "INFO": (2, logging.INFO),
    "WARN": (3, logging.WARNING),
    "ERR": (4, logging.ERROR),
    "OFF": (6, logging.CRITICAL + 1),
}
_PUBLIC = ("DEBUG", "ERR", "INFO", "OFF", "TRACE", "WARN")
_said = set()


class _StandardError(logging.StreamHandler):
    """Writes to what `sys.stderr` is at the time of each line, so that redirection works."""

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


class _Line(logging.Formatter):
    def __init__(self):
        super().__init__("[%(asctime)s.%(msecs)03d] [%(name)s] [%(level)s] %(message)s", "%H:%M:%S")

    def format(self, record):
        record.level = record.levelname.lower()
        return super().format(record)


def setLogLevel(level):
    """Sets what is said: TRACE, DEBUG, INFO, WARN (the default), ERR, OFF, or their numbers 0, 1, 2, 3, 4, 6.

    Raises ValueError for another level.
    """
    if isinstance(level, int):
        names = [name for name, (number, _) in _LEVELS.items() if number == level]
        if not names:
            raise ValueError(f"Invalid log level integer {level}: the levels are 0, 1, 2, 3, 4 and 6.")
        level = names[0]
    if level not in _LEVELS:
        raise ValueError(f"Unknown log level: {level}. Valid values are {', '.join(_PUBLIC[:-1])} and {_PUBLIC[-1]}")
    logger.setLevel(_LEVELS[level][1])


def setPopartLogLevel(level):
    """Accepts a level for the log of Graphcore's compiler, which does not exist here. Raises ValueError for another word."""
    if level not in _LEVELS:
        raise ValueError(f"Level must be one of {', '.join(_LEVELS)}")


def warn_once(text, *arguments):
    """Warns with this text the first time in the process only."""
    line = text % arguments if arguments else text
    if line not in _said:
        _said.add(line)
        logger.warning("%s", line)


def _start():
    if not logger.handlers:
        handler = _StandardError()
        handler.setFormatter(_Line())
        logger.addHandler(handler)
    logger.propagate = False
    setLogLevel(os.environ.get("POPTORCH_LOG_LEVEL", "WARN"))


_start()
