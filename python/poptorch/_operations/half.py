"""Half precision as PopTorch has it: products take the type of the activation, whatever the type of the weights.

Products of half-precision operands are computed in float32 and rounded to half, as the machine does with float32 partial
sums; on CPUs that is also several times faster than PyTorch's own half kernels.
"""

import torch

# Products by name: where the activation is among the arguments.
_ACTIVATION = {name: 0 for name in (
    "linear", "bilinear", "matmul", "__matmul__", "mm", "bmm", "mv", "dot", "inner", "chain_matmul", "einsum", "tensordot",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc",
    "scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell")}
_ACTIVATION.update({name: 1 for name in ("addmm", "baddbmm", "addbmm", "addmv", "addr")})
_REVERSED = ("__rmatmul__",)
# Norms whose statistics are changed in place: those arguments get the new values back.
_NORMS = ("batch_norm", "instance_norm")
NAMES = frozenset(_ACTIVATION) | frozenset(_REVERSED) | frozenset(_NORMS) | {"layer_norm", "group_norm"}


def _floating(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.is_floating_point():
                yield value
        elif isinstance(value, (list, tuple)):
            yield from _floating(value)


def _cast(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype in (torch.float16, torch.float32) else value
    if isinstance(value, (list, tuple)):
        parts = [_cast(part, dtype) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def product(function, name, args, kwargs):
    """The product `function(*args, **kwargs)`, in the activation's type.

    Only float16 beside float32 is treated; other types are PyTorch's business.
    """
    operands = list(_floating(args)) + list(_floating(kwargs.values()))
    if "out" in kwargs or not any(tensor.dtype == torch.float16 for tensor in operands):
        return function(*args, **kwargs)
    if any(tensor.dtype not in (torch.float16, torch.float32) for tensor in operands):
        return function(*args, **kwargs)
    if name in _NORMS and len({tensor.dtype for tensor in operands}) > 1:
        return _norm(function, args, kwargs)
    place = 1 if name in _REVERSED else _ACTIVATION.get(name, 0)
    activation = next(_floating(args[place:]), operands[0])
    wide = function(*_cast(args, torch.float32), **{key: _cast(value, torch.float32) for key, value in kwargs.items()})
    return _cast(wide, activation.dtype)


def _norm(function, args, kwargs):
    """A norm with running statistics of another type than the activation: they keep their type."""
    wide = _cast(tuple(args), torch.float32)
    wide_named = {key: _cast(value, torch.float32) for key, value in kwargs.items()}
    result = function(*wide, **wide_named)
    for kept, computed in [*zip(args, wide), *((value, wide_named[key]) for key, value in kwargs.items())]:
        if isinstance(kept, torch.Tensor) and kept is not computed and not kept.requires_grad and kept is not args[0]:
            kept.copy_(computed)
    return _cast(result, args[0].dtype)
