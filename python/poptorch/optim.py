"""Optimizers with PopTorch's arguments: SGD, Adam, AdamW, RMSprop and LAMB.

They are optimizers of torch, so that schedulers of learning rates take them; their step is carried out by the executor
(`make_update`). An argument that is None has torch's default and is constant for the compiled model; one that is given
is variable (`variable_attrs`). Arguments of torch that choose an implementation (`foreach`, `fused`, `capturable`,
`differentiable`) have no effect; `maximize` and `amsgrad` are refused when the model is compiled.
"""

import torch

from . import _optim_rules
from ._logging import logger
from ._optim_attributes import VariableAttributes, check
from ._optim_state import StateOfUpdate
from ._optim_update import Update as _Update  # noqa: F401 - named in annotations
from ._optim_update import make_update

__all__ = ["Adam", "AdamW", "LAMB", "Optimizer", "RMSprop", "SGD", "VariableAttributes", "check",
           "make_update"]

_TYPES = (torch.float16, torch.float32)


def _given(arguments):
    """What the caller of a constructor gave, of `locals()` there."""
    return {name: value for name, value in arguments.items()
            if value is not None and name not in ("self", "__class__")}


def _start(optimizer, base, given, own, defaults):
    """Constructs the part of torch, then the attributes that torch does not have.

    `own` are the names of those arguments, `defaults` their values where they were not given.
    """
    Optimizer.__init__(optimizer)
    base.__init__(optimizer, **{name: value for name, value in given.items() if name not in own})
    _set_own(optimizer, given, defaults)


def _set_own(optimizer, given, defaults):
    for name, value in defaults.items():
        setattr(optimizer, name, given.get(name, value))
        if name.endswith("accum_type"):
            assert getattr(optimizer, name) in _TYPES, (
                f"{name} is {getattr(optimizer, name)}: accumulators are torch.float32 or torch.float16.")
    variable = list(given) if "lr" in given else ["lr", *given]
    optimizer.variable_attrs = VariableAttributes(variable, [*optimizer.defaults, "loss_scaling"])


def _pickled(optimizer, state):
    """What is copied and saved of an optimizer: of the executor's state a copy, not the executor."""
    optimizer.refresh()
    for name in ("variable_attrs", *type(optimizer)._own_attributes):
        state[name] = getattr(optimizer, name)
    state.update(_state_dict=optimizer._state_dict, _source=None, _seen=None,
                 ipu_state_is_dirty=optimizer.has_state(), host_state_is_dirty=False)
    return state


class Optimizer(StateOfUpdate):
    """What PopTorch's optimizers have besides torch's: the state of the executor, loss scaling, variable attributes."""

    # Names of the attributes that torch does not have, in the order of the constructor.
    _own_attributes = ()

    def state_dict(self):
        """{"ipu_state", "ipu_param", "state", "param_groups"}.

        ipu_state ({name: tensor}) are the moments of each parameter, `Accl1___PARAMETER` and the like; ipu_param the
        settings that may change, scalars. Both are None before the model is compiled.
        """
        self.refresh()
        return self.get_state_dict()

    def load_state_dict(self, state_dict):
        """Takes what `state_dict` gave. A state that no PopTorch optimizer wrote is a RuntimeError."""
        self.check_state(state_dict)
        torch.optim.Optimizer.load_state_dict(self, state_dict)
        self.set_state_dict(state_dict)

    def __getstate__(self):
        return _pickled(self, torch.optim.Optimizer.__getstate__(self))


class SGD(Optimizer, torch.optim.SGD):
    """Stochastic gradient descent with momentum.

    v = momentum v + (1 - dampening) g from v = 0, w -= lr v: where torch takes the first gradient undampened, this does not.

    Args:
        params: parameters, or groups of them as dicts; groups may have their own lr, momentum, dampening, weight_decay,
            nesterov and, with the combined buffer, velocity_scaling.
        lr: learning rate.
        momentum, dampening, weight_decay, nesterov: as torch's.
        maximize, foreach, differentiable: see the module.
        loss_scaling: the loss is multiplied by it before gradients are taken, which are divided by it again.
        velocity_scaling: the combined buffer is kept times this; ignored, with a warning, without `use_combined_accum`.
        use_combined_accum: gradients are added to the velocity itself instead of to a buffer of their own.
        accum_type: of the buffer of gradients, torch.float32 or torch.float16.
        velocity_accum_type: of the velocity; without effect on the combined buffer.
        max_grad_norm: gradients that are longer, all parameters together, are scaled to it.
    """

    _child_vars = ["loss_scaling"]
    _child_only = _child_vars + ["velocity_scaling", "use_combined_accum", "accum_type", "velocity_accum_type",
                                 "max_grad_norm"]
    _group_vars = ["lr", "momentum", "dampening", "weight_decay", "nesterov", "velocity_scaling"]
    _own_attributes = ("loss_scaling", "use_combined_accum", "accum_type", "velocity_accum_type", "max_grad_norm")

    def __init__(self, params, lr, momentum=None, dampening=None, weight_decay=None, nesterov=None, maximize=None,
                 foreach=None, differentiable=None, loss_scaling=None, velocity_scaling=None, use_combined_accum=None,
                 accum_type=None, velocity_accum_type=None, max_grad_norm=None):
        given = _given(locals())
        _start(self, torch.optim.SGD, given, SGD._child_only, {
            "loss_scaling": 1.0, "use_combined_accum": False, "accum_type": torch.float32,
            "velocity_accum_type": torch.float32, "max_grad_norm": float("inf")})
        if use_combined_accum:
            self.defaults["velocity_scaling"] = given.get("velocity_scaling", 1.0)
            for group in self.param_groups:
                group.setdefault("velocity_scaling", self.defaults["velocity_scaling"])
            self.variable_attrs._allowed_attributes.append("velocity_scaling")
        elif velocity_scaling is not None:
            logger.warning("velocity_scaling=%s is ignored: it scales the combined buffer (use_combined_accum=True).",
                           velocity_scaling)


_OF_MOMENTS = {"accum_type": torch.float32, "first_order_momentum_accum_type": torch.float32,
               "second_order_momentum_accum_type": torch.float32}


class Adam(Optimizer, torch.optim.Adam):
    """Adam; weight_decay is part of the gradient. Groups may have their own lr, betas, eps, weight_decay.

    Args: those of torch.optim.Adam, and
        loss_scaling, accum_type, max_grad_norm: as in SGD.
        first_order_momentum_accum_type, second_order_momentum_accum_type: of the moments, torch.float32 or torch.float16.
    """

    _child_vars = ["loss_scaling"]
    _child_only = _child_vars + ["accum_type", "first_order_momentum_accum_type", "second_order_momentum_accum_type",
                                 "max_grad_norm"]
    _group_vars = ["lr", "betas", "eps", "weight_decay", "amsgrad"]
    _own_attributes = tuple(_child_only)

    def __init__(self, params, lr=None, betas=None, eps=None, weight_decay=None, amsgrad=None, foreach=None, maximize=None,
                 capturable=None, differentiable=None, fused=None, loss_scaling=None, accum_type=None,
                 first_order_momentum_accum_type=None, second_order_momentum_accum_type=None, max_grad_norm=None):
        _start(self, torch.optim.Adam, _given(locals()), Adam._child_only,
               {"loss_scaling": 1.0, **_OF_MOMENTS, "max_grad_norm": float("inf")})


class AdamW(Optimizer, torch.optim.AdamW):
    """Adam with weight decay apart from the gradient, 0.01 where not given. Arguments as Adam's, and

        bias_correction: recorded. False changes nothing, as in PopTorch's last version; a warning says so.
    """

    _child_vars = ["loss_scaling"]
    _child_only = _child_vars + ["bias_correction", "accum_type", "first_order_momentum_accum_type",
                                 "second_order_momentum_accum_type", "max_grad_norm"]
    _group_vars = ["lr", "betas", "weight_decay", "eps", "amsgrad"]
    _own_attributes = tuple(_child_only)

    def __init__(self, params, lr=None, betas=None, eps=None, weight_decay=None, amsgrad=None, maximize=None, foreach=None,
                 capturable=None, differentiable=None, fused=None, loss_scaling=None, bias_correction=None, accum_type=None,
                 first_order_momentum_accum_type=None, second_order_momentum_accum_type=None, max_grad_norm=None):
        _start(self, torch.optim.AdamW, _given(locals()), AdamW._child_only,
               {"loss_scaling": 1.0, "bias_correction": True, **_OF_MOMENTS, "max_grad_norm": float("inf")})


class RMSprop(Optimizer, torch.optim.RMSprop):
    """RMSprop; weight_decay is part of the gradient. `centered` is the same for all groups.

    Args: those of torch.optim.RMSprop, and
        loss_scaling, accum_type: as in SGD; the types of the moments as in Adam.
        use_tf_variant: epsilon under the root, the learning rate inside the momentum's buffer, mean squares from one.
    """

    _child_vars = ["loss_scaling"]
    _child_only = _child_vars + ["accum_type", "first_order_momentum_accum_type", "second_order_momentum_accum_type",
                                 "use_tf_variant"]
    _group_vars = ["lr", "momentum", "weight_decay", "alpha", "eps", "centered"]
    _own_attributes = tuple(_child_only)

    def __init__(self, params, lr=None, alpha=None, eps=None, weight_decay=None, momentum=None, centered=None, foreach=None,
                 maximize=None, differentiable=None, loss_scaling=None, accum_type=None,
                 first_order_momentum_accum_type=None, second_order_momentum_accum_type=None, use_tf_variant=None):
        _start(self, torch.optim.RMSprop, _given(locals()), RMSprop._child_only,
               {"loss_scaling": 1.0, **_OF_MOMENTS, "use_tf_variant": False})


class LAMB(Optimizer, torch.optim.Optimizer):
    """LAMB: changes as Adam's with decay apart, each parameter's of the parameter's own length.

    Args:
        params, lr (0.001), betas (0.9, 0.999), eps (1e-8), weight_decay (0.01): as Adam's.
        bias_correction: of the moments (True).
        max_weight_norm: lengths of parameters count no more than this (65500).
        loss_scaling, accum_type and the types of the moments: as Adam's.
    """

    _child_vars = ["loss_scaling"]
    _child_only = _child_vars + ["bias_correction", "accum_type", "first_order_momentum_accum_type",
                                 "second_order_momentum_accum_type"]
    _group_vars = ["lr", "weight_decay", "betas", "eps", "max_weight_norm"]
    _own_attributes = tuple(_child_only)

    def __init__(self, params, lr=None, betas=None, eps=None, weight_decay=None, bias_correction=None, loss_scaling=None,
                 max_weight_norm=None, accum_type=None, first_order_momentum_accum_type=None,
                 second_order_momentum_accum_type=None):
        given = _given(locals())
        settings = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2, "max_weight_norm": 65500.0}
        Optimizer.__init__(self)
        torch.optim.Optimizer.__init__(self, params, {name: given.get(name, value) for name, value in settings.items()})
        _set_own(self, given, {"loss_scaling": 1.0, "bias_correction": True, **_OF_MOMENTS})

    @property
    def max_weight_norm(self):
        """Of the first group."""
        return self.param_groups[0]["max_weight_norm"]

    @torch.no_grad()
    def step(self, closure=None):
        """A step on the host, by the gradients of the parameters as torch's optimizers take them; for comparisons."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step_of(parameter, group)
        return loss

    def _step_of(self, parameter, group):
        state = self.state[parameter]
        if not state:
            state.update(step=0, exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
        state["step"] += 1
        settings = {"learningRate": group["lr"], "weightDecay": group["weight_decay"], "eps": group["eps"],
                    "beta1": group["betas"][0], "beta2": group["betas"][1], "maxWeightNorm": group["max_weight_norm"]}
        _optim_rules.lamb([parameter], [parameter.grad], {"Accl1": [state["exp_avg"]], "Accl2": [state["exp_avg_sq"]]},
                          settings, {"bias_correction": self.bias_correction}, state["step"])
