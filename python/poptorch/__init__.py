"""Runs scripts written for Graphcore's PopTorch on a machine without IPUs.

The arithmetic is done by PyTorch on the host; device iterations, accumulation, replicas, outputs and losses follow
PopTorch's semantics. The page docs/poptorch.md says what is exact, what is modelled and what is ignored.
"""

import os

# PopTorch sets it before workers are forked; scripts that look find it.
os.environ.setdefault("RDMAV_FORK_SAFE", "1")

from . import _impl, _library, _logging, _poplar_executor, _utils, enums, ops, optim, options, poptorch_core, profiling, testing
from . import superstep
from ._blocks import module_repr
from ._blocks import print_module as print  # noqa: A001 - the public name
from ._dataloader import AsynchronousDataAccessor, DataLoader
from ._devices import ipuHardwareIsAvailable, ipuHardwareVersion
from ._errors import ConfigFileError, Error, RecoverableError, UnrecoverableError
from ._executor import PoplarExecutor, inferenceModel, trainingModel
from ._hooks import registerPostCompileHook, registerPreCompileHook
from ._impl import createPoptorchError
from ._logging import logger, setLogLevel
from ._running import isRunningOnIpu
from ._saving import load
from ._structures import ICustomArgParser, registerCustomArgParser
from .enums import *  # noqa: F403
from .ops import *  # noqa: F403
from .options import *  # noqa: F403

# The PopTorch whose interface this is.
__version__ = "3.3.0+superstep"
