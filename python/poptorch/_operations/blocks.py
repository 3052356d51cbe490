"""Blocks: parts of a model that the execution strategy places. Values never depend on them."""

import functools

import torch

from .. import _running
from .._errors import Error


def _checked(user_id, ipu_id):
    assert user_id is None or isinstance(user_id, str) or (isinstance(user_id, int) and user_id >= 0), (
        "user_id must be either a positive integer or a str")
    assert ipu_id is None or (isinstance(ipu_id, int) and ipu_id >= 0), "ipu_id must be a positive integer"
    return user_id, ipu_id


class Block(torch.nn.Module):
    """What runs within `with Block(...)` belongs to one block; `Block.start(...)` begins one that lasts until the next.

    `user_id` names it (blocks of one name are one), `ipu_id` is its chip among the replica's.
    """

    def __init__(self, user_id=None, ipu_id=None):
        super().__init__()
        self._user_id, self._ipu_id = _checked(user_id, ipu_id)

    @staticmethod
    def useAutoId():
        """Blocks without a name are numbered from 0 again."""
        forward = _running.current()
        if forward is not None and forward.placement is not None:
            forward.placement.restart_numbers()

    @staticmethod
    def start(user_id=None, ipu_id=None):
        """Begins a block."""
        forward = _running.current()
        if forward is not None:
            forward.begin_block(*_checked(user_id, ipu_id))

    def __enter__(self):
        Block.start(self._user_id, self._ipu_id)

    def __exit__(self, *error):
        forward = _running.current()
        if forward is not None and error[0] is None:
            forward.end_block()


class _BlockHook:
    """Begins a block before a module's forward."""

    def __init__(self, user_id, ipu_id):
        self._user_id, self._ipu_id = _checked(user_id, ipu_id)

    def __call__(self, module, inputs):
        forward = _running.current()
        if forward is not None:
            self._user_id = forward.begin_block(self._user_id, self._ipu_id)

    def __repr__(self):
        return f"BeginBlock(user_id={self._user_id}, ipu_id={self._ipu_id})"


class _BlockFunction(torch.nn.Module):
    """A function whose calls begin a block."""

    def __init__(self, function, user_id, ipu_id):
        super().__init__()
        self._function = function
        self._user_id, self._ipu_id = _checked(user_id, ipu_id)

    def forward(self, *args, **kwargs):
        """Begins the block and calls the function."""
        forward = _running.current()
        if forward is not None:
            self._user_id = forward.begin_block(self._user_id, self._ipu_id)
        return self._function(*args, **kwargs)


def BeginBlock(layer_to_call, user_id=None, ipu_id=None):
    """Lets a module begin a block each time it runs, until the next block begins. Returns the same module.

    A plain function gets a wrapper. Error: no callable, or a module that begins a block already.
    """
    if not isinstance(layer_to_call, torch.nn.Module):
        if not callable(layer_to_call):
            raise Error("module is not an instance of torch.nn.Module or function.")
        return _BlockFunction(layer_to_call, user_id, ipu_id)
    if any(isinstance(hook, _BlockHook) for hook in layer_to_call._forward_pre_hooks.values()):
        raise Error("module has already been assigned to a block.")
    layer_to_call.register_forward_pre_hook(_BlockHook(user_id, ipu_id))
    return layer_to_call


def BlockFunction(user_id=None, ipu_id=None):
    """A decorator: what a function runs belongs to one block."""
    def decorated(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with Block(user_id, ipu_id):
                return function(*args, **kwargs)
        return wrapper
    return decorated


def removeBlocks(module):
    """Takes away what `BeginBlock` added, in the module and all below it."""
    assert isinstance(module, torch.nn.Module), "removeBlocks takes a torch.nn.Module"
    for part in module.modules():
        for key, hook in list(part._forward_pre_hooks.items()):
            if isinstance(hook, _BlockHook):
                del part._forward_pre_hooks[key]


def module_repr(m):
    """The module as `repr` writes it, with `BeginBlock(...)` before the name of each module that begins a block."""
    hooks = "".join(f"{hook!r} " for hook in m._forward_pre_hooks.values() if isinstance(hook, _BlockHook))
    extra = m.extra_repr().split("\n") if m.extra_repr() else []
    children = [f"({name}): {module_repr(child)}".replace("\n", "\n  ") for name, child in m.named_children()]
    head = f"{hooks}{m._get_name()}("
    if len(extra) == 1 and not children:
        return f"{head}{extra[0]})"
    lines = extra + children
    return head + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"


def print_module(m):
    """Prints a module with its blocks, and anything else as `print` does."""
    print(module_repr(m) if isinstance(m, torch.nn.Module) else m)
