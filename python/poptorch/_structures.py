"""Nested arguments and results: which tensors they hold, and the same structure around other tensors."""

import abc
import copy

import torch

from ._errors import Error

_parsers = {}


class ICustomArgParser(abc.ABC):
    """How tensors are taken out of an object of a class of the user's, and how such an object is made of others.

    Register one with `registerCustomArgParser`; both methods go through the tensors in the same order.
    """

    @abc.abstractmethod
    def yieldTensors(self, struct):
        """Yields every tensor of the object."""

    @abc.abstractmethod
    def reconstruct(self, original_structure, tensor_iterator):
        """An object like `original_structure` whose tensors are the next of the iterator."""


def registerCustomArgParser(arg_data_type, arg_parser):
    """Lets objects of this class be arguments and results of models; None takes the parser away.

    Error: `arg_parser` is no ICustomArgParser.
    """
    if arg_parser is None:
        _parsers.pop(arg_data_type, None)
        return
    if not isinstance(arg_parser, ICustomArgParser):
        raise Error("arg_parser must inherit from ICustomArgParser")
    _parsers[arg_data_type] = arg_parser


def parser_of(value):
    """The registered parser of the value's class or of its nearest base, or None."""
    if not _parsers:
        return None
    for base in type(value).__mro__:
        if base in _parsers:
            return _parsers[base]
    return None


def tensors_in(value):
    """The tensors of a structure in a fixed order."""
    if isinstance(value, torch.Tensor):
        return [value]
    parser = parser_of(value)
    if parser is not None:
        return [part for part in parser.yieldTensors(value) if isinstance(part, torch.Tensor)]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in tensors_in(part)]


def with_tensors(value, tensors):
    """The same structure around the next tensors of an iterator; what is no tensor stays as it is."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    parser = parser_of(value)
    if parser is not None:
        return parser.reconstruct(value, tensors)
    if isinstance(value, dict):
        return _dictionary(value, tensors)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(with_tensors(part, tensors) for part in value))
    if isinstance(value, (list, tuple)):
        parts = [with_tensors(part, tensors) for part in value]
        return parts if type(value) is list else tuple(parts) if type(value) is tuple else type(value)(parts)
    return value


def _dictionary(value, tensors):
    parts = {key: with_tensors(part, tensors) for key, part in value.items()}
    if type(value) is dict:
        return parts
    made = copy.copy(value)
    for key, part in parts.items():
        made[key] = part
    return made


def mapped(value, function):
    """The structure with `function` applied to each tensor."""
    return with_tensors(value, iter([function(tensor) for tensor in tensors_in(value)]))
