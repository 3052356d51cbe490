"""Whether a captured pass gives PyTorch's numbers: outputs, loss and gradients of one micro-batch, without dropouts."""

import contextlib
import copy
import math

import torch
from torch.overrides import TorchFunctionMode

from .._structures import tensors_in, with_tensors
from .forward import ForwardPass, run_pass

_DROPOUTS = ("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "alpha_dropout_",
             "feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_")
_AGREES = {torch.float16: 1e-2}  # relative to the norm; else 1e-3
_GRADIENT = "the gradient of "
_FAR = 0.05  # relative: what one rectifier may make of a rounding, where its input is nearly zero


class NotCaptured(Exception):
    """Why a forward pass is left to PyTorch."""


class WithoutDropout(TorchFunctionMode):
    """Dropouts give what they get, and are counted: masks differ between engines, all else can be compared."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _DROPOUTS:
            share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            if kwargs.get("training", args[2] if len(args) > 2 else True) and share > 0:
                self.count += 1
                return args[0] if args else kwargs["input"]
        return func(*args, **kwargs)


def one_pass(module, training, arguments, tensors):
    """One forward pass of the module on these tensors: the pass, and the tensors of its result."""
    positional, named = with_tensors((arguments.positional, arguments.named), iter(tensors))
    forward = ForwardPass(None, None, training)
    result = run_pass(forward, True, lambda: module(*positional, **named))
    return forward, tensors_in(result)


def total(loss):
    """What backpropagation with ones starts from."""
    return loss if loss.dim() == 0 else loss.sum()


def altered(tensor, trial):
    """Other values of the same kind: floating-point elements turned round and scaled, rows of others in another order."""
    if tensor.is_floating_point():
        return tensor.detach().flatten().flip(0).roll(trial).reshape(tensor.shape) * (1 - 0.1 * trial)
    if tensor.dim() == 0:
        return tensor.clone()
    return tensor.roll(trial, 0 if tensor.shape[0] > 1 else -1)


def altered_state(engine, trial):
    """Parameters of the module, and in inference its buffers (in training they are constants of the plan), scaled."""
    scale = 1 - 0.02 * trial
    parameters = {name: torch.nn.Parameter(value.detach() * scale, value.requires_grad)
                  for name, value in engine.state.parameters().items() if value.is_floating_point()}
    if engine.training:
        return parameters
    return parameters | {name: value * scale for name, value in engine.state.buffers().items() if value.is_floating_point()}


class Expected:
    """What PyTorch gives for one micro-batch: outputs, in training the loss and gradients without dropouts."""

    def __init__(self, module, training, arguments):
        self._made_of = module, training, arguments
        without = WithoutDropout()
        with without if training else contextlib.nullcontext(), torch.set_grad_enabled(training):
            forward, outputs = one_pass(module, training, arguments, arguments.tensors())
            self.outputs = [output.detach().clone() for output in outputs]
            self.loss, self.gradients = None, {}
            if training:
                loss, edge = forward.marks.final()
                self.loss = total(loss.detach())
                self.gradients = _gradients(edge, loss, module)
        self.dropouts = without.count

    def exact(self):
        """The same in float64, or None where forward does not take it."""
        module, training, arguments = self._made_of
        def wide(tensor):
            return tensor.double() if tensor.is_floating_point() else tensor
        try:
            return Expected(copy.deepcopy(module).double(), training, arguments.mapped(wide))
        except Exception:  # whatever the module raises
            return None

    def values(self):
        """All numbers that are compared, by what they are called."""
        found = {f"result {place}": output for place, output in enumerate(self.outputs)}
        if self.loss is not None:
            found["the loss"] = self.loss
        return found | {f"{_GRADIENT}{name}": gradient for name, gradient in self.gradients.items()}

    def compare(self, outputs, loss, gradients):
        """The gradients that are other numbers, by name with the reason. Raises NotCaptured where outputs or the loss are, or a gradient
        is far from PyTorch's. Where rounding parts them, those of PyTorch in float64 judge: the distance from them may be four times
        that of PyTorch."""
        if len(outputs) != len(self.outputs):
            raise NotCaptured(f"the file gives {len(outputs)} results, forward {len(self.outputs)}")
        found = dict(zip(self.values(), [*outputs, *([] if loss is None else [loss]), *(gradients[name] for name in self.gradients)]))
        largest = max((_norm(gradient) for gradient in self.gradients.values()), default=0.0)
        open_, exact = {}, None
        for what, value in self.values().items():
            of_gradient = what.startswith(_GRADIENT)
            reason, share = _difference(what, value, found[what], 1e-5 * largest if of_gradient else 1e-9)
            if reason is None:
                continue
            exact = exact or (self.exact() if value.dtype == torch.float32 else None)
            judge = exact.values().get(what) if exact is not None else None
            if judge is not None and _as_close(judge, value, found[what]):
                continue
            if not of_gradient or share > _FAR:
                raise NotCaptured(reason)
            open_[what] = reason
        return open_


def _gradients(edge, loss, module):
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if edge is None or not parameters:
        return {}
    found = torch.autograd.grad([edge], list(parameters.values()), [torch.ones_like(loss)], allow_unused=True)
    return {name: gradient for name, gradient in zip(parameters, found) if gradient is not None}


def _norm(tensor):
    return float(torch.linalg.vector_norm(torch.nan_to_num(tensor.double(), 0, 0, 0)))


def _difference(what, expected, found, rounding):
    """(why they are not the same numbers within a tolerance, or None; by how much of the expected ones' norm)."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return (f"{what} is {found.dtype} {tuple(found.shape)}, by PyTorch {expected.dtype} {tuple(expected.shape)}", math.inf)
    if not torch.equal(expected.isfinite(), found.isfinite()):
        return f"{what} is not finite where PyTorch's is, or the other way round", math.inf
    limit = _AGREES.get(expected.dtype, 1e-3) if expected.is_floating_point() else 0
    size, distance = _norm(expected), _norm(expected.double() - found.double())
    if distance <= limit * size + rounding:
        return None, 0.0
    return f"{what} differs from PyTorch's by {distance:.3g} of {size:.3g}", distance / size if size else math.inf


def _as_close(exact, expected, found):
    if exact.shape != found.shape or not bool(exact.isfinite().all()):
        return False
    return _norm(found.double() - exact) <= 4 * _norm(expected.double() - exact)
