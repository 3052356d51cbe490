"""One forward pass of a micro-batch: marks losses, gives products their type, follows blocks and names."""

import torch
from torch.overrides import TorchFunctionMode

from .. import _running
from .._errors import Error
from .._operations import half, losses
from .._structures import tensors_in

_GETTERS = ("__get__", "size", "dim", "numel", "is_floating_point", "is_complex", "element_size", "stride", "__len__",
            "__format__", "__repr__", "detach", "requires_grad_")


class ForwardPass(TorchFunctionMode):
    """A context for `forward`: `marks` are the losses found, `placement` follows the blocks (None: nobody looks)."""

    def __init__(self, placement=None, recorder=None, training=False, overlap=None, finite=False):
        super().__init__()
        self.marks = losses.Marks()
        self.placement = placement
        self.recorder = recorder
        self.training = training
        self.overlap = overlap
        self._finite = finite
        self.scopes = []
        self.multi_conv, self.convolutions = False, 0
        self.outside = False  # after a `with Block` ended and before the next block begins

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.placement is not None and name not in _GETTERS:
            if self.outside:
                self._refuse_outside(name)
            self.placement.ran()
        if self.overlap is not None and name not in _GETTERS:
            self.overlap.used(args)
        if name in _FIXED:
            args = _FIXED[name](args, kwargs)
        if name in half.NAMES:
            self.convolutions += name.startswith("conv")
            result = half.product(func, name, args, kwargs)
        elif "device" in kwargs or name == "to":
            result = func(*map(_on_host, args), **{key: _on_host(value) for key, value in kwargs.items()})
        else:
            result = func(*args, **kwargs)
        if self._finite and name not in _GETTERS:
            self.check_finite(name, result)
        if name in losses.NAMES:
            self.marks.add(result)
        if self.recorder is not None:
            self.recorder.operator(name, result, self.scopes, self.placement)
        return result

    def check_finite(self, name, value):
        """Raises Error where floating-point exceptions are on and a value is not finite."""
        for tensor in tensors_in(value) if self._finite else ():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor.detach()).all()):
                raise Error(f"Floating point exception: {name} is not finite (Precision.enableFloatingPointExceptions is on)")

    def _refuse_outside(self, name):
        raise Error(f"No active Block, all the ops must belong to a Block: {name} runs after a block of `with "
                    "poptorch.Block` ended and before the next begins")

    def begin_block(self, user_id, ipu_id):
        """A block begins. Returns its name."""
        self.outside = False
        return self.placement.begin(user_id, ipu_id) if self.placement is not None else user_id

    def end_block(self):
        """The block of a `with` ends."""
        self.outside = True


def _counted(args, kwargs):
    """bincount: the number of counts is a constant of the compiled model."""
    if not (len(args) > 2 and args[2]) and not kwargs.get("minlength"):
        raise Error("Bincount `minlength` must be specified and must be a constant. On the IPU MK2 platform the minimum length "
                    "is also the maximum length: shapes are fixed when a model is compiled")
    return args


def _one_hot(args, kwargs):
    """one_hot: the number of classes is a constant of the compiled model."""
    if (args[1] if len(args) > 1 else kwargs.get("num_classes", -1)) == -1:
        raise Error("OneHot num classes must be specified and must be constant: shapes are fixed when a model is compiled")
    return args


def _masked(args, kwargs):
    """Masks of bytes are truth values, as they were in the PyTorch that PopTorch was made for."""
    return tuple(value.bool() if isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and index == 1 else value
                 for index, value in enumerate(args))


_FIXED = {"bincount": _counted, "one_hot": _one_hot, "masked_fill": _masked, "masked_fill_": _masked}


def _on_host(value):
    """Tensors "on the IPU" are those of the host."""
    if isinstance(value, str) and value.split(":")[0] == "ipu":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "ipu":
        return torch.device("cpu")
    return value


def run_pass(forward, tracing, call):
    """The result of `call()` within the pass `forward`."""
    with _running.Running(forward, tracing), forward:
        return call()
