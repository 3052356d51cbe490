"""Cycles, latencies and profiles of runs, by the machine's model, told when somebody asks.

Times are modeled: a clock that begins at 0 with each call. SUPERSTEP_POPTORCH_CLOCK=host gives the host's times instead.
"""

import json
import os
import time

import torch

from .. import enums
from .._errors import Error
from .._logging import logger, warn_once
from . import cache, devices, machine

_EVENTS = ("input", "input_complete", "output", "output_complete")


class Timing:
    """What is known of the time of the last run of an executor."""

    def __init__(self, executor, options):
        self._executor, self._options = executor, options
        self._prediction = None
        self._started = self._ended = None
        self._outputs = 0
        self._multiplier = 0
        self._cache_file = None
        self.calls, self.host_seconds = 0, 0.0  # of all runs so far

    # Compile time.

    def check(self):
        """Error where cycles are to be logged and there is no hardware, as on PopTorch."""
        if self.logs_cycles and not devices.attaches(self._options):
            raise Error("Cycle count logging is only supported on actual IPU hardware. Here the machine's model stands for it, "
                        "unless POPTORCH_IPU_MODEL=1, SUPERSTEP_POPTORCH_DEVICES=none or an offline target says that there is "
                        "none.")

    @property
    def logs_cycles(self):
        """Whether the option `logCycleCount` is on."""
        return bool(self._options._Popart.options["instrumentWithHardwareCycleCounter"])

    def compiled(self, name):
        """The model was compiled anew: nothing has run; what is asked for at compile time is told."""
        self._prediction = None
        self._started = None
        self._cache_file = cache.path_of(self._executor)
        if self._cache_file is not None and not os.path.exists(self._cache_file):
            cache.write(self._cache_file, {"model": name, "prediction": None})
        if os.environ.get("SUPERSTEP_POPTORCH_FIT") == "refuse":
            machine.check_fit(self.prediction(), name)
        folder = profile_folder(self._options, self._executor._training)
        if folder is not None:
            self._write_profile(folder)

    def _write_profile(self, folder):
        executor = self._executor
        os.makedirs(folder, exist_ok=True)
        try:
            machine.profile(executor._model, executor._engine, executor._compiled, self._options, executor._batching,
                             executor._plan, executor._training, folder)
        except Error as error:
            warn_once("No profile is written to %s: %s", folder, error.message)

    def prediction(self):
        """The machine's model of the compiled executor. Error: there is none, with the reason."""
        if self._prediction is None:
            self._prediction = self._remembered() or self._predicted()
            machine.check_fit(self._prediction, type(self._executor._model).__name__)
        return self._prediction

    def _remembered(self):
        found = cache.read(self._cache_file).get("prediction")
        return machine.Prediction(**found) if found else None

    def _predicted(self):
        executor = self._executor
        found = machine.predict(executor._model, executor._engine, executor._compiled, self._options, executor._batching,
                                 executor._plan, executor._training)
        cache.write(self._cache_file, {"model": type(executor._model).__name__, "prediction": vars(found)})
        return found

    # Runs.

    def begin(self):
        """A run begins."""
        self._started = time.perf_counter()

    def ran(self, outputs, multiplier):
        """A run is over, of so many output tensors joined from `multiplier` micro-batches."""
        self._ended = time.perf_counter()
        self.calls += 1
        self.host_seconds += self._ended - self._started
        self._outputs, self._multiplier = outputs, multiplier
        if self.logs_cycles and logger.isEnabledFor(10):
            logger.debug("Total number of IPU cycles: %d", self.cycles())

    def synthetic(self, arguments):
        """The arguments of a run: made up where `enableSyntheticData` says so, else as they are."""
        return arguments.mapped(_made_up) if self._is_synthetic else arguments

    @property
    def _is_synthetic(self):
        return bool(self._options._Popart.options.get("syntheticDataMode", 0))

    def cycles(self):
        """Cycles of the last run on one replica. Error: nothing ran, or the machine's model cannot tell."""
        if self._started is None or self._ended is None:
            raise Error("Please run the model at least once before obtaining cycle count.")
        return self.prediction().cycles(self._executor._batching.iterations)

    def counters(self):
        """Times of the last run: {event: [[seconds of each micro-batch] of each input or output]}; empty before a run."""
        if self._started is None:
            return {event: [[]] for event in _EVENTS}
        batching = self._executor._batching
        inputs = len(self._executor._compiled.tensors())
        if self._is_synthetic:  # nothing is transferred
            return {event: _listed([], inputs if event.startswith("input") else self._outputs) for event in _EVENTS}
        times = self._micro_batches(batching)
        kept = self._kept(batching)
        return {"input": _listed([begin for begin, _, _, _ in times], inputs),
                "input_complete": _listed([done for _, done, _, _ in times], inputs),
                "output": _listed([times[number][2] for number in kept], self._outputs),
                "output_complete": _listed([times[number][3] for number in kept], self._outputs)}

    def _micro_batches(self, batching):
        """(input asked for, arrived, output ready, arrived) of each micro-batch; replicas run at the same time."""
        steps = batching.iterations * batching.accumulation
        if os.environ.get("SUPERSTEP_POPTORCH_CLOCK") == "host":
            each, link, start = (self._ended - self._started) / steps, 0.0, self._started
        else:
            prediction = self.prediction()
            prediction.check_time()
            link = prediction.link_seconds / batching.accumulation
            each, start = prediction.seconds / batching.accumulation + link, 0.0
        found = []
        for step in range(steps):
            begin = start + step * each
            found += [(begin, begin + link / 2, begin + each - link / 2, begin + each)] * batching.replicas
        return found

    def _kept(self, batching):
        """Numbers of the micro-batches whose outputs the host gets."""
        total = batching.iterations * batching.accumulation
        period = self._options.output_return_period
        if self._options.output_mode == enums.OutputMode.All:
            steps = range(total)
        elif self._options.output_mode == enums.OutputMode.EveryN:
            steps = range(period - 1, total, period)
        else:
            steps = [total - 1]
        return [step * batching.replicas + replica for step in steps for replica in range(batching.replicas)]

    def latency(self, start, end, first=min, last=max):
        """(minimum, maximum, average) seconds between two events, each over all inputs or outputs of a micro-batch."""
        counters = self.counters()
        starts = [first(times) for times in zip(*counters[start])]
        ends = [last(times) for times in zip(*counters[end])]
        if not starts or not ends:
            return 0.0, 0.0, 0.0
        group = max(1, len(starts) // len(ends))
        begins = [min(starts[number:number + group]) for number in range(0, len(starts), group)]
        spans = [done - begun for begun, done in zip(begins, ends)]
        least, most = min(spans), max(spans)
        return least, most, min(max(sum(spans) / len(spans), least), most)


def _listed(times, count):
    return [list(times) for _ in range(count)] or [[]]


def _made_up(tensor):
    if tensor.is_floating_point():
        return torch.randn(tensor.shape).to(tensor.dtype)
    return torch.zeros_like(tensor)


def profile_folder(options, training):
    """The folder of an executor's profile, or None: enableProfiling, or autoReport.all of POPLAR_ENGINE_OPTIONS."""
    found = _engine_options()
    wanted = str(found.get("autoReport.all", "false")).lower() == "true" or options._profile_dir is not None
    if not wanted:
        return None
    base = found.get("autoReport.directory")
    if base is not None and options._profile_dir is not None:
        warn_once("enableProfiling: POPLAR_ENGINE_OPTIONS names the folder %s, which wins", base)
    name = options.model_name if options.exists("model_name") else "training" if training else "inference"
    return os.path.join(base or options._profile_dir or ".", name)


def _engine_options():
    text = os.environ.get("POPLAR_ENGINE_OPTIONS") or "{}"
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Error(f"POPLAR_ENGINE_OPTIONS is no JSON: {error}") from error
    return found if isinstance(found, dict) else {}
