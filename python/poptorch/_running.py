"""What runs at this moment in this thread: whether a forward pass is an executor's, and what it collects."""

import threading


class _State(threading.local):
    forward = None  # the ForwardPass of an executor, if one runs
    tracing = False  # whether it is the pass at compile time


_state = _State()
made = None  # the executors made so far, where somebody will tell of them (`python -m poptorch run`)


def current():
    """The forward pass that runs now, or None."""
    return _state.forward


def isRunningOnIpu():
    """True inside the forward pass of an executor, False elsewhere."""
    return _state.forward is not None


def is_tracing():
    """True inside the pass that compiling makes."""
    return _state.tracing


class Running:
    """A context in which `forward` is the current pass."""

    def __init__(self, forward, tracing):
        self._forward, self._tracing = forward, tracing

    def __enter__(self):
        self._before = (_state.forward, _state.tracing)
        _state.forward, _state.tracing = self._forward, self._tracing
        return self._forward

    def __exit__(self, *error):
        _state.forward, _state.tracing = self._before
