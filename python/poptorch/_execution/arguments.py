"""Arguments of a model: bound to names as Python binds them, and compared with those that it was compiled for."""

import inspect

import torch

from .._errors import Error
from .._logging import warn_once
from .._structures import mapped, parser_of, tensors_in

_HINT = ("\nThe arguments of a call have the structure, types, shapes and values (of what is no tensor) that the model was "
         "compiled with. For others call destroy() on the executor first, or make a new one.")


class Arguments:
    """Values by position, each with a name, and values by name."""

    def __init__(self, positional, names, named):
        self.positional = positional
        self.names = names
        self.named = named

    def tensors(self):
        """All tensors in a fixed order: by position, then by name in the order given."""
        return tensors_in((self.positional, self.named))

    def mapped(self, function):
        """The same arguments with `function` applied to each tensor."""
        return Arguments(mapped(self.positional, function), self.names, mapped(self.named, function))

    def check(self, given):
        """Raises Error, naming the argument, where `given` differs from these in structure, type, shape or value."""
        if len(given.positional) != len(self.positional):
            raise Error(f"Number of positional arguments mismatch: expected {len(self.positional)} arguments but got "
                        f"{len(given.positional)}.{_HINT}")
        for name, compiled, value in zip(self.names, self.positional, given.positional):
            _compare(name, compiled, value)
        _compare_named("named arguments", self.named, given.named, lambda key: key)


def _compare(name, compiled, given):
    if type(compiled) is not type(given) and not _both_tensors(compiled, given):
        raise Error(f"Type mismatch for {name}: expected {type(compiled)} but got {type(given)}.{_HINT}")
    if isinstance(compiled, torch.Tensor):
        _compare_tensors(name, compiled, given)
    elif parser_of(compiled) is not None:
        _compare_sequences(name, tensors_in(compiled), tensors_in(given))
    elif isinstance(compiled, (list, tuple)):
        _compare_sequences(name, compiled, given)
    elif isinstance(compiled, dict):
        _compare_named(name, compiled, given, lambda key: f"{name}[{key}]")
    elif _differs(compiled, given):
        raise Error(f"Value mismatch for {name}: expected {compiled} but got {given}.{_HINT}")


def _both_tensors(compiled, given):
    return isinstance(compiled, torch.Tensor) and isinstance(given, torch.Tensor)


def _compare_tensors(name, compiled, given):
    if compiled.dtype != given.dtype:
        raise Error(f"Data type mismatch for {name}: expected {compiled.dtype} but got {given.dtype}.{_HINT}")
    if compiled.shape != given.shape:
        raise Error(f"Shape mismatch for {name}: expected {compiled.shape} but got {given.shape}.{_HINT}")


def _compare_sequences(name, compiled, given):
    if len(compiled) != len(given):
        raise Error(f"Length mismatch for {name}: expected {len(compiled)} elements but got {len(given)}.{_HINT}")
    for index, (one, other) in enumerate(zip(compiled, given)):
        _compare(f"{name}[{index}]", one, other)


def _compare_named(name, compiled, given, path):
    details = []
    extra = sorted(str(key) for key in given.keys() - compiled.keys())
    missing = sorted(str(key) for key in compiled.keys() - given.keys())
    if extra:
        details.append(f"Unexpected arguments: {', '.join(extra)}")
    if missing:
        details.append(f"Missing arguments: {', '.join(missing)}")
    if details:
        raise Error(f"Keys mismatch for {name}: {'. '.join(details)}.{_HINT}")
    for key, value in compiled.items():
        _compare(path(key), value, given[key])


def _differs(compiled, given):
    try:
        return bool(compiled != given)
    except Exception:  # objects that cannot be compared
        return compiled is not given


class Signature:
    """How a model's forward takes its arguments."""

    def __init__(self, model):
        forward = model.forward if isinstance(model, torch.nn.Module) else model
        if not callable(forward):
            raise TypeError("Expected a torch.nn.Module or a callable")
        try:
            self._parameters = list(inspect.signature(forward).parameters.values())
        except ValueError:  # builtin functions without a signature
            self._parameters = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)]
        kinds = {parameter.kind for parameter in self._parameters}
        self._takes_any = bool(kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})

    def bind(self, args, kwargs):
        """Arguments of a call, defaults filled in.

        AssertionError: too many, unknown, given twice. Error: a parameter without a value.
        """
        names = [parameter.name for parameter in self._parameters]
        if not self._takes_any:
            assert len(args) + len(kwargs) <= len(names), (
                f"Too many arguments provided: expected {names} ({len(names)}) but got {len(args) + len(kwargs)}")
            for key in kwargs:
                assert key in names, f"{key} is not a valid parameter. Allowed values are {names}"
        bound = _Binding(args, dict(kwargs))
        for parameter in self._parameters:
            bound.take(parameter)
        return Arguments(bound.positional, bound.names, bound.named)


class _Binding:
    def __init__(self, args, kwargs):
        self._args = list(args)
        self._kwargs = kwargs
        self._by_name = False
        self.positional, self.names, self.named = [], [], {}

    def take(self, parameter):
        if parameter.kind == inspect.Parameter.VAR_KEYWORD:
            self.named.update(self._kwargs)
        elif parameter.kind == inspect.Parameter.VAR_POSITIONAL:
            for index, value in enumerate(self._args):
                self._add(f"*{parameter.name}[{index}]", value)
            self._args = []
            self._by_name = True
        elif self._args and parameter.kind != inspect.Parameter.KEYWORD_ONLY:
            assert parameter.name not in self._kwargs, f"Parameter {parameter.name} was passed more than once"
            self._add(parameter.name, self._args.pop(0))
        else:
            self._take_named(parameter)

    def _take_named(self, parameter):
        if parameter.name in self._kwargs:
            value = self._kwargs.pop(parameter.name)
        elif parameter.default is not inspect.Parameter.empty:
            value = parameter.default
        else:
            raise Error(f"Mandatory parameter {parameter.name} missing")
        if self._by_name or parameter.kind == inspect.Parameter.KEYWORD_ONLY:
            self.named[parameter.name] = value
        else:
            self._add(parameter.name, value)

    def _add(self, name, value):
        self.positional.append(value)
        self.names.append(name)


_INT32 = torch.iinfo(torch.int32)


def narrowed(tensor):
    """The tensor as a device would hold it: detached, contiguous, float64 as float32, int64 with values of int32.

    What changes is said once. Error: an element type that devices do not have.
    """
    if tensor.requires_grad:
        warn_once("Input tensor has requires_grad=True set. This tensor will be detached because backward pass via inputs "
                  "is not supported.")
        tensor = tensor.detach()
    if not tensor.is_contiguous():
        warn_once("At least one input tensor is not contiguous: non-contiguous tensors will be converted.")
        tensor = tensor.contiguous()
    if tensor.dtype == torch.float64:
        return tensor.float()
    if tensor.dtype == torch.int64 and tensor.numel() and not _fits(tensor):
        warn_once("An input of 64-bit integers holds values beyond 32 bits: devices have 32-bit integers, values wrap")
        return tensor.to(torch.int32).to(torch.int64)
    if tensor.is_complex():
        raise Error(f"Unsupported input of type {tensor.dtype}: there are no complex numbers on the device")
    return tensor


def _fits(tensor):
    low, high = torch.aminmax(tensor)
    return _INT32.min <= int(low) and int(high) <= _INT32.max
