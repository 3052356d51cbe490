"""Functions of the user's that are called around every compilation."""

import collections
import contextlib

import torch



class _Table(collections.OrderedDict):
    """A table that handles refer to weakly."""


_before, _after = _Table(), _Table()


def _register(table, hook, kind):
    if not callable(hook):
        raise RuntimeError(f"{kind} hook must be callable")
    handle = torch.utils.hooks.RemovableHandle(table)
    table[handle.id] = hook
    return handle


def registerPreCompileHook(hook):
    """Calls `hook()` before every compilation. Returns a handle with `remove()`. RuntimeError: not callable."""
    return _register(_before, hook, "Pre-compile")


def registerPostCompileHook(hook):
    """Calls `hook()` after every compilation, also one that failed. Returns a handle with `remove()`."""
    return _register(_after, hook, "Post-compile")


@contextlib.contextmanager
def compile_hooks():
    """Calls the hooks around what is within."""
    for hook in list(_before.values()):
        hook()
    try:
        yield
    finally:
        for hook in list(_after.values()):
            hook()
