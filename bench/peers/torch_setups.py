"""The set-ups that PyTorch offers for a step, and the search for the fastest."""

import itertools
import statistics
import tempfile
import time
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import models
import protocol

# Results of a set-up may differ from the plain one's by rounding, not by more (relative to the largest).
TOLERANCE = {"f32": 1e-3, "bf16": 0.1}

# A step that takes so many times as long as one of the fastest set-up does, and half a second more, tells enough: without oneDNN a
# step of BERT in bf16 takes half a minute where it could take half a second.
HOPELESS = 4


def capability():
    """The instruction set that PyTorch's own kernels use: "AVX512"."""
    for line in torch.__config__.show().splitlines():
        if "CPU capability usage" in line:
            return line.split(":")[1].strip()
    return None


class Hopeless(Exception):
    """A set-up is far behind the fastest."""


class Deadline(TorchDispatchMode):
    """Ends a step between two of its operators, those of the backward pass too, when `seconds` have passed."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.end = seconds, time.perf_counter() + seconds

    def __torch_dispatch__(self, function, types, given=(), named=None):
        if time.perf_counter() > self.end:
            raise Hopeless("a step takes longer than %.3g s" % self.seconds)
        return function(*given, **(named or {}))


class Setup:
    """A step ready to be called, the settings that made it, and something to compare its work by: a function of what calls the step."""

    def __init__(self, settings, step, result):
        self.settings, self.step, self.result = settings, step, result
        self.tried = []


def memory_format(settings):
    return torch.channels_last if settings["layout"] == "channels_last" else torch.contiguous_format


def to_layout(tensors, settings):
    return tuple(tensor.contiguous(memory_format=memory_format(settings)) if tensor.dim() == 4 else tensor for tensor in tensors)


def called(step):
    return step()


def joined(outputs):
    """All results of a model in one row."""
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return torch.cat([output.detach().to(torch.float32).reshape(-1) for output in outputs])


def compiled(function):
    """`torch.compile` with fixed shapes and all the tuning it has; weights are constants where no gradient is asked for."""
    torch._inductor.config.freezing = True
    return torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False)


def ahead_of_time(model, x):
    """The model as a shared library that AOTInductor makes."""
    with tempfile.TemporaryDirectory() as folder:
        package = torch._inductor.aoti_compile_and_package(
            torch.export.export(model, x), package_path=folder + "/model.pt2",
            inductor_configs={"freezing": True, "max_autotune": True})
        return torch._inductor.aoti_load_package(package)


def in_precision(arguments):
    """What the forward pass runs in."""
    return torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16")


def prepare_library(settings):
    torch._C._set_mkldnn_enabled(settings["onednn"] == "on")
    models.FUSED_ATTENTION = settings.get("attention") == "fused"


# ---- inference ---------------------------------------------------------------------------------------

def inference_graph(model, x, settings):
    graph = settings["graph"]
    if graph == "eager":
        return model
    if graph == "mkldnn":
        from torch.utils import mkldnn
        return mkldnn.to_mkldnn(model)
    if graph == "compile":
        return compiled(model)
    if graph == "aot":
        return ahead_of_time(model, x)
    traced = torch.jit.freeze(torch.jit.trace(model, x))
    return torch.jit.optimize_for_inference(traced) if graph == "optimized" else traced


def inference(arguments, settings):
    entry = models.MODELS[arguments.model]
    generator = torch.Generator().manual_seed(arguments.seed)
    prepare_library(settings)
    model = models.make(arguments.model, arguments.seed).eval().to(memory_format=memory_format(settings))
    x = to_layout(entry.inputs(arguments.batch, generator), settings)
    with torch.no_grad(), in_precision(arguments):
        graph = inference_graph(model, x, settings)
        if settings["graph"] != "eager":
            graph(*x)  # compiled here, where no gradient is asked for

    def step():
        with torch.no_grad(), in_precision(arguments):
            return graph(*x)

    return Setup(settings, step, lambda call=called: joined(call(step)))


# ---- training ----------------------------------------------------------------------------------------

def optimizer_of(entry, parameters, settings):
    parameters = list(parameters)
    kind = torch.optim.Adam if entry.optimizer == "adam" else torch.optim.SGD
    flags = {"foreach": {"foreach": True}, "single": {"foreach": False}, "fused": {"fused": True}}
    return kind(parameters, lr=entry.rate, **flags[settings["optimizer"]])


def training_loss(entry, model, x, settings):
    """Loss of a batch as a function of inputs and targets: with `compile` the model is one graph, with `whole` the loss is in it."""
    graph = settings["graph"]
    if graph == "traced":
        model = torch.jit.trace(model, x, check_trace=False)
    if graph == "compile":
        model = compiled(model)
    loss = lambda x, y: entry.loss(model(*x), y)
    return compiled(loss) if graph == "whole" else loss


def training(arguments, settings):
    entry = models.MODELS[arguments.model]
    generator = torch.Generator().manual_seed(arguments.seed)
    prepare_library(settings)
    model = models.make(arguments.model, arguments.seed).train().to(memory_format=memory_format(settings))
    x = to_layout(entry.inputs(arguments.batch, generator), settings)
    y = entry.targets(arguments.batch, generator)
    loss_of = training_loss(entry, model, x, settings)
    optimizer = optimizer_of(entry, model.parameters(), settings)
    # The update is one graph too, where it is not one kernel anyway.
    update = compiled(optimizer.step) if settings["graph"] == "whole" and settings["optimizer"] != "fused" else optimizer.step
    drop_gradients = settings["gradients"] == "dropped"

    def step():
        optimizer.zero_grad(set_to_none=drop_gradients)
        with in_precision(arguments):
            loss = loss_of(x, y)
        loss.backward()
        update()

    # Not weights that were updated: Adam makes a whole step of a gradient that is a rounding from zero, up or down.
    def gradients_of_a_step(call=called):
        call(step)
        return torch.cat([p.grad.detach().reshape(-1) for p in model.parameters() if p.grad is not None])

    return Setup(settings, step, gradients_of_a_step)


# ---- the search --------------------------------------------------------------------------------------

def choices(arguments):
    """What each setting can be, the plain one first."""
    sample = models.MODELS[arguments.model].sample
    shapes = sample if isinstance(sample, list) else [sample]
    pictures = any(isinstance(shape, tuple) and len(shape) == 3 for shape in shapes)
    layouts = ["contiguous"] + (["channels_last"] if pictures else [])
    attention = {"attention": ["written", "fused"]} if arguments.model in models.ATTENDS else {}
    inference = arguments.mode == "infer"
    compile_too = (["compile", "aot"] if inference else ["compile", "whole"]) if arguments.compile else []
    if inference:
        return {"graph": ["eager", "frozen"] + compile_too + ["optimized", "mkldnn"], "layout": layouts, "onednn": ["on", "off"],
                **attention}
    return {"graph": ["eager"] + compile_too + ["traced"], "layout": layouts, "onednn": ["on", "off"], **attention,
            "optimizer": ["foreach", "single", "fused"], "gradients": ["dropped", "zeroed"]}


# Settings that depend on each other are tried in every combination, group after group; a graph is compiled for the layout that
# was fastest without (compilers choose layouts inside of it themselves).
GROUPS = [("layout", "onednn"), ("graph",), ("attention",), ("optimizer",), ("gradients",)]


def combinations(possible, names):
    names = [name for name in names if name in possible]
    return [dict(zip(names, values)) for values in itertools.product(*(possible[name] for name in names))]


def seconds_of(setup, trial):
    """A step's. Of one that takes longer than the trial three are timed behind three that warm up."""
    one = min(protocol.timed(setup.step, 3))
    if one < trial:
        protocol.warm(setup.step, trial / 3)
        one = max(min(protocol.timed(setup.step, 3)), 1e-7)
    return statistics.median(protocol.timed(setup.step, max(5 if one < trial else 3, min(2000, int(trial / one)))))


def agrees(result, plain, precision):
    scale = max(plain.abs().max().item(), 1e-6)
    return bool((result - plain).abs().max().item() <= TOLERANCE[precision] * scale)


class Search:
    """Starts from the plain set-up, tries the others and keeps the fastest whose result is the same."""

    def __init__(self, arguments, possible):
        self.arguments = arguments
        self.build = inference if arguments.mode == "infer" else training
        self.comparable = not (arguments.mode == "train" and arguments.model in models.DROPS_OUT)
        plain = {name: values[0] for name, values in possible.items()}
        self.best = self.build(arguments, plain)
        self.reference = self.best.result()
        self.seconds = seconds_of(self.best, arguments.trial)
        self.tried = [{"settings": plain, "seconds": self.seconds}]

    def in_time(self, step):
        with Deadline(HOPELESS * self.seconds + 0.5):
            return step()

    def attempt(self, settings):
        note = {"settings": settings}
        self.tried.append(note)
        try:
            setup = self.build(self.arguments, settings)
            # A compiler's first steps say nothing of those that follow.
            watched = self.in_time if settings["graph"] == "eager" else called
            if not self.comparable:
                watched(setup.step)
            elif not agrees(setup.result(watched), self.reference, self.arguments.precision):
                note["refused"] = "its result differs"
                return
            note["seconds"] = seconds_of(setup, self.arguments.trial)
        except Exception as error:
            note["refused"] = " ".join(str(error).split())[:200]
            return
        if note["seconds"] < self.seconds:
            self.best, self.seconds = setup, note["seconds"]

    def try_all(self, possible):
        end = time.monotonic() + self.arguments.search
        for names in GROUPS:
            base = dict(self.best.settings)
            for change in combinations(possible, names):
                settings = dict(base, **change)
                if time.monotonic() < end and all(settings != note["settings"] for note in self.tried):
                    self.attempt(settings)


def search(arguments, fixed):
    possible = choices(arguments)
    for name, value in fixed.items():
        if name not in possible:
            raise ValueError("no setting '%s'; there are: %s" % (name, ", ".join(possible)))
        possible[name] = [value]
    warnings.simplefilter("ignore")
    found = Search(arguments, possible)
    found.try_all(possible)
    prepare_library(found.best.settings)
    found.best.tried = found.tried
    return found.best
