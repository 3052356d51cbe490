"""Features between points."""

from .. import _near


def knn_interpolate(x, pos_x, pos_y, batch_x=None, batch_y=None, k=3, num_workers=1, *args, **kwargs):
    """[points of y, features]: means of the features of the k nearest points, weighted by 1 / squared distance.

    Squared distances count 1e-16 at least. A point without any near one in its example has zeros.
    """
    far, place = _near.nearest(pos_x, pos_y, k, batch_x, batch_y)
    weights = (1 / far.detach().square().clamp(min=1e-16)).masked_fill(place < 0, 0)
    taken = x[place.clamp(min=0)] * weights[..., None]
    return taken.sum(1) / weights.sum(1, keepdim=True).clamp(min=1e-38)
