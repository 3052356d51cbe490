"""The graph of nearest points."""

from .. import _near


def knn_graph(x, k, batch=None, loop=False, flow="source_to_target", cosine=False, *args, **kwargs):
    """[2, points times k]: edges from the k nearest points of the same example; -1 where there are fewer.

    loop: whether a point is near itself. flow: the neighbor is the edge's source ("source_to_target") or its target.
    """
    place = _near.nearest(x, x, k, batch, batch, cosine, but_itself=not loop)[1]
    return _near.directed(_near.pairs(place), flow)
