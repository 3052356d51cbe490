"""Points near others, in plain torch: exact, by all distances, a part of the points at a time."""

import torch

# Distances that are held at a time: 64 MB of float32.
_AT_ONCE = 1 << 24


def _as_rows(points):
    points = points if points.is_floating_point() else points.float()
    return points.view(-1, 1) if points.dim() == 1 else points


def _checked(x, y, batch_x, batch_y):
    x, y = _as_rows(x), _as_rows(y)
    if x.size(1) != y.size(1):
        raise ValueError(f"Points of {x.size(1)} and of {y.size(1)} coordinates have no distance.")
    for points, batch, name in ((x, batch_x, "batch_x"), (y, batch_y, "batch_y")):
        if batch is not None and batch.numel() != points.size(0):
            raise ValueError(f"{name} has {batch.numel()} entries for {points.size(0)} points.")
    batch_x = x.new_zeros(x.size(0), dtype=torch.long) if batch_x is None else batch_x
    batch_y = y.new_zeros(y.size(0), dtype=torch.long) if batch_y is None else batch_y
    return x, y, batch_x, batch_y


def _distances(x, y, cosine):
    if cosine:
        normal = torch.nn.functional.normalize
        return 1 - normal(y, dim=-1) @ normal(x, dim=-1).T
    return torch.cdist(y, x, compute_mode="donot_use_mm_for_euclid_dist")


def nearest(x, y, k, batch_x=None, batch_y=None, cosine=False, most=float("inf"), but_itself=False):
    """The k nearest points of `x` to each of `y` in the same example, nearer ones first.

    Args:
        x, y: [points, coordinates] or [points].
        batch_x, batch_y: the example of each point; None: all in one.
        cosine: by 1 - cosine of the angle instead of the Euclidean distance.
        most: points farther than this are not near.
        but_itself: x and y are the same points, and none is near itself.

    Returns (distances, places in x), both [points of y, min(k, points of x)]; where fewer are near, infinity and -1.
    """
    x, y, batch_x, batch_y = _checked(x, y, batch_x, batch_y)
    k = min(k, x.size(0))
    rows = max(1, _AT_ONCE // max(1, x.size(0)))
    far, place = [y.new_zeros((0, k))], [torch.zeros((0, k), dtype=torch.long, device=y.device)]
    for begin in range(0, y.size(0), rows):
        part = slice(begin, begin + rows)
        distances = _distances(x, y[part], cosine)
        apart = (batch_y[part, None] != batch_x) | (distances > most)
        if but_itself:
            own = torch.arange(begin, begin + distances.size(0), device=y.device)
            apart = apart | (own[:, None] == torch.arange(x.size(0), device=y.device))
        values, columns = distances.masked_fill(apart, float("inf")).topk(k, largest=False, sorted=True)
        far.append(values)
        place.append(columns.masked_fill(values.isinf(), -1))
    return torch.cat(far), torch.cat(place)


def pairs(place):
    """[2, points of y times k]: point of y and its near point of x, -1 in both where there is none."""
    rows = torch.arange(place.size(0), device=place.device)[:, None].expand_as(place)
    return torch.stack([torch.where(place < 0, -1, rows).flatten(), place.flatten()])


def found(edges):
    """The pairs without those of -1."""
    return edges[:, edges[0] >= 0]


def directed(edges, flow):
    """Edges (source, target) of pairs (point, its neighbor)."""
    if flow not in ("source_to_target", "target_to_source"):
        raise ValueError(f"flow is 'source_to_target' or 'target_to_source', not {flow!r}.")
    return edges.flip(0) if flow == "source_to_target" else edges
