"""Modules of PyTorch, served and trained here: exported by ``torch.onnx``, compiled, called with tensors.

Needs ``torch``, ``onnx`` and ``onnxscript``, which the package does not bring along.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import math
import os
import pathlib
import re
import tempfile
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .errors import Diverged, Error, InvalidArgument, Unsupported
from .models import Model, Plan, Port, Session, Trainer
from .words import Precision, TrainingPrecision

__all__ = ["ExportError", "CompiledModule", "TrainStep", "compile", "train_step", "export"]

EXPORTERS = {"dynamo": True, "traced": False}


class ExportError(Unsupported):
    """A module that could not be converted.

    Attributes:
        reasons: by exporter, what it said, or what could not be imported: operator, and where in the module.
    """

    def __init__(self, reasons: Mapping[str, str], where: str) -> None:
        super().__init__("; ".join(f"by the exporter '{name}': {reason}" for name, reason in reasons.items()), where,
                         "what the file may hold: docs/onnx.md")
        self.reasons = dict(reasons)


# --- the module as a file

def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _inputs(example: Any) -> tuple[torch.Tensor, ...]:
    inputs = example if isinstance(example, tuple) else tuple(example) if isinstance(example, list) else (example,)
    for i, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor):
            raise InvalidArgument(f"is {type(value).__name__}, not a tensor", f"example[{i}]",
                                  "the example is the tuple of the tensors that forward() takes")
    return inputs


@contextlib.contextmanager
def _plain(module: torch.nn.Module, training: bool) -> Iterator[None]:
    """The module in the mode that is exported, and attention in operators that files have. A module in training mode is trained
    as it stands: parts of it that were set to eval() stay so."""
    before = [(part, part.training) for part in module.modules()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]  # a pass in training mode changes statistics
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    if not (training and module.training):
        module.train(training)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part, mode in before:
            part.training = mode
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)


def _of_depth(part: torch.nn.Module) -> tuple[float, str]:
    """How often, and for what ("row", "batch"), a module leaves a branch out, where it is one that does nothing else: torchvision's
    StochasticDepth, and what is called DropPath elsewhere."""
    kind = type(part).__name__
    if kind == "StochasticDepth":
        return float(getattr(part, "p", 0.0)), str(getattr(part, "mode", ""))
    if kind.endswith("DropPath") and not list(part.children()) and getattr(part, "scale_by_keep", True):
        return float(getattr(part, "drop_prob", 0.0) or 0.0), "row"
    return 0.0, ""


@contextlib.contextmanager
def _depth_as_dropout(module: torch.nn.Module) -> Iterator[None]:
    """Branches that are left out at random, by a dropout of ones: files draw those anew at every step, other numbers once."""

    def dropped(share: float, mode: str) -> Any:
        def forward(x: torch.Tensor) -> torch.Tensor:
            ones = torch.ones_like(x[:, :1].flatten(1)[:, :1] if mode == "row" else x.flatten()[:1])
            kept = torch.nn.functional.dropout(ones, share, True)
            return x * kept.reshape([x.shape[0] if mode == "row" else 1] + [1] * (x.dim() - 1))
        return forward

    changed = []
    for part in module.modules():
        share, mode = _of_depth(part)
        if part.training and share > 0 and mode in ("row", "batch"):
            part.forward = dropped(share, mode)
            changed.append(part)
    try:
        yield
    finally:
        for part in changed:
            del part.forward


_DRAWN = ("RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial")


def refuse_draws(file: pathlib.Path) -> None:
    """A file of a training step that draws random numbers, other than by dropouts, would draw the same ones at every step."""
    import onnx
    content = onnx.load(str(file), load_external_data=False)
    for nodes in (content.graph.node, *(function.node for function in content.functions)):
        for node in nodes:
            if node.op_type in _DRAWN:
                raise Unsupported(f"node '{node.name}' ({node.op_type}) draws random numbers, which would be the same at every step",
                                  hint="give them as an input; torch.nn.Dropout, StochasticDepth and DropPath are drawn anew")


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}{i}" for i in range(count)]


def _dynamic(inputs: Sequence[torch.Tensor], exporter: str) -> dict[str, Any]:
    """Axis 0 of every input left open."""
    if exporter == "dynamo":
        return {"dynamic_shapes": tuple({0: torch.export.Dim("batch")} if x.dim() else {} for x in inputs)}
    return {"dynamic_axes": {name: {0: "batch"} for name, x in zip(_names("input", len(inputs)), inputs) if x.dim()}}


def export(module: torch.nn.Module, example: Any, file: str | os.PathLike[str], *, exporter: str = "dynamo",
           training: bool = False, open_batch: bool = False) -> None:
    """Writes a module as an ONNX file, with inputs ``input0``, ``input1``, ... and outputs ``output0``, ...

    Args:
        example: the tensors that ``forward`` takes: a tuple, or one.
        exporter: ``"dynamo"`` (by ``torch.export``) or ``"traced"``.
        training: as it is trained: dropouts and normalisations as they are, no constant folded, no weight merged.
        open_batch: axis 0 of every input is left open; else the file has the example's shapes.
    """
    if exporter not in EXPORTERS:
        raise InvalidArgument("is 'dynamo' or 'traced'", f"exporter {exporter!r}")
    inputs = _inputs(example)
    options: dict[str, Any] = {"input_names": _names("input", len(inputs)), "verbose": False}
    if exporter == "dynamo":
        options["external_data"] = False
    if training:
        options |= ({"optimize": False} if exporter == "dynamo" else
                    {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False})
    if open_batch:
        options |= _dynamic(inputs, exporter)
    with (_plain(module, training), _depth_as_dropout(module), warnings.catch_warnings(),
          torch.enable_grad() if training else torch.no_grad()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, os.fspath(file), dynamo=EXPORTERS[exporter], **options)


def _places(file: pathlib.Path) -> dict[str, str]:
    """Where in the module each node of the file comes from."""
    import onnx
    places = {}
    for node in onnx.load(str(file), load_external_data=False).graph.node:
        scopes = {entry.key: entry.value for entry in node.metadata_props}.get("pkg.torch.onnx.name_scopes", "")
        if scopes:
            with contextlib.suppress(ValueError, SyntaxError):
                parts = [part for part in ast.literal_eval(scopes) if part]
                places[node.name] = parts[-2] if len(parts) > 1 else "the module itself"
        elif node.name.startswith("/"):
            places[node.name] = ".".join(node.name.strip("/").split("/")[:-1]) or "the module itself"
    return places


def _told(error: Error, file: pathlib.Path) -> str:
    """The error, with the part of the module beside each node that it names."""
    places = _places(file)

    def placed(match: re.Match[str]) -> str:
        place = places.get(match.group(1))
        return match.group(0) + (f" in {place}" if place else "")

    text = f"{error.message} {error.hint}".strip() if isinstance(error, Unsupported) else str(error)
    return re.sub(r"node '([^']+)'", placed, text.replace(f"{file}: ", ""))


def _converted(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], exporter: str, training: bool, open_batch: bool,
               use: Any) -> Any:
    """What `use` makes of the file, by the first exporter whose file it takes."""
    chosen = list(EXPORTERS) if exporter == "auto" else [exporter]
    reasons: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="superstep-") as folder:
        for name in chosen:
            file = pathlib.Path(folder) / f"{name}.onnx"
            try:
                export(module, inputs, file, exporter=name, training=training, open_batch=open_batch)
            except InvalidArgument:
                raise
            except Exception as error:  # exporters raise whatever the module raised
                plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # without the colours of terminals
                plain = plain.rpartition("## Exception summary")[2]  # what stands before it is advice to developers
                reasons[name] = " ".join(plain.split())[:500] or type(error).__name__
                continue
            try:
                return use(file)
            except Error as error:
                reasons[name] = _told(error, file)
    raise ExportError(reasons, type(module).__name__)


def _require_here(module: torch.nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if parameter.device.type != "cpu":
            raise InvalidArgument(f"lies on {parameter.device}", f"parameter {name}", "module.cpu() first")


# --- serving

class CompiledModule:
    """A module compiled for the shapes of its example: called as the module is, with tensors.

    Its parameters are those that the module had when it was compiled; ``take_parameters`` takes them anew.
    """

    def __init__(self, session: Session, structure: Any, inputs: int) -> None:
        self.session = session
        self._structure = structure
        self._inputs = inputs
        self._names = {f"input{i}": i for i in range(inputs)}
        self._wanted = [self._names[port.name] for port in session.inputs]

    @property
    def plan(self) -> Plan:
        """What was compiled."""
        return self.session.plan

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """Outputs of the module for inputs of the example's shapes, in the structure that ``forward`` gives them."""
        if len(inputs) != self._inputs:
            raise InvalidArgument(f"{self._inputs} inputs are needed, {len(inputs)} are given")
        detached = [inputs[i].detach() for i in self._wanted]
        outputs = self.session(*detached)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if self._structure is None:
            return outputs[0] if len(outputs) == 1 else outputs
        leaves, spec = self._structure
        results = iter(outputs)
        return pytree.tree_unflatten([next(results) if leaf is torch.Tensor else leaf for leaf in leaves], spec)

    def __repr__(self) -> str:
        return f"superstep.torch.CompiledModule({self.session!r})"


def _structure(output: Any, count: int) -> Any:
    """How the tensors of a result lie in it; None where the file has other outputs than it has tensors."""
    leaves, spec = pytree.tree_flatten(output)
    kinds = [torch.Tensor if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    return (kinds, spec) if sum(kind is torch.Tensor for kind in kinds) == count else None


def compile(module: torch.nn.Module, example: Any, *, batch: int | None = None, precision: Precision = "f32",  # noqa: A001
            threads: int = 0, exporter: str = "auto", calibration: Sequence[Any] | None = None) -> CompiledModule:
    """Compiles a module for inference.

    Args:
        example: the tensors that ``forward`` takes: a tuple, or one. Their shapes are those of later calls.
        batch: samples of a call, where it is to be another than the example's: axis 0 of every input.
        precision: ``"f32"``, ``"bf16"``, ``"f16"``, ``"int8"`` (needs `calibration`).
        threads: 0: every processor that the process may use.
        exporter: ``"dynamo"``, ``"traced"``; ``"auto"``: the first of these whose file can be compiled.
        calibration: of int8: tensors as the example's, with any number of samples.

    Raises:
        ExportError: what each exporter said, or which operator could not be imported, and where in the module it is.
    """
    inputs = _inputs(example)
    _require_here(module)
    with _plain(module, False), torch.no_grad():
        output = module(*inputs)
    samples = {f"input{i}": x for i, x in enumerate(calibration or ())}
    session = _converted(module, inputs, exporter, False, batch is not None,
                         lambda file: Model(file).compile(batch=batch or 0, precision=precision, threads=threads,
                                                          calibration=samples))
    return CompiledModule(session, _structure(output, len(session.outputs)), len(inputs))


# --- training

def _loss_name(loss: Any) -> str | None:
    """``"mse"`` for ``torch.nn.MSELoss()``; None for a loss that has no name here, which is captured with the module."""
    if isinstance(loss, str):
        return loss
    kinds = {torch.nn.MSELoss: "mse", torch.nn.L1Loss: "l1", torch.nn.CrossEntropyLoss: "cross_entropy",
             torch.nn.HuberLoss: "huber", torch.nn.SmoothL1Loss: "huber"}
    name = kinds.get(type(loss))
    plain = getattr(loss, "reduction", "") == "mean" and getattr(loss, "weight", None) is None
    usual = all(getattr(loss, key, value) == value for key, value in
                (("label_smoothing", 0.0), ("ignore_index", -100), ("delta", 1.0), ("beta", 1.0)))
    if name is not None and plain and usual:
        return name
    if not callable(loss):
        raise InvalidArgument("is no loss", f"loss {loss!r}", "a name ('mse', 'l1', 'huber', 'cross_entropy'), or a callable")
    if isinstance(loss, torch.nn.Module) and any(p.requires_grad for p in loss.parameters()):
        raise Unsupported("has parameters of its own to train", f"loss {type(loss).__name__}",
                          "make the loss a part of the module: forward takes the targets and gives the loss")
    return None


def _refuse_hooks(module: torch.nn.Module) -> None:
    """Python code around forward and backward passes would not run here."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    for name, part in module.named_modules():
        for kind in kinds:
            if getattr(part, kind, None):
                raise Unsupported(f"has hooks ({kind[1:]}), which would not run here", name or type(module).__name__,
                                  "remove() them, or write into forward what they do")
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
            raise Unsupported("has hooks on its gradient, which would not run here", f"parameter {name}", "remove() them")


def _with_loss(module: torch.nn.Module, loss: Any, inputs: int) -> torch.nn.Module:
    """The module, sharing all it has, with a forward that takes the targets too and gives the loss. A copy of the outermost object
    keeps the names of parameters as they are."""
    wrapped = copy.copy(module)
    forward = module.__dict__.get("forward") or types.MethodType(type(module).forward, wrapped)

    def forward_and_loss(*values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = loss(forward(*values[:inputs]), *values[inputs:])
        return found

    wrapped.forward = forward_and_loss
    return wrapped


def _require_number(loss: Any) -> None:
    if not isinstance(loss, torch.Tensor) or loss.dim() > 0 or not loss.is_floating_point():
        what = f"a tensor of shape {tuple(loss.shape)} and {loss.dtype}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise InvalidArgument(f"gives {what}, not one floating-point number", "loss", "reduce it: .mean()")


def _loss_in_evaluation(module: torch.nn.Module, values: tuple[torch.Tensor, ...]) -> float:
    """What the module with its loss gives without dropouts, by PyTorch."""
    with _plain(module, False), torch.no_grad():
        found = module(*values)
    _require_number(found)
    return float(found)


def _require_same_loss(model: Model, module: torch.nn.Module, values: tuple[torch.Tensor, ...], expected: float) -> None:
    """Exporters convert some functions wrongly without a word: the loss of the example is compared with PyTorch's."""
    for name, buffer in module.named_buffers():
        if name in model.parameters:  # a pass of the exporter may have changed it
            model.parameters[name] = buffer.detach().contiguous()
    names = {f"input{i}": value.detach() for i, value in enumerate(values)}
    session = model.compile(threads=1)
    found = float(session.run({port.name: names[port.name] for port in session.inputs})[session.outputs[0].name])
    if abs(found - expected) > 1e-3 * max(abs(expected), 1e-3) and not (math.isnan(found) and math.isnan(expected)):
        raise Unsupported(f"gives the loss {found:.6g} for the example, PyTorch {expected:.6g}", "the file that the exporter wrote",
                          "the other exporter may convert it rightly")


def _constants(group: Mapping[str, Any], kind: str) -> dict[str, float]:
    """Constants of a group of parameters, as they are called here."""
    if kind == "sgd":
        return {"momentum": group["momentum"], "weight_decay": group["weight_decay"]}
    beta1, beta2 = group["betas"]
    return {"beta1": beta1, "beta2": beta2, "epsilon": group["eps"], "weight_decay": group["weight_decay"]}


def _optimizer_text(optimizer: Any) -> str:
    """``"adam:beta1=0.9,..."`` for an optimiser of PyTorch."""
    if isinstance(optimizer, str):
        return optimizer
    kinds = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw", torch.optim.Adamax: "adamax"}
    kind = kinds.get(type(optimizer))
    if kind is None:
        raise Unsupported("is no optimiser that is known here", type(optimizer).__name__,
                          "SGD, Adam, AdamW, Adamax; RMSprop differs in where its epsilon stands")
    if optimizer.state:
        raise InvalidArgument("has made steps already, whose moments would be lost", type(optimizer).__name__,
                              "give a fresh one")
    groups = optimizer.param_groups
    constants = _constants(groups[0], kind)
    if any(_constants(group, kind) != constants or group["lr"] != groups[0]["lr"] for group in groups[1:]):
        raise Unsupported("has groups of parameters with constants of their own", type(optimizer).__name__, "one group")
    for key in ("amsgrad", "nesterov", "maximize", "dampening", "decoupled_weight_decay"):
        wanted = kind == "adamw" if key == "decoupled_weight_decay" else False
        if key in groups[0] and groups[0][key] not in (wanted, 0 if not wanted else wanted):
            raise Unsupported(f"{key}={groups[0][key]} is not known here", type(optimizer).__name__)
    return kind + ":" + ",".join(f"{name}={float(value)!r}" for name, value in constants.items())


_Normalisation = torch.nn.modules.batchnorm._BatchNorm


def _rehearsed(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[set[str], dict[str, list[int]]]:
    """What one step of PyTorch would do: the names of parameters that the first output does not depend on, and of each
    normalisation that keeps statistics, by name, of how many elements each of its calls takes them."""
    taken: dict[str, list[int]] = {}
    hooks = []
    for name, part in module.named_modules():
        if isinstance(part, _Normalisation) and part.track_running_stats:
            if not part.training:
                raise Unsupported("is in evaluation mode in a module that is trained: here its statistics would be learned", name,
                                  "train() it; or, to keep its statistics, write it as a formula of its buffers")
            if part.momentum is None:
                raise Unsupported("has statistics that are averaged over all steps (momentum=None)", name, "give a momentum")
            hooks.append(part.register_forward_hook(
                lambda part, given, _, name=name: taken.setdefault(name, []).append(given[0].numel() // given[0].shape[1])))
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            outputs = _tensors(module(*inputs))
    finally:
        for hook in hooks:
            hook.remove()
    named = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if not outputs or not outputs[0].requires_grad:
        return set(), taken
    gradients = torch.autograd.grad(outputs[0].sum(), list(named.values()), allow_unused=True)
    return {name for name, gradient in zip(named, gradients) if gradient is None}, taken


class TrainStep:
    """Training steps of a module: forward pass, loss, backward pass and optimiser in one call, in place of PyTorch's.

    The parameters are learned here; ``write_back`` gives them, and the statistics of normalisations, to the module.
    """

    def __init__(self, module: torch.nn.Module, trainer: Trainer, optimizer: Any, inputs: int,
                 idle: set[str] = frozenset(), taken: Mapping[str, list[int]] | None = None,  # type: ignore[assignment]
                 targets: int = 1) -> None:
        self.module = module
        self._idle = idle
        self._taken = dict(taken or {})
        self._written = trainer.steps
        self.trainer = trainer
        self._optimizer = None if isinstance(optimizer, str) else optimizer
        self._inputs = inputs
        self._targets = targets
        self._ports: list[Port] = trainer.inputs
        states = set(trainer.parameters())
        self._places = self._places_of(states)
        for name, buffer in module.named_buffers():
            if name in self._places:  # as the module has it, whatever the exporter's passes made of it
                self.trainer.set_parameter(self._places[name], buffer.detach().contiguous())
        self._first = {name: buffer.detach().clone() for name, buffer in module.named_buffers()}

    def _places_of(self, states: set[str]) -> dict[str, str]:
        """The state of each parameter and buffer; of one that has several names, under any of them."""
        places: dict[str, str] = {}
        aliases: dict[int, str] = {}
        named = [*self.module.named_parameters(remove_duplicate=False), *self.module.named_buffers(remove_duplicate=False)]
        for name, tensor in named:
            if name in states:
                aliases[id(tensor)] = name
        for name, tensor in named:
            if id(tensor) in aliases:
                places[name] = aliases[id(tensor)]
        return places

    def check(self) -> None:
        """Throws where a parameter of the module is not trained here, or came here as something else."""
        missing = [name for name, p in self.module.named_parameters() if p.requires_grad and name not in self._places and name not in self._idle]
        if missing:
            raise Unsupported("are not trained in the file that the exporter wrote: " + ", ".join(missing[:5]) +
                              (f" and {len(missing) - 5} more" if len(missing) > 5 else ""), type(self.module).__name__,
                              "parameters that the loss depends on, under their own names; the other exporter may keep them")
        tensors = dict(self.module.named_parameters(remove_duplicate=False))
        for name, state in self._places.items():
            if name not in tensors:
                continue
            found = torch.from_numpy(self.trainer.parameter(state))
            if found.shape != tensors[name].shape or not torch.equal(found, tensors[name].detach().float()):
                raise Unsupported("came here as something else than the module's parameter", name,
                                  "the exporter turned or folded it")

    def __call__(self, *values: torch.Tensor) -> float:
        """One step: the tensors that ``forward`` takes, then what the loss takes. Gives the loss before it.

        The learning rate is that of the optimiser at this moment: its schedulers work as they do in PyTorch.
        """
        if len(values) != self._inputs + self._targets:
            targets = "the target" if self._targets == 1 else f"{self._targets} targets"
            raise InvalidArgument(f"{self._inputs} inputs and {targets} are needed, {len(values)} tensors are given")
        named = {f"input{i}": x.detach() for i, x in enumerate(values)}
        given = {port.name: named.get(port.name, values[-1].detach()) for port in self._ports}
        rate = float(self._optimizer.param_groups[0]["lr"]) if self._optimizer is not None else 0.0
        try:
            return self.trainer.step(named=given, learning_rate=rate)
        except Diverged as error:  # of a file that is gone
            raise Diverged(error.message, type(self.module).__name__, error.hint) from None

    def _variance(self, name: str, found: torch.Tensor) -> torch.Tensor:
        """A running variance as PyTorch keeps it, from that of the file: files average the variance of each batch over its n
        elements, PyTorch the sum of squares over n - 1. Both are sums over steps, so one follows from the other."""
        place = name.removesuffix(".running_var")
        counts = set(self._taken.get(place, ()))
        if name == place or len(counts) != 1:
            return found
        calls = self.trainer.steps * len(self._taken[place])
        count, kept = counts.pop(), (1 - self.module.get_submodule(place).momentum) ** calls  # type: ignore[operator, unused-ignore]
        begun = kept * self._first[name].double()
        return begun + (found.double() - begun) * (count / (count - 1)) if count > 1 else found

    def write_back(self) -> None:
        """Gives the module what was learned: its parameters, and buffers such as running statistics, as PyTorch would have them."""
        states = {state: self.trainer.parameter(state) for state in set(self._places.values())}
        with torch.no_grad():
            for name, tensor in [*self.module.named_parameters(), *self.module.named_buffers()]:
                if name in self._places:
                    tensor.copy_(self._variance(name, torch.from_numpy(states[self._places[name]])).to(tensor.dtype))
            for place, counts in self._taken.items():
                batches: Any = self.module.get_submodule(place).num_batches_tracked
                if batches is not None:
                    batches += (self.trainer.steps - self._written) * len(counts)
        self._written = self.trainer.steps


def train_step(module: torch.nn.Module, loss: Any, optimizer: Any, example: Any, *, learning_rate: float = 0.0,
               precision: TrainingPrecision = "f32", threads: int = 0, exporter: str = "auto", seed: int = 1,
               targets: Any = None) -> TrainStep:
    """Compiles a training step of a module for the shapes of an example.

    Args:
        loss: of the first output: ``"mse"``, ``"l1"``, ``"huber"``, ``"cross_entropy"``, or the module of PyTorch for one. Or any
            callable: ``loss(output, *targets)`` gives one number out of what ``forward`` gives and `targets`; it is captured with
            the module (regularisers that read the module's parameters too), and its Python code does not run again.
        optimizer: an SGD, Adam, AdamW or Adamax of PyTorch that has made no step, or its name here
            (``"adam"``, ``"sgd:momentum=0.9"``).
        example: the tensors that ``forward`` takes: a tuple, or one.
        learning_rate: where `optimizer` is a name.
        precision: ``"f32"`` or ``"bf16"``.
        threads: 0: every processor that the process may use.
        exporter: as of ``compile``.
        seed: of the masks of dropouts, which are other ones than PyTorch's.
        targets: of a loss that is a callable: example tensors of what it takes, a tuple or one; steps take the same after the
            inputs. The whole batch goes through the module at a time.

    Parameters without ``requires_grad`` stay as they are, and those that the first output does not depend on. Every parameter that
    PyTorch would train is trained, under its own name and from its own values, or the call is refused. A module in evaluation mode is
    trained as after ``train()``; one in training mode as it stands, with parts that were set to ``eval()`` (normalisations among
    these are refused).

    Raises:
        ExportError: as ``compile``.
    """
    inputs = _inputs(example)
    _require_here(module)
    _refuse_hooks(module)
    text, name = _optimizer_text(optimizer), _loss_name(loss)
    if name is not None and targets is not None:
        raise InvalidArgument("belong to a loss that is a callable", "targets", f"'{name}' takes one, of the first output's shape")
    given = () if targets is None else _inputs(targets)
    exported = module if name is not None else _with_loss(module, loss, len(inputs))
    expected = None if name is not None else _loss_in_evaluation(exported, inputs + given)
    with _plain(exported, True):
        idle, taken = _rehearsed(exported, inputs + given)
    trained = [n for n, p in module.named_parameters() if p.requires_grad]

    def use(file: pathlib.Path) -> TrainStep:
        refuse_draws(file)
        model = _trained_model(file, name, trained, seed)
        if expected is not None:
            _require_same_loss(model, module, inputs + given, expected)
        trainer = model.trainer(optimizer=text, learning_rate=learning_rate, precision=precision, threads=threads)
        step = TrainStep(module, trainer, optimizer, len(inputs), idle, taken, 1 if expected is None else len(given))
        step.check()
        return step

    step: TrainStep = _converted(exported, inputs + given, exporter, True, False, use)
    return step


def _trained_model(file: pathlib.Path, loss: str | None, trained: Sequence[str], seed: int) -> Model:
    """The model in a file, in which these initializers are trained and no others."""
    import onnx
    graph = onnx.load(str(file), load_external_data=False).graph
    known = {initializer.name for initializer in graph.initializer}
    name = loss or "value"
    term = f"{name}:{graph.output[0].name}" if len(graph.output) > 1 else name
    chosen = [n for n in trained if n in known]
    model = Model(file, loss=term, seed=seed, train=chosen)
    others = [n for n in model.parameters if n in known and n not in chosen]
    buffers = ("running_mean", "running_var")  # of normalizations: kept, not learned
    frozen = [n for n in others if not n.endswith(buffers)]
    return Model(file, loss=term, seed=seed, train=chosen, freeze=frozen) if frozen else model
