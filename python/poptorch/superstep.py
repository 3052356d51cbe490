"""What Superstep adds to PopTorch's interface."""

from ._operations.custom import register

__all__ = ["register"]
