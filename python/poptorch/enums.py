"""The enumerations of PopTorch's interface: names and values are part of it."""

import enum


class OutputMode(enum.IntEnum):
    """Which micro-batches' results a call gives back: the last, every Nth, all, their sum.

    Default is All for inference and Final for training.
    """

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


class DataLoaderMode(enum.IntEnum):
    """Whether batches are read when asked for, ahead of time, or ahead of time and joined from single samples."""

    Sync = 0
    Async = 1
    AsyncRebatched = 2


class SharingStrategy(enum.IntEnum):
    """How a loader's process would pass its tensors. Recorded: batches are read ahead by a thread here."""

    SharedMemory = 0
    FileSystem = 1
    Fork = 2
    ForkServer = 3


class ReductionType(enum.IntEnum):
    """How gradients of micro-batches and replicas are joined."""

    Sum = 0
    Mean = 1
    NoReduction = 2


class MeanReductionStrategy(enum.IntEnum):
    """When a mean of gradients is divided: at each micro-batch, or at the end."""

    Running = 0
    Post = 1
    PostAndLoss = 2


class ConnectionType(enum.IntEnum):
    """When a device is attached: always, on demand, never (a model may then be compiled and not run)."""

    Always = 0
    OnDemand = 1
    Never = 2


class SyncPattern(enum.IntEnum):
    """How chips would synchronize. Recorded."""

    Full = 0
    SinglePipeline = 1
    ReplicaAndLadder = 2


class HalfFloatCastingBehavior(enum.IntEnum):
    """Without effect since PopTorch no longer traces; kept because scripts name it."""

    FloatDowncastToHalf = 0
    HalfUpcastToFloat = 1
    Default = 2


class Liveness(enum.IntEnum):
    """When a phased execution sends a phase's tensors off the chip."""

    AlwaysLive = 0
    OffChipAfterFwd = 1
    OffChipAfterFwdNoOverlap = 2
    OffChipAfterEachPhase = 3


class AutoStage(enum.IntEnum):
    """How blocks get a pipeline stage where the strategy lists none: by their IPU, or one more for each."""

    SameAsIpu = 0
    AutoIncrement = 1


class MultiConvPlanType(enum.IntEnum):
    """Whether the convolutions of a MultiConv run side by side or in turn."""

    Parallel = 0
    Serial = 1


class CommGroupType(enum.IntEnum):
    """How replicas form groups: one, of consecutive ones, of orthogonal ones, each its own."""

    All = 0
    Consecutive = 1
    Orthogonal = 2
    NoGrouping = 3


class VariableRetrievalMode(enum.IntEnum):
    """Whether a grouped parameter is read back once per group or from every replica."""

    OnePerGroup = 0
    AllReplicas = 2


class MatMulSerializationMode(enum.Enum):
    """Along which dimension a serialized matrix product is cut."""

    InputChannels = "input_channels"
    ReducingDim = "reducing_dim"
    OutputChannels = "output_channels"
    Disabled = "none"


class OverlapMode(enum.Enum):
    """Whether host transfers of a tensor overlap with computation, and within which loop."""

    NoOverlap = "no_overlap"
    OverlapAccumulationLoop = "overlap_accumulation_loop"
    OverlapDeviceIterationLoop = "overlap_device_iteration_loop"


__all__ = [name for name, value in list(globals().items()) if isinstance(value, type) and issubclass(value, enum.Enum)]
