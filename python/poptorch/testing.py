"""`poptorch.testing`: comparing nested results."""

import torch


def allclose(ref, other):
    """Whether both are tensors, lists or tuples of the same structure with close values."""
    if isinstance(ref, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.allclose(other, ref)
    if isinstance(ref, (list, tuple)):
        return (type(other) is type(ref) and len(other) == len(ref)
                and all(allclose(one, another) for one, another in zip(ref, other)))
    raise TypeError(f"{type(ref)} not supported: allclose compares tensors, lists and tuples")
