"""The sections of `Options`: Training, Precision, Distributed, TensorLocations, Jit."""

import os

import torch

from . import enums
from ._logging import warn_once
from ._settings import Settings


class _JitOptions(Settings):
    """`Options.Jit`: what remains of tracing."""

    def traceModel(self, trace_model):
        """Tracing is gone. ValueError for True; False is what happens anyway."""
        if trace_model:
            raise ValueError("Tracing is no longer supported: remove traceModel(True)")
        warn_once("Jit.traceModel(False) has no effect: models are never traced")
        return self


class _PrecisionOptions(Settings):
    """`Options.Precision`: types of partial sums, rounding, exceptions."""

    def __init__(self, popart):
        self._popart = popart
        super().__init__()

    def enableFloatingPointExceptions(self, enabled):
        """Whether a result that is not finite raises Error (default: no)."""
        assert isinstance(enabled, bool), "enableFloatingPointExceptions takes True or False"
        self._popart.set("enableFloatingPointChecks", enabled)
        return self

    def enableStochasticRounding(self, enabled):
        """Recorded: results are rounded to nearest here, which is said once."""
        self._popart.set("enableStochasticRounding", enabled)
        if enabled:
            warn_once("Stochastic rounding is not computed: half-precision results are rounded to nearest")
        return self

    def setPartialsType(self, dtype):
        """Type of the partial sums of products and convolutions, for the machine's model: torch.float or torch.half.

        Numbers are summed in float32 in any case. ValueError for another type.
        """
        if dtype not in (torch.float, torch.half):
            raise ValueError(f"setPartialsType takes torch.float or torch.half, not {dtype}")
        word = "float" if dtype == torch.float else "half"
        self._popart.set("partialsTypeMatMuls", word)
        self._popart.set("convolutionOptions", {"partialsType": word})
        return self

    def halfFloatCasting(self, half_float_casting):
        """Without effect, as in the last PopTorch."""
        warn_once("Precision.halfFloatCasting has no effect: products take the type of the activation, other operators promote")
        return self

    def runningStatisticsAlwaysFloat(self, value):
        """Running statistics keep their own type. ValueError for True in any form that would change it."""
        warn_once("Precision.runningStatisticsAlwaysFloat has no effect: running statistics keep the type that they have")
        return self


class _TrainingOptions(Settings):
    """`Options.Training`: accumulation and reduction of gradients, loss scaling."""

    def __init__(self, popart):
        self._popart = popart
        super().__init__(gradient_accumulation=1,
                         accumulation_and_replication_reduction_type=enums.ReductionType.Mean,
                         meanAccumulationAndReplicationReductionStrategy=enums.MeanReductionStrategy.Post)

    def gradientAccumulation(self, gradient_accumulation):
        """Micro-batches of one optimizer step on one replica."""
        self.set(gradient_accumulation=gradient_accumulation)
        return self

    def accumulationAndReplicationReductionType(self, reduction_type):
        """Whether gradients of micro-batches and replicas are averaged (Mean) or added (Sum). ValueError otherwise."""
        if reduction_type not in (enums.ReductionType.Sum, enums.ReductionType.Mean) or isinstance(reduction_type, bool):
            raise ValueError("accumulationAndReplicationReductionType must be set to poptorch.ReductionType.Mean or "
                             "poptorch.ReductionType.Sum")
        self.set(accumulation_and_replication_reduction_type=reduction_type)
        return self

    def setMeanAccumulationAndReplicationReductionStrategy(self, mean_reduction_strategy):
        """When a mean is divided: matters to rounding alone. A `MeanReductionStrategy`."""
        self.set(meanAccumulationAndReplicationReductionStrategy=mean_reduction_strategy)
        return self

    def setAutomaticLossScaling(self, enabled):
        """The scale stays at the optimizer's `loss_scaling`, which is said once."""
        self._popart.set("automaticLossScalingSettings.enabled", enabled)
        if enabled:
            warn_once("Automatic loss scaling: the scale stays at the optimizer's loss_scaling")
        return self

    def setConvolutionDithering(self, enabled):
        """Recorded."""
        self._popart.set("convolutionOptions", {"enableConvDithering": enabled})
        return self


class _DistributedOptions(Settings):
    """`Options.Distributed`: which of several processes this one is, for data loaders."""

    def __init__(self):
        super().__init__(num_distributed_processes=1, distributed_process_id=0)
        self.setEnvVarNames("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")

    def disable(self):
        """One process, whatever the environment says."""
        return self.configureProcessId(0, 1)

    def setEnvVarNames(self, var_num_processes, var_process_id):
        """Reads the number of processes and this one's from these environment variables."""
        return self.configureProcessId(int(os.environ.get(var_process_id, "0")),
                                       int(os.environ.get(var_num_processes, "1")))

    def configureProcessId(self, process_id, num_processes):
        """This process's number, from 0, and how many there are."""
        self.set(distributed_process_id=process_id, num_distributed_processes=num_processes)
        return self

    @property
    def processId(self):
        """This process's number."""
        return self.distributed_process_id

    @property
    def numProcesses(self):
        """How many processes there are."""
        return self.num_distributed_processes


class TensorLocationSettings(Settings):
    """Where tensors of one kind are kept: for the machine's model, without effect on numbers. Methods return the object."""

    def minElementsForOffChip(self, min_elements):
        """Tensors with fewer elements stay on the chip."""
        return self._number(minElementsForOffChip=min_elements)

    def minElementsForReplicatedTensorSharding(self, min_elements):
        """Tensors with fewer elements are not sharded over replicas."""
        return self._number(minElementsForReplicatedTensorSharding=min_elements)

    def useOnChipStorage(self, use=True):
        """On the chip, or in streaming memory; None: as by default."""
        if use is None:
            self.deleteIfExists("onChip")
            return self
        return self._flag(onChip=use)

    def useReplicatedTensorSharding(self, use=True):
        """Whether each replica keeps a part."""
        return self._flag(useReplicatedTensorSharding=use)

    def useIOTilesToLoad(self, use=True):
        """Whether tiles of their own read the tensor from streaming memory."""
        return self._flag(useIOTilesToLoad=use)

    def useIOTilesToStore(self, use=True):
        """Whether tiles of their own write the tensor to streaming memory."""
        return self._flag(useIOTilesToStore=use)

    def _number(self, **values):
        for name, value in values.items():
            assert isinstance(value, int), f"{name} takes an integer, not {value!r}"
            self.createOrSet(**{name: value})
        return self

    def _flag(self, **values):
        for name, value in values.items():
            assert isinstance(value, bool), f"{name} takes True or False, not {value!r}"
            self.createOrSet(**{name: int(value)})
        return self


class _TensorLocationOptions(Settings):
    """`Options.TensorLocations`: for the machine's model."""

    def numIOTiles(self, num_tiles):
        """Tiles of each chip that only read and write: an even number of 32 to 192."""
        assert isinstance(num_tiles, int) and 32 <= num_tiles <= 192 and num_tiles % 2 == 0, (
            "numIOTiles must be an even number between 32 and 192.")
        self.createOrSet(numIOTiles=num_tiles)
        return self

    def setActivationLocation(self, location):
        """Where values between the passes are kept."""
        return self._location("location_activation", location)

    def setWeightLocation(self, location):
        """Where parameters are kept."""
        return self._location("location_weight", location)

    def setOptimizerLocation(self, location):
        """Where the optimizer's state is kept."""
        return self._location("location_optimizer", location)

    def setAccumulatorLocation(self, location):
        """Where accumulated gradients are kept."""
        return self._location("location_accumulator", location)

    def _location(self, name, location):
        assert isinstance(location, TensorLocationSettings), f"{name} takes a poptorch.TensorLocationSettings"
        self.createOrSet(**{name: location.toDict()})
        return self
