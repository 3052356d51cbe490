"""What an optimizer says: its kind, its settings by group, and which of them may change after compiling.

PopTorch's optimizers and those of `torch.optim` are read alike. A setting is *constant* or *variable*: of PopTorch's
optimizers what the constructor was given is variable (`variable_attrs`), of torch's what differs from its default. The
learning rate is always variable, unless it was marked as constant by hand.
"""

import dataclasses
import numbers
import weakref
from typing import Any, NamedTuple

import torch

from ._logging import logger


class VariableAttributes:
    """Which attributes of an optimizer may change after the model has been compiled (`optimizer.variable_attrs`)."""

    def __init__(self, variable_attributes, allowed_attributes):
        """Both are lists of names: those that are variable at first, and all that exist."""
        self._variable_attributes = list(variable_attributes)
        self._allowed_attributes = list(allowed_attributes)

    def _check(self, attr):
        assert attr in self._allowed_attributes, (
            f"This optimizer has no attribute {attr}: it has {', '.join(self._allowed_attributes)}.")

    def isConstant(self, attr):
        """True unless the attribute was given to the constructor or marked as variable."""
        return attr not in self._variable_attributes

    def markAsConstant(self, attr):
        """The attribute keeps its value from the first call on. An unknown name is an AssertionError."""
        self._check(attr)
        self._variable_attributes = [name for name in self._variable_attributes if name != attr]

    def markAsVariable(self, attr):
        """The attribute may be changed by `setOptimizer`. An unknown name is an AssertionError."""
        self._check(attr)
        if attr not in self._variable_attributes:
            self._variable_attributes.append(attr)


class Setting(NamedTuple):
    """A hyperparameter's value, and whether it must stay what it is."""

    value: float
    constant: bool


# Settings by group, under the names of torch: the compiler's name of each, and the value at which one of torch's own
# optimizers has it as a constant (None: at any value; "never": it is variable).
_LEARNING_RATE = {"lr": ("learningRate", "never")}
_MOMENTS = {"betas": ("betas", None), "eps": ("eps", 1e-8)}
GROUP_SETTINGS = {
    "SGD": _LEARNING_RATE | {"weight_decay": ("weightDecay", 0.0), "momentum": ("momentum", 0.0),
                             "dampening": ("dampening", 0.0), "nesterov": ("nesterov", None)},
    "Adam": _LEARNING_RATE | {"weight_decay": ("weightDecay", 0.0)} | _MOMENTS,
    "AdamW": _LEARNING_RATE | {"weight_decay": ("weightDecay", 1e-2)} | _MOMENTS,
    "RMSprop": _LEARNING_RATE | {"weight_decay": ("weightDecay", 0.0), "momentum": ("momentum", 0.0),
                                 "alpha": ("alpha", None), "eps": ("eps", 1e-8)},
    "LAMB": _LEARNING_RATE | {"weight_decay": ("weightDecay", None), "max_weight_norm": ("maxWeightNorm", 65500.0)}
            | _MOMENTS,
}
_TYPES = ("accum_type", "velocity_accum_type", "first_order_momentum_accum_type", "second_order_momentum_accum_type")


@dataclasses.dataclass
class Reading:
    """An optimizer as it stood when it was read.

    Attributes:
        kind: SGD, Adam, AdamW, RMSprop or LAMB.
        fixed: what is one for all groups and can never change: types of accumulators, variants, the largest norm.
        loss_scaling: the factor of the loss.
        defaults, groups: settings by the compiler's names; betas are `beta1` and `beta2`.
        group_of: the group's number by the identity of each parameter.
    """

    kind: str
    fixed: dict[str, Any]
    loss_scaling: Setting
    defaults: dict[str, Setting]
    groups: list[dict[str, Setting]]
    group_of: dict[int, int]

    def values(self):
        """What decides a step, to see whether two readings are the same."""
        return self.kind, self.fixed, self.loss_scaling, self.defaults, self.groups, self.group_of


def _kind_of_torch(optimizer):
    """AdamW before Adam: it is a subclass of Adam in torch of today, as is an Adam with decoupled decay in effect."""
    for kind, base in (("SGD", torch.optim.SGD), ("AdamW", torch.optim.AdamW), ("Adam", torch.optim.Adam),
                       ("RMSprop", torch.optim.RMSprop)):
        if isinstance(optimizer, base):
            return "AdamW" if kind == "Adam" and optimizer.defaults.get("decoupled_weight_decay") else kind
    return None


def kind_of(optimizer):
    """SGD, Adam, AdamW, RMSprop or LAMB. Another class is an AssertionError that names these."""
    from .optim import LAMB
    kind = "LAMB" if isinstance(optimizer, LAMB) else _kind_of_torch(optimizer)
    assert kind is not None, (
        f"Unsupported optimizer {type(optimizer).__name__}: a model is trained with "
        f"{', '.join(GROUP_SETTINGS)} of poptorch.optim or those of torch.optim.")
    return kind


_said_of = weakref.WeakSet()


def check(optimizer):
    """What can be said of an optimizer before the model is compiled.

    AssertionError: its class cannot be used. A class that a user derived is warned of once: its Python code never runs.
    """
    kind = kind_of(optimizer)
    own = type(optimizer)
    if own.__module__.startswith("torch.optim.") or own.__module__ == "poptorch.optim" or own in _said_of:
        return
    _said_of.add(own)
    logger.warning("Poptorch does not run Python optimizer code directly: of %s the settings count, and its step is that "
                   "of %s.", own.__name__, kind)


def _number(value, name):
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    assert isinstance(value, numbers.Number), f"Expected a number for {name} but got {value!r}."
    return value


def _type(optimizer, name):
    value = getattr(optimizer, name, None) or torch.float32
    if value not in (torch.float16, torch.float32):
        raise ValueError(f"{name} must be torch.float16 or torch.float32, not {value}.")
    return value


def _fixed(optimizer, kind):
    """Settings of the whole optimizer that a compiled model cannot change."""
    fixed = {name: _type(optimizer, name) for name in _TYPES}
    fixed["max_grad_norm"] = float(getattr(optimizer, "max_grad_norm", float("inf")))
    if fixed["max_grad_norm"] != fixed["max_grad_norm"]:
        raise ValueError("max_grad_norm must not be NaN.")
    fixed["use_combined_accum"] = bool(getattr(optimizer, "use_combined_accum", False))
    fixed["use_tf_variant"] = bool(getattr(optimizer, "use_tf_variant", False))
    fixed["bias_correction"] = bool(getattr(optimizer, "bias_correction", True))
    fixed["centered"] = _centered(optimizer) if kind == "RMSprop" else False
    return fixed


def _centered(optimizer):
    said = [bool(group["centered"]) for group in optimizer.param_groups]
    assert len(set(said)) == 1, f"All groups of an RMSprop must have the same 'centered', not {said}."
    return said[0]


def _refuse_unknown_arithmetic(group, where):
    if group.get("amsgrad"):
        raise ValueError(f"amsgrad=True in {where}: only Adam and AdamW without amsgrad can be run.")
    if group.get("maximize"):
        raise ValueError(f"maximize=True in {where}: minimize the negative of the loss instead.")


def _group_settings(group, kind, fixed, variable_attrs, where):
    """The settings of one group (or of the defaults), betas taken apart."""
    _refuse_unknown_arithmetic(group, where)
    settings = {}
    table = dict(GROUP_SETTINGS[kind])
    if fixed["use_combined_accum"]:
        table["velocity_scaling"] = ("velocityScaling", 1.0)
    for name, (compiled_name, at) in table.items():
        value = group.get(name, 1.0 if name == "velocity_scaling" else None)
        assert value is not None, f"{where} of the optimizer has no {name}."
        if variable_attrs is not None:
            constant = variable_attrs.isConstant(name)
        else:
            constant = at is None or (at != "never" and value == at)
        if name == "betas":
            assert isinstance(value, (tuple, list)) and len(value) == 2, f"Expected a pair for betas, not {value!r}."
            settings["beta1"] = Setting(_number(value[0], "betas[0]"), constant)
            settings["beta2"] = Setting(_number(value[1], "betas[1]"), constant)
        else:
            settings[compiled_name] = Setting(_number(value, name), constant)
    return settings


def read(optimizer, automatic_loss_scaling=False):
    """The optimizer's settings at this moment.

    Automatic loss scaling makes the factor of the loss variable. Raises AssertionError for a class or a value that
    cannot be used, ValueError for `amsgrad`, `maximize` and types that accumulators cannot have.
    """
    kind = kind_of(optimizer)
    variable_attrs = getattr(optimizer, "variable_attrs", None)
    if variable_attrs is not None and automatic_loss_scaling:
        variable_attrs.markAsVariable("loss_scaling")
    scaling = _number(getattr(optimizer, "loss_scaling", 1.0), "loss_scaling")
    assert scaling > 0, f"loss_scaling must be greater than 0, not {scaling}."
    if variable_attrs is not None:
        constant = variable_attrs.isConstant("loss_scaling")
    else:
        constant = scaling == 1.0 and not automatic_loss_scaling
    fixed = _fixed(optimizer, kind)
    groups = [_group_settings(group, kind, fixed, variable_attrs, f"group {number}")
              for number, group in enumerate(optimizer.param_groups)]
    return Reading(kind, fixed, Setting(scaling, constant),
                   _group_settings(optimizer.defaults, kind, fixed, variable_attrs, "defaults"), groups,
                   {id(parameter): number for number, group in enumerate(optimizer.param_groups)
                    for parameter in group["params"]})


# Attributes of every optimizer of torch, which are no settings.
_OF_TORCH = frozenset({"defaults", "state", "param_groups", "variable_attrs", "ipu_state_is_dirty",
                       "host_state_is_dirty"})


class AttributeWatch:
    """Notices attributes that appear after the first reading: they have no effect, which is said once."""

    def __init__(self, say):
        """`say` takes a text: a warning, or less where the checks are relaxed."""
        self._say = say
        self._known = None
        self._said = set()

    @staticmethod
    def _own(optimizer):
        # Learning-rate schedulers wrap methods of the object: what can be called is no setting.
        return [name for name, value in vars(optimizer).items()
                if not name.startswith("_") and name not in _OF_TORCH and not callable(value)]

    @staticmethod
    def _of_groups(optimizer):
        yield "default group variable", list(optimizer.defaults)
        for number, group in enumerate(optimizer.param_groups):
            yield f"group {number} attribute", [name for name in group if name not in ("params", "param_names")]

    def look(self, optimizer, kind):
        """Remembers the attributes at the first call, later says which are new."""
        own, of_groups = self._own(optimizer), dict(self._of_groups(optimizer))
        if self._known is None:
            self._known = set(own), {name for names in of_groups.values() for name in names}
        self._compare("optimizer attribute", own, self._known[0], kind)
        for where, names in of_groups.items():
            self._compare(where, names, self._known[1], kind)

    def _compare(self, where, names, known, kind):
        fresh = [name for name in names if name not in known and (where, name) not in self._said]
        if fresh:
            self._said |= {(where, name) for name in fresh}
            self._say(f"Ignoring unexpected {where} in the {kind} optimizer: {fresh}")
