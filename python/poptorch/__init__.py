"""Runs scripts written for Graphcore's PopTorch on a machine without IPUs.

The arithmetic is done by PyTorch on the host; device iterations, accumulation, replicas, outputs and losses follow
PopTorch's semantics. The page docs/poptorch.md says what is exact, what is modeled and what is ignored.
"""

import os

# PopTorch sets it before workers are forked; scripts that look find it.
os.environ.setdefault("RDMAV_FORK_SAFE", "1")

from . import _impl, _logging, _poplar_executor, _utils, enums, ops, optim, options, poptorch_core, profiling, testing
from . import superstep
from ._operations import library
from ._operations.blocks import module_repr
from ._operations.blocks import print_module as print  # noqa: A001 - the public name
from ._dataloader import AsynchronousDataAccessor, DataLoader
from ._errors import ConfigFileError, Error, RecoverableError, UnrecoverableError
from ._execution.hooks import registerPostCompileHook, registerPreCompileHook
from ._execution.saving import load
from ._executor import PoplarExecutor, inferenceModel, trainingModel
from ._impl import createPoptorchError
from ._logging import logger, setLogLevel
from ._modeled.devices import ipuHardwareIsAvailable, ipuHardwareVersion
from ._running import isRunningOnIpu
from ._structures import ICustomArgParser, registerCustomArgParser
from .enums import *  # noqa: F403
from .ops import *  # noqa: F403
from .options import *  # noqa: F403

# The PopTorch whose interface this is.
__version__ = "3.3.0+superstep"
