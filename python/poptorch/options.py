"""The names of PopTorch's module `poptorch.options`."""

from ._errors import ConfigFileError
from ._options import Options
from ._popart_options import PopartOptions as _PopartOptions
from ._sections import (TensorLocationSettings, _DistributedOptions, _JitOptions, _PrecisionOptions, _TensorLocationOptions,
                        _TrainingOptions)
from ._strategies import (ParallelPhasedExecution, Phase, PipelinedExecution, SerialPhasedExecution, ShardedExecution, Stage,
                          _IExecutionStrategy, _IPhasedExecution)

__all__ = ["ConfigFileError", "Options", "ParallelPhasedExecution", "Phase", "PipelinedExecution", "SerialPhasedExecution",
           "ShardedExecution", "Stage", "TensorLocationSettings"]
