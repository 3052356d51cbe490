"""Runs scripts written for Graphcore's PopTorch on a machine without IPUs.

The arithmetic is done by PyTorch on the host; device iterations, accumulation, replicas, outputs and losses follow
PopTorch's semantics. The page docs/poptorch.md says what is exact, what is modelled and what is ignored.
"""

import os

# PopTorch sets it before workers are forked; scripts that look find it.
os.environ.setdefault("RDMAV_FORK_SAFE", "1")

from . import enums, options
from ._errors import ConfigFileError, Error, RecoverableError, UnrecoverableError
from ._logging import logger, setLogLevel
from .enums import *  # noqa: F403
from .options import *  # noqa: F403
