"""The arithmetic of a step: one function for each kind of optimizer, over lists of parameters that share their settings.

Everything is float32: parameters and states of half precision are widened before and rounded after (`_optim_update`).
Where torch.optim has the same rule, the operations come in torch's order, so that results are the same bits. Gradients
are not changed. `settings` are numbers under the compiler's names (`_optim_attributes`); `states` has a list of tensors
for each slot; `step` counts from 1.
"""

import math

import torch


def _with_decay(parameters, gradients, decay):
    """Gradients plus `decay` times the parameters: the decay that is part of the loss (L2)."""
    return torch._foreach_add(gradients, parameters, alpha=decay) if decay else list(gradients)


def sgd(parameters, gradients, states, settings, fixed, step):
    """Gradient descent: v = momentum v + (1 - dampening) g, w -= lr v; Nesterov takes g' + momentum v.

    The velocity starts at zero, so that the first step is dampened too, where torch takes the first gradient whole; and
    dampening acts without momentum as well. Slot: "Accl", the velocity times `velocityScaling`.
    """
    gradients = _with_decay(parameters, gradients, settings["weightDecay"])
    momentum, kept = settings["momentum"], 1 - settings["dampening"]
    scale = settings["velocityScaling"]
    if "Accl" in states:
        velocities = states["Accl"]
        torch._foreach_mul_(velocities, momentum)
        torch._foreach_add_(velocities, gradients, alpha=kept * scale)
        change = velocities if scale == 1 else torch._foreach_div(velocities, scale)
    else:
        change = gradients if kept == 1 else torch._foreach_mul(gradients, kept)
    if settings["nesterov"]:
        change = torch._foreach_add(gradients, change, alpha=momentum)
    torch._foreach_add_(parameters, change, alpha=-settings["learningRate"])


def _moments(gradients, states, settings):
    """Moving means of the gradients and of their squares (slots "Accl1", "Accl2")."""
    means, squares = states["Accl1"], states["Accl2"]
    torch._foreach_lerp_(means, gradients, 1 - settings["beta1"])
    torch._foreach_mul_(squares, settings["beta2"])
    torch._foreach_addcmul_(squares, gradients, gradients, value=1 - settings["beta2"])
    return means, squares


def _remaining(beta, step):
    """1 - beta^step; not a number where a state was loaded for which it has no value."""
    try:
        return 1 - math.pow(beta, step)
    except (ArithmeticError, ValueError):
        return math.nan


def _root(value):
    return math.sqrt(value) if value >= 0 else math.nan


def _ratio(numerator, denominator):
    return numerator / denominator if denominator else math.nan


def _adam_change(parameters, gradients, states, settings, step):
    means, squares = _moments(gradients, states, settings)
    denominators = torch._foreach_sqrt(squares)
    torch._foreach_div_(denominators, _root(_remaining(settings["beta2"], step)))
    torch._foreach_add_(denominators, settings["eps"])
    size = _ratio(settings["learningRate"], _remaining(settings["beta1"], step))
    torch._foreach_addcdiv_(parameters, means, denominators, value=-size)


def adam(parameters, gradients, states, settings, fixed, step):
    """Adam (Kingma and Ba, 2015) with the decay in the gradient. Slots: "Accl1", "Accl2"."""
    gradients = _with_decay(parameters, gradients, settings["weightDecay"])
    _adam_change(parameters, gradients, states, settings, step)


def adamw(parameters, gradients, states, settings, fixed, step):
    """Adam with the decay apart from the gradient (Loshchilov and Hutter, 2019). Slots: "Accl1", "Accl2".

    Always with the correction of the bias, `bias_correction=False` notwithstanding: so it was in PopTorch's last version.
    """
    if settings["weightDecay"]:
        torch._foreach_mul_(parameters, 1 - settings["learningRate"] * settings["weightDecay"])
    _adam_change(parameters, gradients, states, settings, step)


def rmsprop(parameters, gradients, states, settings, fixed, step):
    """RMSprop, centered or not. Slots: "Accl1" (mean square), "Accl2" (mean, where centered), "Accl3" (momentum).

    The variant of TensorFlow (`use_tf_variant`) has epsilon under the root and the learning rate inside the momentum's
    buffer, and its mean square starts at one.
    """
    gradients = _with_decay(parameters, gradients, settings["weightDecay"])
    squares, alpha, variant = states["Accl1"], settings["alpha"], fixed["use_tf_variant"]
    torch._foreach_mul_(squares, alpha)
    torch._foreach_addcmul_(squares, gradients, gradients, value=1 - alpha)
    spread = [square.clone() for square in squares]
    if fixed["centered"]:
        means = states["Accl2"]
        torch._foreach_lerp_(means, gradients, 1 - alpha)
        torch._foreach_addcmul_(spread, means, means, value=-1)
    if variant:
        torch._foreach_add_(spread, settings["eps"])
    torch._foreach_sqrt_(spread)
    if not variant:
        torch._foreach_add_(spread, settings["eps"])
    _rmsprop_change(parameters, gradients, spread, states, settings, variant)


def _rmsprop_change(parameters, gradients, denominators, states, settings, variant):
    rate, momentum = settings["learningRate"], settings["momentum"]
    if "Accl3" not in states:
        torch._foreach_addcdiv_(parameters, gradients, denominators, value=-rate)
        return
    buffers = states["Accl3"]
    torch._foreach_mul_(buffers, momentum)
    torch._foreach_addcdiv_(buffers, gradients, denominators, value=rate if variant else 1)
    torch._foreach_add_(parameters, buffers, alpha=-1 if variant else -rate)


def lamb(parameters, gradients, states, settings, fixed, step):
    """LAMB (You et al., 2020): Adam's change plus the decay, of the length of the parameter. Slots: "Accl1", "Accl2".

    The change of each parameter is scaled by min(norm of the parameter, maxWeightNorm) / norm of the change, by 1 where
    one of them is zero. Vectors (biases, scales) are treated so too.
    """
    means, squares = _moments(gradients, states, settings)
    corrected = fixed["bias_correction"]
    denominators = torch._foreach_sqrt(squares)
    if corrected:
        torch._foreach_div_(denominators, _root(_remaining(settings["beta2"], step)))
    torch._foreach_add_(denominators, settings["eps"])
    changes = torch._foreach_div(means, _remaining(settings["beta1"], step)) if corrected else [m.clone() for m in means]
    torch._foreach_div_(changes, denominators)
    if settings["weightDecay"]:
        torch._foreach_add_(changes, parameters, alpha=settings["weightDecay"])
    trust = _trust(parameters, changes, settings["maxWeightNorm"])
    torch._foreach_mul_(changes, trust)
    torch._foreach_add_(parameters, changes, alpha=-settings["learningRate"])


def _trust(parameters, changes, most):
    """The ratio of norms of each parameter and its change, as numbers."""
    lengths = torch.stack(torch._foreach_norm(parameters)).clamp_(max=most)
    changed = torch.stack(torch._foreach_norm(changes))
    ratio = torch.where((lengths == 0) | (changed == 0), torch.ones_like(lengths), lengths / changed)
    return ratio.tolist()


RULES = {"SGD": sgd, "Adam": adam, "AdamW": adamw, "RMSprop": rmsprop, "LAMB": lamb}


def slots(kind, fixed, settings, momentum_may_change):
    """The states that a parameter needs, as {slot: (type, value at first)}."""
    momentum = settings.get("momentum", 0.0) != 0 or momentum_may_change
    if kind == "SGD":
        # The combined buffer has the type of what it is computed in.
        kept = torch.float32 if fixed["use_combined_accum"] else fixed["velocity_accum_type"]
        return {"Accl": (kept, 0.0)} if momentum else {}
    first, second = fixed["first_order_momentum_accum_type"], fixed["second_order_momentum_accum_type"]
    if kind != "RMSprop":
        return {"Accl1": (first, 0.0), "Accl2": (second, 0.0)}
    found = {"Accl1": (second, 1.0 if fixed["use_tf_variant"] else 0.0)}
    if fixed["centered"]:
        found["Accl2"] = (first, 0.0)
    if momentum:
        found["Accl3"] = (first, 0.0)
    return found


def clip(gradients, most):
    """The gradients times min(1, most / norm of all together): a new list where they are longer than `most`."""
    if most == float("inf") or not gradients:
        return gradients
    length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm([g.float() for g in gradients])))
    return torch._foreach_mul(gradients, float(most / length)) if length > most else gradients
