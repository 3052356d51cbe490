"""What Superstep adds to PopTorch's interface."""

from ._custom import register

__all__ = ["register"]
