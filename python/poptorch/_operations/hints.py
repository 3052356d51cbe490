"""Hints for the compiler: values pass unchanged; what the machine's model reads is recorded in the pass."""

import torch

from .. import _running, enums
from .._errors import Error
from .._structures import mapped, tensors_in


def _tensor(value, words):
    if not isinstance(value, torch.Tensor):
        raise Error(f"{words} {type(value)} is not supported.")
    return value


def nop(tensor):
    """The tensor, through an operator that does nothing. Error: no tensor."""
    return _tensor(tensor, "nop must take a torch.tensor argument.").clone()


def set_available_memory(tensor, available_memory_proportion):
    """The tensor; the operator that made it may use this share (0 to 1) of tile memory. Error: no tensor."""
    return _tensor(tensor, "You may only set available memory for torch.tensor values.")


def set_overlap_for_input(input_tensors, mode):
    """The structure of tensors; their transfer from the host overlaps with computation as the `OverlapMode` says."""
    return _overlapped(input_tensors, mode, "input")


def set_overlap_for_output(output_tensors, mode):
    """The structure of tensors; their transfer to the host overlaps with computation as the `OverlapMode` says."""
    return _overlapped(output_tensors, mode, "output")


def _overlapped(value, mode, word):
    if not isinstance(mode, enums.OverlapMode):
        raise Error(f"set_overlap takes a poptorch.OverlapMode, not {mode!r}")
    if not tensors_in(value):
        raise Error(f"You may only set overlap for torch.tensor {word}s. {type(value)} is not supported.")
    forward = _running.current()
    if forward is None or forward.overlap is None:
        return value
    return mapped(value, lambda tensor: getattr(forward.overlap, word)(tensor, mode))


def recomputationCheckpoint(*tensors):
    """The tensors (one, several, or one list or tuple of them), kept between the passes where recomputation is on.

    ValueError: anything else.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        found = recomputationCheckpoint(*tensors[0])
        return type(tensors[0])(found if isinstance(found, tuple) else [found])
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        raise ValueError("All inputs must be tensors")
    return tensors[0] if len(tensors) == 1 else tensors


def serializedMatMul(lhs, rhs, mode, factor=0, keep_precision=False):
    """`lhs @ rhs`, on the device in `factor` turns along the dimension that the `MatMulSerializationMode` names.

    Error: the factor does not divide that dimension. AssertionError: arguments of other types.
    """
    assert isinstance(keep_precision, bool), "keep_precision is True or False"
    assert isinstance(factor, int), "factor is an integer"
    assert isinstance(mode, enums.MatMulSerializationMode), "mode is a poptorch.MatMulSerializationMode"
    extents = {enums.MatMulSerializationMode.InputChannels: (lhs, -2), enums.MatMulSerializationMode.ReducingDim: (lhs, -1),
               enums.MatMulSerializationMode.OutputChannels: (rhs, -1)}
    if mode in extents and factor:
        operand, dimension = extents[mode]
        extent = operand.shape[dimension] if operand.dim() >= -dimension else 1
        if factor < 0 or extent % factor:
            raise Error(f"serializedMatMul: the factor {factor} does not divide the dimension {mode.name} of extent {extent}")
    return torch.matmul(lhs, rhs)


class NameScope:
    """A context: names of operators within begin with this one."""

    def __init__(self, name):
        assert isinstance(name, str), "Parameter to NameScope must be a string"
        self.name = name

    def __enter__(self):
        push_name_scope(self.name)

    def __exit__(self, *error):
        pop_name_scope()


def push_name_scope(name):
    """Names of operators begin with this one from now on."""
    forward = _running.current()
    if forward is not None:
        forward.scopes.append(name)


def pop_name_scope():
    """Takes the last name of `push_name_scope` away."""
    forward = _running.current()
    if forward is not None and forward.scopes:
        forward.scopes.pop()


class Attribute:
    """A context: operators within get these attributes of PopART, which have no effect here."""

    def __init__(self, **kwargs):
        self._attributes = kwargs

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class MultiConv:
    """A context: convolutions within run as one on the device. Methods set properties for all or each, and return the object.

    Error: nested, or without a convolution within.
    """

    def __init__(self):
        self._properties = {}
        self._before = 0

    def availableMemoryProportions(self, value):
        """Shares of tile memory, each in [0, 1). AssertionError: no float."""
        return self._each("available memory proportion", value, float)

    def partialsTypes(self, value):
        """Types of partial sums: torch.float or torch.half. ValueError: another."""
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if part not in (torch.float, torch.half):
                raise ValueError("Invalid partials types. Expecting torch.float or torch.half")
        return self._set("partials types", value)

    def enableConvDithering(self, value):
        """Whether convolutions begin on different tiles. ValueError: no truth value."""
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if not isinstance(part, bool) and value is not None:
                raise ValueError("value must be bool or list of bools")
        return self._set("convolution dithering", value)

    def planType(self, value):
        """A `MultiConvPlanType`. AssertionError: another."""
        assert value is None or isinstance(value, enums.MultiConvPlanType), "Invalid plan type!"
        return self._set("plan type", value)

    def perConvReservedTiles(self, value):
        """Tiles for each convolution."""
        assert isinstance(value, int), "perConvReservedTiles takes an integer"
        return self._set("tiles", value)

    def cycleBackOff(self, value):
        """A proportion between 0 and 1."""
        assert isinstance(value, float), "cycleBackOff takes a float"
        return self._set("cycle back off", value)

    def _each(self, name, value, kind):
        parts = value if isinstance(value, (list, tuple)) else [value]
        assert value is None or (parts and all(isinstance(part, kind) for part in parts)), f"Invalid {name}!"
        return self._set(name, value)

    def _set(self, name, value):
        self._properties[name] = value
        return self

    def __enter__(self):
        forward = _running.current()
        if forward is not None:
            if forward.multi_conv:
                raise Error("Nested poptorch.MultiConv is not supported: end the first before the second begins")
            forward.multi_conv = True
            self._before = forward.convolutions
        return self

    def __exit__(self, *error):
        forward = _running.current()
        if forward is None:
            return
        forward.multi_conv = False
        if error[0] is None:
            self._check(forward.convolutions - self._before)

    def _check(self, count):
        if count == 0:
            raise Error("Unexpected end_multi_conv: there is no convolution within poptorch.MultiConv")
        for name, value in self._properties.items():
            if isinstance(value, (list, tuple)) and len(value) not in (1, count):
                raise Error(f"MultiConv: {len(value)} values of {name} for {count} convolutions")
