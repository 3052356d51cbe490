"""The enumerations of PopART that scripts hand to PopTorch's options, as integers. Nothing else of PopART is here.

`options._Popart.set("subgraphCopyingStrategy", int(popart.SubgraphCopyingStrategy.JustInTime))` works; building or running
graphs by PopART's own interface does not.
"""

import enum

__all__ = ["AccumulateOuterFragmentSchedule", "BatchSerializationBatchSchedule", "BatchSerializationMethod",
           "BatchSerializationTransformContext", "ExecutionPhaseIOSchedule", "ExecutionPhaseSchedule", "Instrumentation",
           "MeanReductionStrategy", "MergeVarUpdateType", "RecomputationType", "SubgraphCopyingStrategy",
           "SyntheticDataMode", "VirtualGraphMode"]


def _enumeration(name, members, what):
    made = enum.IntEnum(name, members.split(), start=0, module=__name__)
    made.__doc__ = what
    return made


AccumulateOuterFragmentSchedule = _enumeration(
    "AccumulateOuterFragmentSchedule", "Scheduler Serial OverlapCycleOptimized OverlapMemoryOptimized",
    "The order of the work after accumulation on the chips of a pipeline.")
BatchSerializationBatchSchedule = _enumeration(
    "BatchSerializationBatchSchedule", "Scheduler Isomorphic OverlapOnIo OverlapOnCompute",
    "The order of the parts of a batch that is taken apart.")
BatchSerializationMethod = _enumeration(
    "BatchSerializationMethod", "UnrollDynamic UnrollStatic Loop", "How a batch is taken apart.")
BatchSerializationTransformContext = _enumeration(
    "BatchSerializationTransformContext", "Fwd Bwd", "Before or after the backward pass is made.")
ExecutionPhaseIOSchedule = _enumeration(
    "ExecutionPhaseIOSchedule", "Preload OnDemand", "When a phase's tensors are loaded.")
ExecutionPhaseSchedule = _enumeration(
    "ExecutionPhaseSchedule", "Interleaving Batch BatchClusteredIO", "The order of a phase's optimizer steps.")
Instrumentation = _enumeration("Instrumentation", "Outer Inner", "Which loops are timed.")
MeanReductionStrategy = _enumeration(
    "MeanReductionStrategy", "Running Post PostAndLoss", "When a mean of gradients is divided.")
MergeVarUpdateType = _enumeration(
    "MergeVarUpdateType", "NoMerge All AutoLoose AutoTight", "Which updates of weights are joined.")
RecomputationType = _enumeration(
    "RecomputationType", "NoRecompute Standard NormOnly Pipeline RecomputeAll",
    "What is computed again in the backward pass.")
SubgraphCopyingStrategy = _enumeration(
    "SubgraphCopyingStrategy", "OnEnterAndExit JustInTime", "When inputs and outputs of a subgraph are copied.")
SyntheticDataMode = _enumeration(
    "SyntheticDataMode", "Off Zeros RandomNormal RandomUniform", "What is read instead of the host's data.")
VirtualGraphMode = _enumeration(
    "VirtualGraphMode", "Off Manual Auto ExecutionPhases", "Who divides a graph among chips.")


def __getattr__(name):
    raise AttributeError(f"popart has no {name} here: of PopART only the enumerations that PopTorch's options take are "
                         f"provided ({', '.join(__all__)}).")
