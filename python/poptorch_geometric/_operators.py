"""The operators of near points that PyTorch Geometric calls, where the library that has them (pyg-lib) is not installed.

They are defined in plain torch as `torch.ops.pyg.knn`, `.radius` and `.nearest`; functions and layers of PyTorch Geometric
that use them (knn_graph, radius_graph, DynamicEdgeConv, GravNetConv, XConv, SchNet, DimeNet) run then.
"""

import torch
import torch_geometric.typing as has
from torch.library import Library

from . import _near

_SCHEMAS = {
    "knn": "knn(Tensor x, Tensor y, Tensor? ptr_x, Tensor? ptr_y, int k, bool cosine=False, int num_workers=1) -> Tensor",
    "radius": "radius(Tensor x, Tensor y, Tensor? ptr_x, Tensor? ptr_y, float r, int max_num_neighbors=32, "
              "int num_workers=1, bool ignore_same_index=False) -> Tensor",
    "nearest": "nearest(Tensor x, Tensor y, Tensor? ptr_x, Tensor? ptr_y) -> Tensor",
}


def _examples(ptr, points):
    """The example of each point, of where examples begin."""
    if ptr is None:
        return None
    return torch.repeat_interleave(torch.arange(ptr.numel() - 1, device=ptr.device), ptr.diff(), output_size=points.size(0))


def _knn(x, y, ptr_x, ptr_y, k, cosine=False, num_workers=1):
    place = _near.nearest(x, y, k, _examples(ptr_x, x), _examples(ptr_y, y), cosine)[1]
    return _near.found(_near.pairs(place))


def _radius(x, y, ptr_x, ptr_y, r, max_num_neighbors=32, num_workers=1, ignore_same_index=False):
    place = _near.nearest(x, y, max_num_neighbors, _examples(ptr_x, x), _examples(ptr_y, y), most=r,
                          but_itself=ignore_same_index)[1]
    return _near.found(_near.pairs(place))


def _nearest(x, y, ptr_x, ptr_y):
    """For each point of `x` the nearest of `y`."""
    return _near.nearest(y, x, 1, _examples(ptr_y, y), _examples(ptr_x, x))[1].flatten()


_FUNCTIONS = {"knn": _knn, "radius": _radius, "nearest": _nearest}
# What was defined here; it lives as long as this module.
_defined = []


def define():
    """Defines what is missing; nothing where pyg-lib has it."""
    missing = [name for name in _FUNCTIONS if not getattr(has, f"WITH_{name.upper()}", True)]
    if not missing or _defined:
        return
    library = Library("pyg", "FRAGMENT")
    for name in missing:
        library.define(_SCHEMAS[name])
        library.impl(name, _FUNCTIONS[name], "CompositeExplicitAutograd")
        setattr(has, f"WITH_{name.upper()}", True)
    _defined.append(library)
