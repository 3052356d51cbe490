"""The nearest points."""

from .. import _near


def knn(x, y, k, batch_x=None, batch_y=None, cosine=False, *args, **kwargs):
    """[2, points of y times k]: each point of `y` and its k nearest in `x` of the same example; -1 where there are fewer."""
    return _near.pairs(_near.nearest(x, y, k, batch_x, batch_y, cosine)[1])
