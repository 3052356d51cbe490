"""Steps of training in PyTorch, and how far those of others are from them."""
import copy

import numpy
import torch

import export_models


def without_dropout(module):
    """Dropouts and branches that are left out at random off: masks of two implementations are never the same."""
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
        if type(part).__name__ == "StochasticDepth":
            part.p = 0.0
        for name in ("dropout", "dropout_p", "attention_dropout", "dropout_prob", "drop_prob"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)


def loss_of(loss, outputs, target):
    """Of the first output."""
    first = export_models.tensors(outputs)[0]
    if loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(first, target)
    return torch.nn.functional.mse_loss(first, target.to(first.dtype))


def stepper(module, inputs, target, loss, optimizer, forward=None):
    """A function that makes one step and gives the loss before it."""
    forward = forward or module

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss_of(loss, forward(*inputs), target)
        value.backward()
        optimizer.step()
        return value

    return step


def parameters_of(module):
    """All parameters by name, in f64."""
    return {name: p.detach().double().numpy().copy() for name, p in module.named_parameters()}


def in_torch(module, inputs, target, loss, make, count, double):
    """The losses of some steps and all parameters that the loss depends on after them, by name; `make` makes the optimizer."""
    module = copy.deepcopy(module)
    if double:
        module = module.double()
        inputs = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    step = stepper(module, inputs, target, loss, make(module.parameters()))
    losses = [float(step()) for _ in range(count)]
    moved = {name for name, p in module.named_parameters() if p.grad is not None}
    return losses, {name: array for name, array in parameters_of(module).items() if name in moved}


def length(arrays):
    return float(numpy.sqrt(sum((a ** 2).sum() for a in arrays)))


def differences(losses, found, exact_losses, exact, before):
    """`loss`: the largest relative difference of a loss. `parameters`: the length of the difference of all parameters, as a share
    of their length; `moves`: as a share of the length of what they moved by."""
    apart = length(found[n].reshape(exact[n].shape) - exact[n] for n in exact)
    return {"loss": max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(losses, exact_losses, strict=True)),
            "parameters": apart / max(length(exact.values()), 1e-30),
            "moves": apart / max(length(exact[n] - before[n] for n in exact), 1e-30)}
