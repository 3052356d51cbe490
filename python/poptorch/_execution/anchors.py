"""Tensors of a run that are kept besides its results: parameters, gradients, inputs, the loss, intermediate values.

Names: parameters and buffers as the module names them; `Gradient___NAME` (reduced, without loss scaling), `UpdatedVar___NAME`;
inputs `input`, `input/1`; `loss`; settings of the optimizer; results of operators `module.path/Operator:0`, of which
`Gradient___` is the gradient on one micro-batch.
"""

import difflib
import logging

import torch
from torch.nn.modules import module as _modules

from .. import enums
from .._errors import Error
from .._logging import logger
from .batching import Collector

_GRADIENT, _UPDATED = "Gradient___", "UpdatedVar___"

# Functions of torch whose operator has another name than their own in capitals.
_OPERATORS = {"linear": "MatMul", "matmul": "MatMul", "mm": "MatMul", "bmm": "MatMul", "__matmul__": "MatMul", "conv1d": "Conv",
              "conv2d": "Conv", "conv3d": "Conv", "max_pool1d": "MaxPool", "max_pool2d": "MaxPool", "avg_pool2d": "AveragePool",
              "batch_norm": "BatchNormalization", "group_norm": "GroupNormalization", "layer_norm": "GroupNormalization",
              "embedding": "Gather", "flatten": "Reshape", "view": "Reshape", "reshape": "Reshape", "log_softmax": "LogSoftmax",
              "cross_entropy": "Nllloss", "nll_loss": "Nllloss", "__truediv__": "Div", "sum": "ReduceSum",
              "mean": "ReduceMean", "permute": "Transpose", "transpose": "Transpose"}
_SILENT = frozenset("__get__ __set__ size dim numel stride is_floating_point is_contiguous item tolist detach clone to "
                    "requires_grad_ type __setitem__ data_ptr".split())


def _operator(name):
    if name in _OPERATORS:
        return _OPERATORS[name]
    words = name.strip("_").lstrip("ir" if name in ("__iadd__", "__radd__", "__rmul__", "__imul__") else "").split("_")
    return "".join(word.capitalize() for word in words)


class Recorder:
    """Names the results of operators of one forward pass after the modules that they belong to, and keeps some.

    `wanted` are the names to keep, None for none. Close it when the pass is over.
    """

    def __init__(self, model, options, wanted=None):
        self.names, self.kept = [], {}
        self._wanted = wanted
        self._counts = {}
        self._saying = logger.isEnabledFor(logging.DEBUG)
        self._scoped = options._module_namescope_enabled
        self._paths = {}
        if isinstance(model, torch.nn.Module):
            self._paths = {module: name for name, module in model.named_modules()}
        self._stack = []
        self._hooks = [_modules.register_module_forward_pre_hook(self._enter),
                       _modules.register_module_forward_hook(self._leave, always_call=True)]

    def _enter(self, module, inputs):
        self._stack.append(self._paths.get(module, ""))

    def _leave(self, module, inputs, result):
        if self._stack:
            self._stack.pop()

    def operator(self, name, result, scopes, placement=None):
        """Takes the result of a function of torch; at level DEBUG says where it runs."""
        if name in _SILENT or not isinstance(result, torch.Tensor):
            return
        path = list(scopes)
        if self._scoped and self._stack and self._stack[-1]:
            path.insert(0, self._stack[-1])
        base = "/".join(path + [_operator(name)]) + ":0"
        number = self._counts.get(base, 0)
        self._counts[base] = number + 1
        full = f"{base}/{number}" if number else base
        if self._wanted is None:
            self.names.append(full)
            if placement is not None and self._saying:
                logger.debug(" %s [%s%s, %s]", full, str(result.dtype).removeprefix("torch."), tuple(result.shape),
                             placement.words())
        elif full in self._wanted:
            self.kept[full] = result

    def close(self):
        """Takes its hooks away."""
        for hook in self._hooks:
            hook.remove()


def tensor_names(state, arguments, recorder, training, optimizer):
    """Names that may be anchored in a compiled model."""
    parameters = list(state.parameters())
    names = parameters + list(state.buffers())
    names += ["input" if index == 0 else f"input/{index}" for index in range(len(arguments.tensors()))]
    names += recorder.names
    if training:
        trained = [name for name, parameter in state.parameters().items() if parameter.requires_grad]
        names += [_GRADIENT + name for name in trained] + [_UPDATED + name for name in trained]
        names += [_GRADIENT + name for name in recorder.names]
        names += ["loss", "finalLossScale"] + sorted(_settings(optimizer, None))
    return names


def _settings(optimizer, update):
    """Settings of the optimizer that are values on the device, by name."""
    group = optimizer.param_groups[0]
    scaling = getattr(update, "loss_scaling", 1.0) if update is not None else 1.0
    rate, decay = float(group["lr"]), float(group.get("weight_decay", 0.0))
    return {"scaledLearningRate0___default___FLOAT": rate / scaling,
            "weightDecayScaleFactor0___default___FLOAT": 1.0 - rate * decay}


class Anchors:
    """What `Options.anchorTensor` asked for, collected over a run."""

    def __init__(self, options):
        self._options = options
        self._wanted = {}
        for short, (long, follows, mode, period) in options.anchored_tensors.items():
            if follows:
                mode, period = options.output_mode, options.output_return_period
            self._wanted[short] = (long, mode, period)
        self.names = []
        self._collectors, self._values = {}, {}
        self._gradients = {}

    def check(self, names):
        """Notes the model's names; Error for an anchor of none of them, with the nearest."""
        self.names = names
        for short, (long, mode, period) in self._wanted.items():
            if long not in names:
                near = difflib.get_close_matches(long, names, 1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise Error(f"Anchor {short}: the model has no tensor {long}.{hint} getTensorNames() lists them")
            word = "Sum" if mode == enums.OutputMode.Sum else mode.name.upper()
            logger.debug("  %s %s/%d", long, word, period)

    def begin(self, batching):
        """A run begins."""
        self._collectors = {short: Collector(mode, period, batching) for short, (_, mode, period) in self._wanted.items()}
        self._batching = batching
        self._values = {}

    def recorder(self, model):
        """The recorder for a micro-batch, or None where no anchor is an operator's result."""
        operators = {long.removeprefix(_GRADIENT) for long, _, _ in self._wanted.values() if ":" in long}
        return Recorder(model, self._options, operators) if operators else None

    def watched(self, recorder):
        """Operators' results whose gradients are anchored, of this micro-batch."""
        if recorder is None:
            return []
        recorder.close()
        return [recorder.kept[name] for name in self._watched_names(recorder)]

    def _watched_names(self, recorder):
        return [long.removeprefix(_GRADIENT) for long, _, _ in self._wanted.values()
                if long.startswith(_GRADIENT) and long.removeprefix(_GRADIENT) in recorder.kept
                and recorder.kept[long.removeprefix(_GRADIENT)].requires_grad]

    def gradients(self, recorder, gradients, scaling):
        """Takes the gradients of `watched`."""
        self._gradients = {}
        if recorder is not None:
            for name, gradient in zip(self._watched_names(recorder), gradients):
                self._gradients[name] = gradient if gradient is None or scaling == 1 else gradient.float() / scaling

    def micro_batch(self, recorder, arguments, loss, iteration, step, replica):
        """Collects what belongs to one micro-batch: inputs, the loss, results of operators."""
        if not self._wanted:
            return
        found = {"loss": loss}
        for index, tensor in enumerate(arguments.tensors()):
            found["input" if index == 0 else f"input/{index}"] = tensor
        if recorder is not None:
            found.update(recorder.kept)
            found.update({_GRADIENT + name: gradient for name, gradient in self._gradients.items()})
        self._take(found, iteration, step, replica)

    def step(self, gradients, parameters, update, optimizer, iteration):
        """Collects what belongs to one optimizer step, the same for each replica: gradients, parameters, settings."""
        if not self._wanted:
            return
        found = {_GRADIENT + name: gradient for name, gradient in gradients.items()}
        found.update({_UPDATED + name: parameter for name, parameter in parameters.items()})
        found.update({name: torch.tensor(value) for name, value in _settings(optimizer, update).items()})
        found["finalLossScale"] = torch.tensor(float(update.loss_scaling))
        last = self._batching.accumulation - 1
        for replica in range(self._batching.replicas):
            self._take(found, iteration, last, replica)

    def _take(self, found, iteration, step, replica):
        for short, (long, _, _) in self._wanted.items():
            if found.get(long) is not None:
                self._collectors[short].add(found[long], iteration, step, replica)

    def finish(self, state):
        """The run is over: parameters and buffers as they are now, and what was collected."""
        plain = {**state.parameters(), **state.buffers()} if self._wanted else {}
        for short, (long, _, _) in self._wanted.items():
            if long in plain:
                self._values[short] = plain[long].detach().clone()
            else:
                self._values[short] = self._collectors[short].result()

    def get(self, short):
        """The tensor of this short name. AssertionError: there is none."""
        assert short in self._values, f"No tensor with name {short} found: anchorTensor names it before the model is compiled, "\
                                      "and a run fills it"
        return self._values[short]
