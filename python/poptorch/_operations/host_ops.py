"""Operators that run on the host, and point operators of graphs."""

import math

import torch

from .. import _running
from .._errors import Error


class CPU:
    """A function that runs on the host in the middle of an inference model. `ID` names it. Error: in a training model."""

    def __init__(self, layer_to_call, ID):
        self._layer_to_call = layer_to_call
        self._ID = ID
        if isinstance(layer_to_call, torch.nn.Module):
            layer_to_call.requires_grad_(False)

    def __call__(self, *inputs, **kwargs):
        """What the function gives for these tensors."""
        forward = _running.current()
        if forward is not None and forward.training:
            raise Error(f"The host operator {self._ID} is in a training model: poptorch.CPU is for inference models only")
        return self._layer_to_call(*inputs, **kwargs)


def fps(src, ptr, ratio=0.5, random_start=False):
    """Farthest point sampling: from each sample's points (rows ptr[i] to ptr[i + 1] of `src`) ceil(ratio x points) indices.

    The first is the sample's first point, or a random one; each next is the farthest from those taken. Error: other kinds.
    """
    if not isinstance(src, torch.Tensor):
        raise Error(f"`fps` must take a torch.tensor input. {type(src)} is not supported.")
    if not isinstance(ptr, list):
        raise Error("`ptr` must be a list of integers.")
    if len(ptr) < 2:
        raise Error("`ptr` must contain at least 2 elements.")
    if not isinstance(ratio, float):
        raise Error(f"`ratio` must be of float type. {type(ratio)} is not supported.")
    if not isinstance(random_start, bool):
        raise Error(f"`random_start` must be of bool type. {type(random_start)} is not supported.")
    points = src.detach().float().reshape(src.shape[0], -1)
    parts = [_farthest(points[begin:end], ratio, random_start) + begin for begin, end in zip(ptr, ptr[1:])]
    return torch.cat(parts)


def _farthest(points, ratio, random_start):
    count = math.ceil(ratio * len(points))
    chosen = int(torch.randint(len(points), ())) if random_start else 0
    distances = torch.full((len(points),), math.inf)
    taken = []
    for _ in range(count):
        taken.append(chosen)
        distances = torch.minimum(distances, ((points - points[chosen]) ** 2).sum(1))
        chosen = int(distances.argmax())
    return torch.tensor(taken, dtype=torch.int64)


def nearest(x, y, batch_x=None, batch_y=None):
    """For each row of `x` the index of the nearest row of `y` of the same sample (`batch_x`, `batch_y`: sorted numbers).

    Error: arguments of other kinds.
    """
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, torch.Tensor):
            raise Error(f"`nearest` must take a torch.tensor `{name}` input. {type(value)} is not supported.")
    distances = torch.cdist(x.detach().float().reshape(len(x), -1), y.detach().float().reshape(len(y), -1))
    one, other = _samples(batch_x, len(x)), _samples(batch_y, len(y))
    return distances.masked_fill(one[:, None] != other[None, :], math.inf).argmin(1)


def _samples(batch, count):
    if batch is None or (isinstance(batch, list) and not batch):
        return torch.zeros(count, dtype=torch.int64)
    if not isinstance(batch, (list, torch.Tensor)):
        raise Error(f"`batch_x` and `batch_y` must be torch.Tensors or lists, not {type(batch)}.")
    return torch.as_tensor(batch, dtype=torch.int64)
