"""Options of PopART's session by name: recorded, checked when a model is compiled; a few go into the machine's model."""

import difflib
import enum

from ._errors import Error
from ._logging import logger

_FLAGS = """aliasZeroCopy autodiffSettings.stitchStrategy automaticLossScalingSettings.enabled
batchSerializationSettings.concatOnExecutionPhaseChange batchSerializationSettings.concatOnPipelineStageChange
batchSerializationSettings.concatOnVirtualGraphChange compileEngine constantWeights createImplicitPipeliningFwdOnlyProgram
decomposeGradSum delayVarUpdates disableGradAccumulationTensorStreams disableOptimizerStateTensorStreams dotOpNames
enableDistributedReplicatedGraphs enableEngineCaching enableExplicitIR enableExplicitMainLoops enableFloatingPointChecks
enableFullyConnectedPass enableGradientAccumulation enableInplaceAmbiguityChecking enableLoadAndOffloadRNGState
enableMergeExchange enableNonStableSoftmax enableOutlining enableOutliningCopyCostPruning enablePipelining
enablePrefetchDatastreams enableReplicatedGraphs enableSerializedMatmuls enableStableNorm enableStochasticRounding
enableSupportedDataTypeCasting enableVariablesCaching ensureFp32LossScaleTensor explicitRecomputation
exportPoplarComputationGraph exportPoplarVertexGraph groupHostSync groupNormStridedChannelGrouping
instrumentWithHardwareCycleCounter opxAliasChecking opxModifyChecking rearrangeAnchorsOnHost rearrangeStreamsOnHost
replicatedCollectivesSettings.mergeAllReduceCollectives replicatedCollectivesSettings.mergeReduceScatterCollectives
replicatedCollectivesSettings.prepareScheduleForMergingCollectives
scheduleNonWeightUpdateGradientConsumersEarly separateCallOpPdfs strictOpVersions swapLimitScheduler useHostCopyOps
useLoopCandidateCreator""".split()
_NUMBERS = """accumulateOuterFragmentSettings.schedule accumulationFactor autoRecomputation
automaticLossScalingSettings.binEdgeLocation automaticLossScalingSettings.gradientTensorTrackingMethod
automaticLossScalingSettings.thresholdUpperCountProportion automaticLossScalingSettings.updatePeriod
batchSerializationSettings.batchSchedule batchSerializationSettings.factor batchSerializationSettings.method
batchSerializationSettings.transformContext defaultBufferingDepth defaultPrefetchBufferingDepth
executionPhaseSettings.activationIOSchedule executionPhaseSettings.optimizerStateIOSchedule executionPhaseSettings.phases
executionPhaseSettings.schedule executionPhaseSettings.stages executionPhaseSettings.weightIOSchedule
finalDotOp firstDotOp globalReplicaOffset globalReplicationFactor mergeVarUpdate mergeVarUpdateMemThreshold numIOTiles
outlineSequenceBreakCost outlineThreshold replicatedGraphCount subgraphCopyingStrategy swapLimitScheduler syntheticDataMode
timeLimitScheduler transitiveClosureOptimizationThreshold virtualGraphMode""".split()
_TEXTS = """cachePath customCodeletCompileFlags kahnTieBreaker logDir partialsTypeMatMuls saveInitializersToFile
serializedPoprithmsShiftGraphsDir""".split()
_LISTS = """accumulateOuterFragmentSettings.excludedVirtualGraphs automaticLossScalingSettings.toTrackTensors customCodelets
dotChecks hardwareInstrumentations updatableNamedBuffers""".split()
_TABLES = "convolutionOptions engineOptions gclOptions lstmOptions matmulOptions patterns reportOptions".split()
_KNOWN = set(_FLAGS + _NUMBERS + _TEXTS + _LISTS + _TABLES + ["patterns_level"])


class PopartOptions:
    """`Options._Popart`: values by PopART's names, without effect on numbers.

    Names and kinds of values are checked when the model is compiled, as PopTorch does.
    """

    def __init__(self):
        self._is_frozen = False
        self.options = {"instrumentWithHardwareCycleCounter": False, "rearrangeAnchorsOnHost": False}

    def checkIsFrozen(self, option=None):
        """AttributeError when these options may not be changed any more."""
        if self._is_frozen:
            raise AttributeError("Can't modify frozen Options: a model or a data loader has them. Take a clone().")

    def set(self, key, value):
        """Sets one option; a table (a dictionary) is joined with what the option has."""
        self.checkIsFrozen()
        if isinstance(value, dict) and isinstance(self.options.get(key), dict):
            value = {**self.options[key], **value}
        self.options[key] = value
        return self

    def setEngineOptions(self, engine_options):
        """Sets options of the Poplar engine: a dictionary of names and texts."""
        return self.set("engineOptions", dict(engine_options))

    def setPatterns(self, patterns, level=2):
        """Switches PopART's patterns: a dictionary of names and truth values. Recorded: there are no such patterns here."""
        assert isinstance(level, int), "The level of patterns is a number"
        assert isinstance(patterns, dict), "Patterns are a dictionary of names and truth values"
        self.set("patterns_level", level)
        return self.set("patterns", patterns)

    def _set_frozen(self, frozen):
        self._is_frozen = frozen

    def __deepcopy__(self, memory):
        made = PopartOptions()
        made.options = {key: _copied(value) for key, value in self.options.items()}
        return made

    def __repr__(self):
        return f"PopartOptions({self.options!r})"


def _copied(value):
    return type(value)(value) if isinstance(value, (dict, list, set)) else value


def validate(options):
    """Raises Error for a name that PopART does not have (with the nearest that it has) or a value of no usable kind.

    At level DEBUG says every value, one line each.
    """
    for name, value in options.items():
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise Error(f"Unknown PopART option {name}.{hint}")
        _say(name, value)


def _say(name, value):
    if isinstance(value, dict):
        for key, part in value.items():
            logger.debug("poptorch.Options set %s[%s] to %s", name, key, part)
    elif isinstance(value, (list, set, tuple)):
        for part in value:
            logger.debug("poptorch.Options added %s to %s", part, name)
    elif isinstance(value, bool):
        logger.debug("poptorch.Options set %s to value %s", name, str(value).lower())
    elif isinstance(value, enum.IntEnum):
        logger.debug("poptorch.Options set %s to value %d", name, value)
    elif isinstance(value, (int, float, str)):
        logger.debug("poptorch.Options set %s to value %s", name, value)
    else:
        raise Error(f"Unknown value type {type(value).__name__} for option {name}")
