"""`PoplarExecutor`: a model as it would run on the device: compiled at its first call, fed whole device iterations."""

import copy
import datetime
import sys
import time

import torch

from . import _options, _running, enums
from ._errors import Error
from ._execution import anchors, saving, wrapping
from ._execution.arguments import Signature, narrowed
from ._execution.batching import Batching, Collector, refuse_backward
from ._execution.engine import make_engine
from ._execution.forward import ForwardPass
from ._execution.gradients import Accumulator
from ._execution.hooks import compile_hooks
from ._execution.replica_groups import shown
from ._logging import logger
from ._modeled import devices, timing
from ._operations.overlap import Overlap
from ._strategies import Placement
from ._structures import tensors_in

_NOT_COMPILED = "Model has not been compiled or has been destroyed."


class PoplarExecutor:
    """Stands for a model that `trainingModel` or `inferenceModel` wrapped; attributes that it lacks are the model's.

    Calling it takes the model's arguments for all device iterations, accumulation steps and replicas at once.
    """

    def __init__(self, model, options, training, optimizer=None, user_model=None):
        self._user_model = user_model if user_model is not None else model
        self._model = model
        self._training = training
        self._options = _taken(options, training, optimizer)
        self._optimizer = optimizer
        self._update = None
        self._signature = Signature(model)
        self._compiled = None  # the arguments that the model was compiled for
        self._attached = False
        self._engine = self._plan = self._batching = None
        self._anchors = anchors.Anchors(self._options)
        self._timing = timing.Timing(self, self._options)
        self._compile_seconds = 0.0
        self._pending_rng = None
        self._dirty = False
        self.per_replica_params = {}
        self._finite = self._options._Popart.options.get("enableFloatingPointChecks", False)
        self._computed_by = None
        self._options._freeze()
        if _running.made is not None:
            _running.made.append(self)
        if training:
            wrapping.wrap(self._user_model, self)

    # What the executor is.

    @property
    def model(self):
        """The wrapped model."""
        return self._user_model

    @property
    def options(self):
        """The options, frozen."""
        return self._options

    @property
    def training(self):
        """Whether the wrapped model is in training mode."""
        return self._user_model.training

    @property
    def _executable(self):
        return self._compiled

    def __getattr__(self, name):
        if name.startswith("__") or "_user_model" not in self.__dict__:
            raise AttributeError(name)
        found = getattr(self._user_model, name)
        return shown(found, self, name) if type(found) is torch.nn.Parameter else found

    def __repr__(self):
        from ._operations.blocks import module_repr
        return module_repr(self._user_model)

    # Compiling.

    def isCompiled(self):
        """Whether the model is compiled and not destroyed."""
        return self._compiled is not None

    def compile(self, *args, **kwargs):
        """Compiles for arguments like these, without running. A second time: a warning, nothing else."""
        arguments = self._signature.bind(args, kwargs)
        if self.isCompiled():
            logger.warning("Call to compile() ignored: the executable is already compiled")
            return
        self._compile(arguments)

    def _compile(self, arguments):
        start = time.perf_counter()
        _options.describe(self._options)
        devices.check_environment()
        self._timing.check()
        batching = Batching(self._options)
        batching.check(arguments)
        batching.check_outputs(self._options.output_mode, self._options.output_return_period)
        engine = make_engine(self._model, self._options, self._training, self.per_replica_params)
        if self._pending_rng is not None:
            engine.randomness.restore(self._pending_rng)
        placement = Placement(self._options._execution_strategy)
        with compile_hooks():
            result = self._trace(engine, batching, arguments, placement)
        placement.check(self._training, self._options, devices.attaches(self._options))
        self._check_buffers(engine)
        self._make_update(engine)
        self._anchors.check(self._names(engine, arguments, result))
        self._engine, self._plan, self._batching = engine, placement, batching
        self._compiled = arguments.mapped(lambda tensor: tensor.detach())
        self._attached = self._options.connection_type != enums.ConnectionType.Never
        self._timing.compiled(type(self._model).__name__)
        self._compile_seconds = time.perf_counter() - start

    def _trace(self, engine, batching, arguments, placement):
        words = []
        narrow = arguments.mapped(lambda tensor: narrowed(tensor, words.append))
        for line in dict.fromkeys(words):
            logger.warning("%s", line)
        self._recorder = anchors.Recorder(self._model, self._options)
        overlap = Overlap()
        forward = ForwardPass(placement, self._recorder, self._training, overlap)
        result = engine.trace(batching.micro_batch(narrow, 0, 0, 0), forward)
        if self._training:
            forward.marks.final()
        overlap.check(result, self._options)
        self._recorder.close()
        return result

    def _check_buffers(self, engine):
        names = self._options._Popart.options.get("updatableNamedBuffers", [])
        missing = [name for name in names if name not in engine.state.buffers()]
        if missing:
            raise Error(f"updatableNamedBuffers names {', '.join(missing)}, which is no buffer of the model: it has "
                        f"{', '.join(engine.state.buffers()) or 'none'}")

    def _make_update(self, engine):
        if not self._training:
            return
        from . import optim
        automatic = self._options._Popart.options.get("automaticLossScalingSettings.enabled", False)
        attached = self._options.connection_type != enums.ConnectionType.Never
        self._update = optim.make_update(self._optimizer, engine.state.parameters(),
                                         relax=self._options._relax_optimizer_checks, automatic_loss_scaling=automatic,
                                         attached=attached)

    def compilationTime(self):
        """How long compiling took, a timedelta. Error before compiling, and where the progress bar is off."""
        if not self.isCompiled():
            raise Error("Please compile the model before obtaining compilation time.")
        if not self._options._show_compilation_progress_bar:
            raise Error("Please set showCompilationProgressBar option to obtain compilation time.")
        return datetime.timedelta(seconds=self._compile_seconds)

    # Running.

    def __call__(self, *args, **kwargs):
        """Runs all device iterations. Arguments as the model's, rows of all micro-batches one after the other.

        AssertionError: the device is offline, rows do not divide. Error: arguments differ from those compiled for.
        """
        assert self._options.connection_type != enums.ConnectionType.Never, (
            "Trying to run a model on an offline device (ConnectionType.Never): use model.compile(inputs) instead of "
            "model(inputs)")
        arguments = self._signature.bind(args, kwargs)
        if not self.isCompiled():
            self._compile(arguments)
        if not self._attached:
            self.attachToDevice()
        self._compiled.check(arguments)
        arguments = self._timing.synthetic(arguments.mapped(narrowed))
        self._timing.begin()
        self._engine.begin()
        collector = Collector(self._options.output_mode, self._options.output_return_period, self._batching)
        self._anchors.begin(self._batching)
        with self._engine.randomness:
            for iteration in range(self._batching.iterations):
                self._iterate(arguments, iteration, collector)
        result = collector.result()
        self._finish(result, collector.multiplier)
        return result

    def _iterate(self, arguments, iteration, collector):
        """One device iteration: all micro-batches, and in training one optimizer step."""
        parameters = self._engine.state.parameters() if self._training else {}
        scaling = self._update.loss_scaling if self._training else 1.0
        reduced = Accumulator(self._options, self._update.accumulation_type, scaling) if self._training else None
        for step in range(self._batching.accumulation):
            for replica in range(self._batching.replicas):
                micro_batch = self._batching.micro_batch(arguments, iteration, step, replica)
                forward = ForwardPass(None, self._anchors.recorder(self._model), self._training, finite=self._finite)
                forward.check_finite("an input", micro_batch.tensors())
                result = self._engine.forward(micro_batch, forward, replica)
                watched = self._anchors.watched(forward.recorder)
                loss = None
                if self._training:
                    loss, gradients, of_watched = self._engine.backward(forward, parameters, scaling, watched)
                    self._anchors.gradients(forward.recorder, of_watched, scaling)
                    reduced.add(gradients)
                collector.add(result, iteration, step, replica)
                self._anchors.micro_batch(forward.recorder, micro_batch, loss, iteration, step, replica)
        if self._training:
            gradients = self._over_instances(reduced.result())
            self._update.step(gradients)
            self._anchors.step(gradients, parameters, self._update, self._optimizer, iteration)

    def _over_instances(self, gradients):
        """Gradients reduced over the instances that `poprun` started, where the options are popdist's."""
        popdist = sys.modules.get("popdist.poptorch")
        if popdist is None or not isinstance(self._options, popdist.Options):
            return gradients
        mean = self._options.Training.accumulation_and_replication_reduction_type == enums.ReductionType.Mean
        return sys.modules["popdist"].average(gradients, mean)

    def _finish(self, result, multiplier):
        self._anchors.finish(self._engine.state)
        self._timing.ran(len(tensors_in(result)), multiplier)
        self._computed_by = self._engine.words
        if self._training:
            self._engine.trained()
            self._dirty = True
        refuse_backward(result)

    def setOptimizer(self, optimizer):
        """Reads the optimizer's hyperparameters as they are now. Error: a constant one changed."""
        if not self._training:
            raise Error("setOptimizer belongs to training models")
        self._optimizer = optimizer
        if self._update is not None:
            self._update.adopt(optimizer)

    # The device.

    def _need_executable(self):
        if not self.isCompiled():
            raise Error(_NOT_COMPILED)

    def isAttachedToDevice(self):
        """Whether the model is on its device."""
        return self.isCompiled() and self._attached

    def attachToDevice(self):
        """Takes the device. Error: not compiled, or attached already. AssertionError: the device is offline."""
        self._need_executable()
        assert self._options.connection_type != enums.ConnectionType.Never, (
            "Trying to attach to an offline device (ConnectionType.Never)")
        if self._attached:
            raise Error("Device is already attached")
        self._attached = True
        self.copyWeightsToDevice()
        if self._update is not None:
            self._update.write_back()

    def detachFromDevice(self):
        """Gives the device back. Error: not compiled, or not attached."""
        self._need_executable()
        if not self._attached:
            raise Error("Device is not attached")
        self.copyWeightsToHostIfNeeded()
        if self._update is not None:
            self._update.read_back()
        self._attached = False

    def copyWeightsToHost(self):
        """Brings buffers that forward changed back into the module; parameters are the module's own. Error: not compiled."""
        self._need_executable()
        self._dirty = False
        self._engine.buffers_to_host()

    def copyWeightsToHostIfNeeded(self):
        """Whether the weights had changed since they were last brought to the host."""
        if not self._dirty:
            return False
        logger.debug("Implicit copyWeightsToHost()")
        self.copyWeightsToHost()
        return True

    def copyWeightsToDevice(self):
        """Takes the module's buffers anew; parameters are the module's own. Error: not compiled."""
        self._need_executable()
        self._dirty = False
        self._engine.buffers_to_device()

    def copyNamedBuffersToDevice(self):
        """Takes the buffers named by `Options.updatableNamedBuffers`. Error: not compiled, none named, an unknown one."""
        self._need_executable()
        if "updatableNamedBuffers" not in self._options._Popart.options:
            raise Error("No named buffers marked as updatable via updatableNamedBuffers option")
        self._engine.named_buffers_to_device(self._options._Popart.options["updatableNamedBuffers"])

    def load_state_dict(self, state_dict, strict=True):
        """The model's `load_state_dict`; the device takes the new weights."""
        found = self._user_model.load_state_dict(state_dict, strict)
        if self.isAttachedToDevice():
            self.copyWeightsToDevice()
        return found

    def destroy(self):
        """Forgets what was compiled; a training model's module gets its own class back. May be compiled anew."""
        if self.isCompiled():
            self.copyWeightsToHostIfNeeded()
            if self._update is not None:
                self._update.read_back()
            self._compiled = self._engine = self._update = self._plan = None
            self._attached = False
        if self._training and wrapping.is_wrapped(self._user_model):
            wrapping.unwrap(self._user_model)

    @property
    def rng_state(self):
        """Seed and state of the model's random numbers, integers. Error: not compiled."""
        self._need_executable()
        return self._engine.randomness.numbers()

    @rng_state.setter
    def rng_state(self, state):
        self._need_executable()
        self._engine.randomness.restore(list(state))

    # Files.

    def save(self, filename, export_model=True, save_rng_state=True):
        """Saves the compiled model; `poptorch.load` and `loadExecutable` read it. A folder: `model.poptorch` in it."""
        self._need_executable()
        saving.save(self, filename, export_model, save_rng_state)

    def compileAndExport(self, filename, *args, export_model=True, **kwargs):
        """`compile`, then `save`."""
        self.compile(*args, **kwargs)
        self.save(filename, export_model)

    def loadExecutable(self, filename):
        """Compiles for the arguments of a saved model. Error: no such file, another format."""
        self._compile(saving.read(filename).arguments())

    # Anchors, cycles, latencies.

    def getTensorNames(self):
        """Names of the tensors that may be anchored. AssertionError: not compiled."""
        assert self.isCompiled(), "Model must be compiled before calling getTensorNames"
        return list(self._anchors.names)

    def getAnchoredTensor(self, short_name):
        """The tensor kept under this name by the last run. AssertionError: there is none."""
        return self._anchors.get(short_name)

    def _names(self, engine, arguments, result):
        return anchors.tensor_names(engine.state, arguments, self._recorder, self._training, self._optimizer)

    def cycleCount(self):
        """Cycles of the last run on one replica, by the machine's model. Error: not logged, not run, no model."""
        if not self._timing.logs_cycles:
            raise Error("Cycle count logging is disabled. Please set option logCycleCount to True to enable.")
        return self._timing.cycles()

    def getPerfCounters(self):
        """Times of the last run: lists per input and output, in seconds."""
        return self._timing.counters()

    def getHostIpuLatency(self):
        """(minimum, maximum, average) seconds from the first input's request to the last input's arrival."""
        return self._timing.latency("input", "input_complete")

    def getComputeLatency(self):
        """(minimum, maximum, average) seconds from the last input's arrival to the last output's readiness."""
        return self._timing.latency("input_complete", "output", first=max)

    def getIpuHostLatency(self):
        """(minimum, maximum, average) seconds from the first output's readiness to the last output's arrival."""
        return self._timing.latency("output", "output_complete")

    def getLatency(self):
        """(minimum, maximum, average) seconds from the first input's request to the last output's arrival."""
        return self._timing.latency("input", "output_complete")


def _taken(options, training, optimizer):
    """The executor's own options: a clone with the output mode decided. The user's are frozen."""
    if options is None:
        options = _options.Options()
    elif not isinstance(options, _options.Options):
        raise Error(f"Invalid type: 'options' is of type {type(options)} (Expected poptorch.Options)")
    else:
        options._freeze()
        options = options.clone()
    if options.defaultOutputMode():
        options.outputMode(enums.OutputMode.Final if training else enums.OutputMode.All)
    if not training and options.Training.gradient_accumulation != 1:
        raise Error(_accumulation_words(options))
    if training and _sums_in_half(optimizer):
        options.Training.set(meanAccumulationAndReplicationReductionStrategy=enums.MeanReductionStrategy.Running)
    return options


def _sums_in_half(optimizer):
    """Whether gradients are summed in float16, where a running mean overflows less."""
    return getattr(optimizer, "accum_type", None) == torch.float16 and not getattr(optimizer, "use_combined_accum", False)


def _accumulation_words(options):
    words = ("You must set poptorch.Options().Training.gradientAccumulation to 1 or leave it as its default value (1) when "
             "running a poptorch.inferenceModel().")
    if options._execution_strategy.MODE == 0:
        words += (" Use poptorch.Options().deviceIterations to process a sufficient number of batches each run for pipelined "
                  "execution instead.")
    return words


def trainingModel(model, options=None, optimizer=None):
    """An executor that trains `model`, whose forward computes the loss.

    Without an optimizer: SGD of rate 0.01. RuntimeError: the model is being trained by another executor already.
    """
    if isinstance(model, PoplarExecutor):
        model = model.model
    if wrapping.is_wrapped(model):
        raise RuntimeError("Model has already been wrapped in 'poptorch.trainingModel'. Call model.destroy() on the model to "
                           "unwrap before wrapping again.")
    if not isinstance(model, torch.nn.Module):
        raise Error(f"trainingModel takes a torch.nn.Module, not {type(model).__name__}")
    from . import optim
    if optimizer is None:
        optimizer = optim.SGD(model.parameters(), lr=0.01)
    optim.check(optimizer)
    return PoplarExecutor(copy.copy(model), options, True, optimizer, model)


def inferenceModel(model, options=None):
    """An executor that runs `model`, a module or another callable."""
    if isinstance(model, PoplarExecutor):
        model = model.model
    return PoplarExecutor(copy.copy(model), options, False)
