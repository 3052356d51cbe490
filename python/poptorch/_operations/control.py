"""Loops, conditions and slices by index within forward."""

import torch

from .. import _running
from .._errors import Error


def _tensors(value, where):
    if not isinstance(value, list):
        raise ValueError(f"{where} to be a list of tensors. (Object is not list)")
    for index, tensor in enumerate(value):
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{where} to be a list of tensors. (Object contained in list at index {index} is not torch.tensor)")


def _refuse_training(name):
    forward = _running.current()
    if forward is not None and forward.training:
        raise Error(f"poptorch.{name}() is only supported in inference models: it has no backward pass on the device")


def _listed(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def for_loop(count, body, inputs):
    """`body` applied `count` times, to clones of `inputs` first, then to its own results. Lists of tensors in and out.

    ValueError: inputs are no list of tensors. Error: in a training model; results unlike the inputs in number, shape, type.
    """
    _tensors(inputs, "poptorch.for_loop expects input tensors (inputs)")
    _refuse_training("for_loop")
    values = [tensor.clone() for tensor in inputs]
    for _ in range(count):
        results = _listed(body(*values))
        _compare(values, results)
        values = [tensor.clone() for tensor in results]
    return values


def _compare(inputs, results):
    if len(inputs) != len(results):
        raise Error(f"for_loop: body has {len(inputs)} inputs but {len(results)} outputs")
    for index, (one, other) in enumerate(zip(inputs, results)):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Error(f"for_loop: output {index} of body is {list(other.shape)} of {other.dtype}, its input "
                        f"{list(one.shape)} of {one.dtype}: each iteration takes the previous one's outputs")


def cond(condition, then_body, then_inps, else_body, else_inps):
    """The list of tensors that `then_body(*then_inps)` gives where `condition` is true, else that of `else_body(*else_inps)`.

    Both bodies give as many tensors. ValueError: inputs are no lists. Error: in a training model.
    """
    if not isinstance(then_inps, list) or not isinstance(else_inps, list):
        raise ValueError("poptorch.cond expects then_inps and else_inps tensors to be a list of tensors. (Object is not list)")
    _refuse_training("cond")
    if not _running.is_tracing():
        return _listed(then_body(*then_inps) if bool(condition) else else_body(*else_inps))
    then, other = (_listed(body(*[tensor.clone() for tensor in inputs]))
                   for body, inputs in ((then_body, then_inps), (else_body, else_inps)))
    if len(then) != len(other):
        raise Error(f"cond: the bodies give {len(then)} and {len(other)} tensors: they give as many")
    return then if bool(condition) else other


def _integer(value, words):
    if not isinstance(value, int):
        raise Error(f"{words} must be an integer.")


def _tensor(value, words):
    if not isinstance(value, torch.Tensor):
        raise Error(f"{words} {type(value)} is not supported.")


def dynamic_slice(tensor, dim, start, size, step):
    """Elements start, start + step, ... below start + size along `dim`, indices modulo the extent; `start` is a tensor.

    Error: arguments of other kinds.
    """
    _tensor(tensor, "dynamic_slice must take a torch.tensor input.")
    _integer(dim, "Dimension")
    _tensor(start, "Slice start argument to dynamic_slice must be a torch.tensor.")
    _integer(size, "Size")
    _integer(step, "Step")
    _size(size)
    if tensor.shape[dim] % size and size > tensor.shape[dim] // 2:
        raise Error(f"The size of the slice ({size}) must be a factor of the slicing dimension ({tensor.shape[dim]}).")
    return tensor.index_select(dim, _places(tensor, dim, start, size, step))


def dynamic_update(input, src, dim, start, size):  # noqa: A002 - the public name
    """A copy of `input` with `src` at start ... start + size - 1 along `dim`, indices modulo the extent.

    Error: arguments of other kinds; other dimensions or types of the two tensors.
    """
    _tensor(input, "dynamic_update must take a torch.tensor input.")
    _integer(dim, "Dimension")
    _tensor(start, "Slice start argument to dynamic_update must be a torch.tensor.")
    _tensor(src, "Src argument to dynamic_update must be a torch.tensor.")
    _integer(size, "Size")
    _size(size)
    if input.dim() != src.dim():
        raise Error(f"input and src tensors must have same dimensionality. ({input.dim()}) vs ({src.dim()})")
    if input.dtype != src.dtype:
        raise Error(f"input and src tensor must have same dtype. ({_on_device(input)} vs {_on_device(src)})")
    return input.index_copy(dim, _places(input, dim, start, size, 1), src)


def _size(size):
    if size == 0:
        raise Error("The start and end of a slice must be different.")
    if size < 0:
        raise Error("Taking a slice of a tensor with the end less than the start is not supported.")


def _on_device(tensor):
    """The element type as devices have it."""
    return {torch.int64: torch.int32, torch.float64: torch.float32}.get(tensor.dtype, tensor.dtype)


def _places(tensor, dim, start, size, step):
    extent = tensor.shape[dim]
    return (torch.arange(0, size, step) + start.reshape(-1)[0].to(torch.int64)) % extent
