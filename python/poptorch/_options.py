"""`Options`: how a model is compiled and run. Values are attributes; methods that set them return the object."""

import ast
import copy
import json
import os

import torch

from . import _popart_options, enums
from ._errors import ConfigFileError
from ._logging import logger, warn_once
from ._sections import _DistributedOptions, _JitOptions, _PrecisionOptions, _TensorLocationOptions, _TrainingOptions
from ._settings import Settings
from ._strategies import PipelinedExecution, _IExecutionStrategy

# PopTorch's number for "no limit".
_UNLIMITED = (1 << 64) - 1
_SYNTHETIC_RANDOM = 2  # popart.SyntheticDataMode.RandomNormal


class Options(Settings):
    """Options of a model, frozen as soon as a model or a data loader has them (AttributeError on change); `clone()` is free.

    Defaults: one device iteration, one replica, accumulation 1, mean of gradients, `PipelinedExecution()` by IPU.
    POPTORCH_CACHE_DIR and POPTORCH_DEFAULT_OPTIONS (JSON, as `from_json`) are read at construction.
    """

    def __init__(self):
        self._jit = _JitOptions()
        self._popart = _popart_options.PopartOptions()
        self._precision = _PrecisionOptions(self._popart)
        self._training = _TrainingOptions(self._popart)
        self._distributed = _DistributedOptions()
        self._tensor_locations = _TensorLocationOptions()
        self._execution_strategy = PipelinedExecution()
        self._relax_optimizer_checks = False
        self._show_compilation_progress_bar = True
        self._module_namescope_enabled = True
        self._source_location_excludes = []
        self._cache_path = None
        self._profile_dir = None
        super().__init__(replication_factor=1, input_group_size=1, input_cgt=enums.CommGroupType.Consecutive,
                         broadcast_buffers=True, device_iterations=1, log_dir=".", max_repeat_logs=4,
                         auto_round_num_ipus=False, anchored_tensors={}, output_mode=enums.OutputMode.Default,
                         output_return_period=1, connection_type=enums.ConnectionType.Always,
                         sync_pattern=enums.SyncPattern.Full, available_memory_proportion={})
        if os.environ.get("POPTORCH_CACHE_DIR"):
            self.enableExecutableCaching(os.environ["POPTORCH_CACHE_DIR"])
        self.from_json(os.environ.get("POPTORCH_DEFAULT_OPTIONS") or "{}")

    # Sections.

    @property
    def TensorLocations(self):
        """Where tensors are kept (machine's model)."""
        return self._tensor_locations

    @property
    def Distributed(self):
        """Several processes."""
        return self._distributed

    @property
    def Jit(self):
        """What remains of tracing."""
        return self._jit

    @property
    def Precision(self):
        """Types of partial sums, rounding, exceptions."""
        return self._precision

    @property
    def Training(self):
        """Accumulation and reduction of gradients."""
        return self._training

    @property
    def _Popart(self):
        return self._popart

    # The batch algebra and outputs.

    def deviceIterations(self, device_iterations):
        """Turns of the loop on the device per call: optimizer steps in training."""
        self.set(device_iterations=device_iterations)
        return self

    def replicationFactor(self, replication_factor):
        """Copies of the model, each on its own chips."""
        self.set(replication_factor=replication_factor)
        return self

    def inputReplicaGrouping(self, input_group_size, input_group_type):
        """Gives all replicas of a group the same input.

        `input_group_size` divides the replication factor (ValueError); `input_group_type` is Consecutive, Orthogonal or
        NoGrouping (All: ValueError).
        """
        if input_group_type == enums.CommGroupType.All:
            raise ValueError("input_group_type cannot be All")
        if input_group_type == enums.CommGroupType.NoGrouping:
            input_group_size, input_group_type = 1, enums.CommGroupType.Consecutive
        if self.replication_factor < input_group_size:
            raise ValueError("input_group_size cannot be larger than replication_factor")
        if self.replication_factor % input_group_size:
            raise ValueError("input_group_size must be a factor of replication_factor")
        self.set(input_group_size=input_group_size, input_cgt=input_group_type)
        return self

    def outputMode(self, output_mode, output_return_period=None):
        """Which micro-batches' results a call gives back. EveryN takes a period (AssertionError without)."""
        assert isinstance(output_mode, enums.OutputMode), "outputMode takes a poptorch.OutputMode"
        if output_mode == enums.OutputMode.EveryN:
            assert output_return_period and output_return_period > 0, (
                "EveryN output mode requires a valid output_return_period to be set: a positive number")
        elif output_return_period is not None:
            warn_once("outputMode: output_return_period is ignored, it belongs to EveryN alone")
        self.set(output_mode=output_mode, output_return_period=output_return_period or 1)
        return self

    def defaultOutputMode(self):
        """Whether the output mode is still Default."""
        return self.output_mode == enums.OutputMode.Default

    def anchorTensor(self, short_name, long_name, output_mode=None, output_return_period=1):
        """Keeps the tensor `long_name` of each run under `short_name`, for `executor.getAnchoredTensor`.

        Without `output_mode` it is kept as the outputs are.
        """
        period = output_return_period if output_mode == enums.OutputMode.EveryN else 1
        self.checkIsFrozen()
        self.anchored_tensors[short_name] = [long_name, output_mode is None,
                                             enums.OutputMode.Default if output_mode is None else output_mode, period]

    # How models are compiled and where they run.

    def setExecutionStrategy(self, strategy):
        """How blocks are placed on chips and run. Values do not depend on it, its rules are checked."""
        assert isinstance(strategy, _IExecutionStrategy), (
            "setExecutionStrategy takes a PipelinedExecution, ShardedExecution or phased execution")
        self.checkIsFrozen()
        self._execution_strategy = strategy
        return self

    def autoRoundNumIPUs(self, auto_round_num_ipus=True):
        """Whether a number of chips that is no power of two is rounded up (else an Error)."""
        self.set(auto_round_num_ipus=auto_round_num_ipus)
        return self

    def setAvailableMemoryProportion(self, available_memory_proportion):
        """Share of tile memory for temporary values by chip: {"IPU0": 0.3}. For the machine's model."""
        shares = {}
        for key, share in available_memory_proportion.items():
            assert isinstance(key, str) and key[:3] == "IPU" and key[3:].isdigit(), (
                f'Available memory proportions are a dictionary like {{"IPU0": 0.5}}. Invalid key: {key}')
            shares[int(key[3:])] = share
        self.set(available_memory_proportion=shares)
        return self

    def enableExecutableCaching(self, path):
        """Keeps what compiling found under this folder; None: nothing is kept."""
        self.checkIsFrozen()
        self._cache_path = path
        self._popart.set("enableEngineCaching", path is not None)
        if path is not None:
            self._popart.set("cachePath", str(path))
        return self

    def useIpuModel(self, use_model):
        """Recorded: the machine is always a model here, which is said once for False."""
        if not use_model:
            warn_once("useIpuModel(False): there is no IPU here, the machine is a model")
        self.createOrSet(use_model=use_model)
        return self

    def useOfflineIpuTarget(self, ipu_version=2):
        """Models may be compiled and not run."""
        self.connectionType(enums.ConnectionType.Never)
        self.createOrSet(ipu_version=ipu_version)
        return self

    def connectionType(self, connection_type):
        """When a device is attached; Never: models are compiled and not run."""
        assert isinstance(connection_type, enums.ConnectionType), "connectionType takes a poptorch.ConnectionType"
        self.set(connection_type=connection_type)
        return self

    def syncPattern(self, sync_pattern):
        """Recorded."""
        assert isinstance(sync_pattern, enums.SyncPattern), "syncPattern takes a poptorch.SyncPattern"
        self.set(sync_pattern=sync_pattern)
        return self

    def useIpuId(self, ipu_id):
        """Recorded."""
        assert isinstance(ipu_id, int), "useIpuId takes a number"
        self.createOrSet(ipu_id=ipu_id)
        return self

    def broadcastBuffers(self, broadcast_buffers=True):
        """Whether replicas have the same buffers; False: one set each, dimension 0 of a buffer is the replica."""
        self.set(broadcast_buffers=broadcast_buffers)
        return self

    def updatableNamedBuffers(self, buffers):
        """Names of the buffers that `copyNamedBuffersToDevice` writes."""
        self._popart.set("updatableNamedBuffers", list(buffers))
        return self

    def relaxOptimizerAttributesChecks(self, relax=True):
        """Whether unknown attributes of an optimizer are passed over without a warning."""
        self.checkIsFrozen()
        self._relax_optimizer_checks = relax
        return self

    # Randomness and inputs.

    def randomSeed(self, random_seed):
        """Seed of the random numbers that models draw; also `torch.manual_seed` at this moment."""
        assert isinstance(random_seed, int), "randomSeed takes a number"
        torch.manual_seed(random_seed)
        self.createOrSet(random_seed=random_seed)
        return self

    def enableSyntheticData(self, enabled):
        """Inputs are made up (normal numbers, integers 0) instead of read, by the argument's truth."""
        self._popart.set("syntheticDataMode", _SYNTHETIC_RANDOM if enabled else 0)
        return self

    def enableStableNorm(self, enabled):
        """Recorded: norms are computed stably here."""
        self._popart.set("enableStableNorm", enabled)
        return self

    # What is said and kept.

    def logCycleCount(self, log_cycle_count):
        """Whether `executor.cycleCount()` is told."""
        self._popart.set("instrumentWithHardwareCycleCounter", log_cycle_count)
        return self

    def enableProfiling(self, profile_dir=None):
        """Keeps a profile of the machine's model under this folder; POPLAR_ENGINE_OPTIONS wins where it names one."""
        self.checkIsFrozen()
        self._profile_dir = profile_dir if profile_dir is not None else "."
        return self

    def logDir(self, log_dir):
        """Recorded: a folder."""
        self.set(log_dir=str(log_dir))
        return self

    def modelName(self, name):
        """Name of the model in profiles."""
        self.createOrSet(model_name=name)
        return self

    def maxRepeatLogs(self, max_lines):
        """Recorded: a number, None for no limit."""
        self.set(max_repeat_logs=_UNLIMITED if max_lines is None else max_lines)
        return self

    def showCompilationProgressBar(self, show=True):
        """Whether `executor.compilationTime()` is told."""
        self.checkIsFrozen()
        self._show_compilation_progress_bar = show
        return self

    def disableModuleNamescope(self):
        """Intermediate values are named without the module that they belong to."""
        self.checkIsFrozen()
        self._module_namescope_enabled = False
        return self

    def sourceLocationExcludes(self, excludes):
        """Recorded: words of files to pass over when a place in the source is named."""
        self.checkIsFrozen()
        self._source_location_excludes = list(excludes)
        return self

    def appendToLocationExcludes(self, *excludes):
        """Recorded: more words, as `sourceLocationExcludes`."""
        self.checkIsFrozen()
        self._source_location_excludes = self._source_location_excludes + list(excludes)
        return self

    # Files and copies.

    def loadFromFile(self, filepath):
        """Sets options from a file: one call per line without `options.`, as `deviceIterations(4)`; # begins a comment.

        ConfigFileError names the file and the line that Python cannot read.
        """
        import poptorch
        with open(filepath, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text and not text.startswith("#"):
                code = _parsed("options." + text, filepath, number)
                exec(code, {"poptorch": poptorch, "torch": torch, "options": self})
        return self

    def from_json(self, string):
        """Sets options from JSON: {"Training.gradientAccumulation": 4, "outputMode": "OutputMode.All", "_Popart.set": ["k", 1]}.

        A list is the method's arguments in order.
        """
        for path, value in json.loads(string).items():
            method = self
            for part in path.split("."):
                method = getattr(method, part)
            method(*(_as_enum(part) for part in (value if isinstance(value, list) else [value])))
        return self

    def toDict(self):
        """All values in one dictionary. AssertionError while the output mode is Default."""
        assert not self.defaultOutputMode(), "An output mode must be picked before serialisation"
        return {**self._execution_strategy.backendOptions(), **self._popart.options, **self._values,
                **self._training.toDict(), **self._distributed.toDict(), **self._tensor_locations.toDict()}

    def toDict_names(self):
        """Names of `toDict` that are this package's, not PopART's."""
        strategies = ("execution_mode", "separate_backward_phase", "tensors_liveness", "serial_phases_execution")
        created = ("model_name", "use_model", "ipu_id", "ipu_version", "random_seed", "numIOTiles", "location_activation",
                   "location_weight", "location_optimizer", "location_accumulator")
        return (*self._values, *self._training.toDict(), *self._distributed.toDict(), *strategies, *created)

    def clone(self):
        """A copy that may be changed."""
        return copy.deepcopy(self)

    def __repr__(self):
        parts = [f"{name}={value!r}" for name, value in self._values.items()]
        sections = ("Distributed", "Jit", "Precision", "TensorLocations", "Training", "_Popart")
        parts += [f"{name}={getattr(self, name)!r}" for name in sections]
        parts += [f"{name}={value!r}" for name, value in self.__dict__.items()
                  if name in ("_execution_strategy", "_cache_path", "_profile_dir", "_relax_optimizer_checks")]
        return f"{type(self).__name__}({', '.join(parts)})"


def _parsed(text, filepath, number):
    name = os.path.basename(filepath)
    try:
        return compile(ast.parse(text, name, "eval"), name, "eval")
    except SyntaxError as error:
        raise ConfigFileError(f"SyntaxError at line {number} of {name}: {error.msg}\n> {text}") from None


def _as_enum(value):
    """`OutputMode.All` as the enumeration's member; other values as they are."""
    if isinstance(value, str) and value.count(".") == 1:
        kind, member = value.split(".")
        found = getattr(enums, kind, None)
        if isinstance(found, type) and member in getattr(found, "__members__", {}):
            return found[member]
    return value


def describe(options):
    """Says every value at level DEBUG, and checks PopART's names (Error)."""
    for name, value in {**options._values, **options._training.toDict(), **options._distributed.toDict(),
                        **options._execution_strategy.backendOptions()}.items():
        if isinstance(value, (int, str)):
            shown = str(value).lower() if isinstance(value, bool) else format(value, "d") if isinstance(value, int) else value
            logger.debug("poptorch.Options set %s to value %s", name, shown)
    for name, value in options._tensor_locations.toDict().items():
        logger.debug("poptorch.Options set %s to value %s", name, _location_words(value))
    if options.exists("use_model"):
        logger.info("From the user configuration: Ipu model: %s", "Enabled" if options.use_model else "Disabled")
    _popart_options.validate(options._popart.options)


def _location_words(value):
    if not isinstance(value, dict):
        return value
    words = {"onChip": "useOnChipStorage"}
    return ", ".join(f"{words.get(key, key)}({bool(part) if key.startswith('use') or key == 'onChip' else part})"
                     for key, part in value.items())
