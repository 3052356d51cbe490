"""Graphs of PyTorch Geometric in batches of fixed size, for scripts written for PopTorch Geometric.

Importing it lets graphs be arguments of models, and gives PyTorch Geometric operators of near points in plain torch where
pyg-lib, which has them, is not installed. Needs torch_geometric 2.4 or later.
"""

from . import _operators
from .collate import make_exclude_keys
from .dataloader import FixedSizeDataLoader, FixedSizeStrategy, OverSizeStrategy
from .fixed_size_options import FixedSizeOptions
from .types import PyGArgsParser, registerCustomArgParsers
from .utils import TrainingStepper, set_aggregation_dim_size

# The PopTorch Geometric whose interface this is.
__version__ = "3.3.0+superstep"

__all__ = ["FixedSizeDataLoader", "FixedSizeOptions", "FixedSizeStrategy", "OverSizeStrategy", "PyGArgsParser",
           "TrainingStepper", "__version__", "make_exclude_keys", "registerCustomArgParsers", "set_aggregation_dim_size"]

_operators.define()
