"""What the machine's model says of a compiled model: cycles, memory, whether it fits, a profile.

The forward pass of one micro-batch is exported as an ONNX file and given to Superstep's cost model of the IPU, with device
iterations, accumulation, replicas, precision and chips. Training is predicted with the cost model's own loss and Adam; the
stages of a pipeline are balanced by the cost model, whatever the blocks say.
"""

import os
import tempfile
import warnings

import torch

from .._errors import Error
from .._execution.forward import ForwardPass
from .._execution.state import Swapped
from .._logging import logger, warn_once
from .._structures import tensors_in
from . import devices


class _Exported(torch.nn.Module):
    """The model as a function of tensors."""

    def __init__(self, model, engine, arguments, training):
        super().__init__()
        self.model = model if isinstance(model, torch.nn.Module) else torch.nn.Module()
        self._call = engine._call
        self._arguments, self._training = arguments, training

    def forward(self, *tensors):
        """Results of the pass, flat."""
        left = iter(tensors)
        arguments = self._arguments.mapped(lambda _: next(left))
        return tuple(tensors_in(self._call(arguments, ForwardPass(training=self._training), tracing=False)))


def export(model, engine, arguments, training, path):
    """Writes the forward pass of a micro-batch as an ONNX file. Error: PyTorch cannot export it."""
    buffers = engine.state.buffers()
    copies = {name: buffer.clone() for name, buffer in buffers.items()}
    mode = torch.onnx.TrainingMode.PRESERVE
    names = [f"input_{number}" for number in range(len(arguments.tensors()))]  # the cost model has names of its own
    module = _Exported(model, engine, arguments, training)
    try:
        with warnings.catch_warnings(), Swapped(engine.state.places(buffers), copies), engine.randomness.copy():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, tuple(arguments.tensors()), path, dynamo=False, training=mode, do_constant_folding=False,
                              input_names=names)
    except Exception as error:
        raise Error(f"The machine's model cannot be told: PyTorch does not export {type(model).__name__}: "
                    f"{str(error).splitlines()[0] if str(error) else type(error).__name__}") from error


class Prediction:
    """Times of a step by the cost model.

    `seconds` of a device iteration on the chips, `link_seconds` of its transfers from and to the host, `clock` in Hz,
    `fits`, `bytes_needed` and `bytes_available` of the fullest chip.
    """

    def __init__(self, seconds, link_seconds, clock, fits, bytes_needed, bytes_available):
        self.seconds, self.link_seconds, self.clock = seconds, link_seconds, clock
        self.fits, self.bytes_needed, self.bytes_available = fits, bytes_needed, bytes_available

    @staticmethod
    def of(result):
        """The prediction of a result of `superstep.predict`."""
        config = result.data["config"]
        clock = next(constant["value"] for constant in config["constants"] if constant["name"] == "clock")
        return Prediction(result["step_time"].value if "step_time" in result.metrics else None,
                          config.get("host", {}).get("link", 0.0), clock, result["fits"].value != 0,
                          result["peak_memory"].value, result["memory_per_unit"].value)

    def cycles(self, iterations):
        """Cycles of a call of so many device iterations, transfers from and to the host included. Error: it does not fit."""
        self.check_time()
        return round(iterations * (self.seconds + self.link_seconds) * self.clock)


    def check_time(self):
        """Error where no time is predicted."""
        if self.seconds is None:
            raise Error(f"The machine's model tells no time of what does not fit: {self.bytes_needed / 1e6:.0f} MB of "
                        f"{self.bytes_available / 1e6:.0f} MB on the fullest chip")


def _superstep():
    try:
        import superstep
    except ImportError as error:
        raise Error("Cycles, latencies and memory are told by Superstep's model of the machine, and the package superstep is "
                    f"not installed: pip install superstep ({error})") from error
    return superstep


def precision(state, options):
    """The cost model's word for the types that the model computes in."""
    types = {parameter.dtype for parameter in state.parameters().values()}
    if torch.float16 not in types:
        return "f32"
    if torch.float32 in types:
        return "mixed"
    return "16.16" if options._Popart.options.get("partialsTypeMatMuls") == "half" else "f16"


def _settings(engine, options, batching, plan, training):
    """Options of the commands predict and profile."""
    settings = {"on": devices.machine(), "mode": "train" if training else "infer", "quiet": True,
                "precision": precision(engine.state, options), "replicas": batching.replicas}
    if training:
        settings["accumulate"] = batching.accumulation
    chips = plan.chips_per_replica()
    if chips > 1 and plan.pipelined():
        settings.update(pipeline="auto", units=chips * batching.replicas)
    return settings


def predict(model, engine, arguments, options, batching, plan, training):
    """A `Prediction` for a compiled model. Error: it cannot be exported, or the cost model cannot take it."""
    superstep = _superstep()
    settings = _settings(engine, options, batching, plan, training)
    with tempfile.TemporaryDirectory(prefix="poptorch-") as folder:
        path = os.path.join(folder, f"{type(model).__name__}.onnx")
        export(model, engine, batching.micro_batch(arguments, 0, 0, 0), training, path)
        try:
            found = superstep.predict(path, device_iterations=batching.iterations, approximate=True, **settings)
        except superstep.Error as error:
            raise Error(f"The machine's model cannot be told of {type(model).__name__}: {error}") from error
    logger.info("%s on the modeled %s: %s per device iteration", type(model).__name__, settings["on"],
                found.metrics.get("step_time", "does not fit"))
    return Prediction.of(found)


def check_fit(prediction, name):
    """What does not fit: an Error with SUPERSTEP_POPTORCH_FIT=refuse, else a warning."""
    if prediction.fits:
        return
    words = (f"{name} does not fit: its fullest chip needs {prediction.bytes_needed / 1e6:.0f} MB of "
             f"{prediction.bytes_available / 1e6:.0f} MB, by the machine's model")
    if os.environ.get("SUPERSTEP_POPTORCH_FIT") == "refuse":
        raise Error(words, "poplar_graph_memory_allocation_error")
    warn_once("%s", words)


def profile(model, engine, arguments, options, batching, plan, training, folder):
    """Writes the profile of the executed program into a folder: profile.html, profile.pop (JSON), trace.json.

    Error: it cannot be exported, or the machine's model cannot execute it.
    """
    superstep = _superstep()
    settings = _settings(engine, options, batching, plan, training)
    settings["precision"] = "f32"  # what programs are executed in
    with tempfile.TemporaryDirectory(prefix="poptorch-") as scratch:
        path = os.path.join(scratch, f"{type(model).__name__}.onnx")
        export(model, engine, batching.micro_batch(arguments, 0, 0, 0), training, path)
        try:
            superstep.profile(path, out=folder, **settings)
        except superstep.Error as error:
            raise Error(f"{type(model).__name__} cannot be profiled on the machine's model: {error}") from error
    os.replace(os.path.join(folder, "profile.json"), os.path.join(folder, "profile.pop"))
