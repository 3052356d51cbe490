"""The points within a distance."""

from .. import _near


def radius(x, y, r, batch_x=None, batch_y=None, max_num_neighbors=32, *args, **kwargs):
    """[2, points of y times max_num_neighbors]: each point of `y` and those of `x` within `r`; -1 where there are fewer.

    Of more than max_num_neighbors the nearest are taken.
    """
    return _near.pairs(_near.nearest(x, y, max_num_neighbors, batch_x, batch_y, most=r)[1])


def radius_graph(x, r, batch=None, loop=False, max_num_neighbors=32, flow="source_to_target", *args, **kwargs):
    """[2, points times max_num_neighbors]: edges from the points within `r`; arguments and -1 as those of `knn_graph`."""
    place = _near.nearest(x, x, max_num_neighbors, batch, batch, most=r, but_itself=not loop)[1]
    return _near.directed(_near.pairs(place), flow)
