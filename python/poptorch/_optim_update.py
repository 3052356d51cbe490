"""The optimizer's step: reads an optimizer of PopTorch or torch, keeps its states, applies reduced gradients.

An executor makes an `Update` when it compiles (`make_update`), lets it `adopt` the optimizer again at `setOptimizer`,
and calls `step` with the gradients of each optimizer step. The optimizer's own Python code is never run.
"""

import weakref

import torch

from . import _optim_attributes as attributes
from . import _optim_names as names
from . import _optim_rules as rules
from ._errors import Error
from ._logging import logger
from ._optim_state import StateOfUpdate

_STEP = "Step"

# Parameters that one pass of a rule takes together. Adam touches five arrays of 4 bytes each per element; 2^15 elements
# are 640 KB, within the second-level cache of the processors of today (1 MB). Measured: AdamW of 120 arrays, 21 ms at once, 11 so (torch's own: 10 to 11).
_ELEMENTS_AT_ONCE = 1 << 15


def make_update(optimizer, parameters, relax=False, automatic_loss_scaling=False, attached=True):
    """An `Update` of these parameters.

    Args:
        optimizer: SGD, Adam, AdamW, RMSprop of torch.optim or PopTorch's, or PopTorch's LAMB.
        parameters: {name: parameter}; names are those of the model.
        relax: attributes that appear later in the optimizer are not warned of.
        automatic_loss_scaling: the factor of the loss counts as variable.
        attached: False for a model that is only compiled: the optimizer does not show this update's state.

    Raises:
        AssertionError: another class of optimizer, or a setting that is no number.
        ValueError: amsgrad, maximize, types that accumulators cannot have.
    """
    return Update(optimizer, parameters, relax, automatic_loss_scaling, attached)


def _number(value):
    """As the stream of a C++ program writes it: six digits, no zeros behind."""
    return f"{float(value):g}"


class Update:
    """States and settings of an optimizer for the parameters of one compiled model.

    Attributes:
        kind: SGD, Adam, AdamW, RMSprop or LAMB.
        loss_scaling: what the loss is multiplied by before gradients are taken; `step` takes gradients without it.
        accumulation_type: the type in which gradients are summed, torch.float32 or torch.float16.
        version: counts changes of states and settings.
    """

    def __init__(self, optimizer, parameters, relax, automatic_loss_scaling, attached):
        self._parameters = dict(parameters)
        self._automatic = automatic_loss_scaling
        self._watch = attributes.AttributeWatch(logger.debug if relax else logger.warning)
        self._reading = None
        self._optimizer = None
        self._settings = {}
        self._loaded = {}
        self._states = {}
        self._buckets = None
        self.version = 0
        self._adopt(optimizer, attached)

    # -- what executors read ------------------------------------------------------------------------------------------

    @property
    def loss_scaling(self):
        self._take_what_was_loaded()
        return self._scaling

    @property
    def accumulation_type(self):
        return self._reading.fixed["accum_type"]

    @property
    def trained(self):
        """Names of the parameters that belong to a group of the optimizer, in the model's order."""
        return list(self._settings)

    # -- reading an optimizer -----------------------------------------------------------------------------------------

    def adopt(self, optimizer):
        """Reads the settings that the optimizer has now; a new optimizer that has a state brings it along.

        A new optimizer without a state goes on with the state that is here, as on the chip. Raises Error where a
        constant setting, the kind of optimizer or the set of trained parameters has changed; ValueError where a type of
        accumulators has.
        """
        self._adopt(optimizer, True)

    def _adopt(self, optimizer, attached):
        reading = attributes.read(optimizer, self._automatic)
        attributes.check(optimizer)
        if reading.kind == "AdamW" and not reading.fixed["bias_correction"] and self._reading is None:
            logger.warning("AdamW corrects the bias with bias_correction=False too, as PopTorch's last version did.")
        if self._reading is not None:
            self._refuse_changes(reading)
        self._watch.look(optimizer, reading.kind)
        if self._reading is None:
            self._set(reading)
        if attached:
            self._bind(optimizer)
        if self._reading.values() != reading.values() or self._loaded:
            self._set(reading)

    def _bind(self, optimizer):
        """The optimizer shows this state from now on. What it brings along is taken over before its settings are read."""
        previous = self._optimizer() if self._optimizer else None
        if previous is not optimizer:
            if isinstance(previous, StateOfUpdate):
                previous.release(self)
            self._optimizer = weakref.ref(optimizer)
            if isinstance(optimizer, StateOfUpdate):
                optimizer.bind(self)
        self._take_what_was_loaded()

    def _refuse_changes(self, new):
        old = self._reading
        if old.kind != new.kind:
            raise Error(f"The model was compiled with {old.kind} and cannot be trained with {new.kind}: "
                        "destroy() it and compile it anew.")
        for name, value in old.fixed.items():
            if new.fixed[name] != value:
                raise ValueError(f"The optimizer's {name} was {value} and is {new.fixed[name]} now, but the executable "
                                 "is already compiled: destroy() it first.")
        self._refuse_constant("loss_scaling", old.loss_scaling, new.loss_scaling)
        for name, parameter in self._parameters.items():
            before, after = old.group_of.get(id(parameter)), new.group_of.get(id(parameter))
            if (before is None) != (after is None):
                raise Error(f"The parameter {name} was {'trained' if after is None else 'not trained'} when the model was "
                            "compiled: the new optimizer must have the same parameters.")
            if before is not None:
                for setting, value in old.groups[before].items():
                    self._refuse_constant(f"{setting} of {name}", value, new.groups[after][setting])

    @staticmethod
    def _refuse_constant(what, old, new):
        if old.constant and old.value != new.value:
            raise Error(f"The optimizer's {what} was the constant {old.value} when the model was compiled and is "
                        f"{new.value} now: mark it first (variable_attrs.markAsVariable), or give it to the constructor.")

    def _set(self, reading):
        old_scaling = getattr(self, "_scaling", None)
        self._reading = reading
        self._scaling = reading.loss_scaling.value
        self._loaded = {}
        self._settings = {}
        for name, parameter in self._parameters.items():
            group = reading.group_of.get(id(parameter))
            if group is not None:
                self._settings[name] = self._settings_of(reading.groups[group])
        self._with_momentum = self._has_momentum(reading)
        self._rescale(old_scaling)
        self._prepare_states()
        self._buckets = None
        self.version += 1
        self._say()

    def _settings_of(self, group):
        settings = {name: float(setting.value) for name, setting in group.items()}
        if self._reading.kind == "SGD" and "velocityScaling" not in settings:
            settings["velocityScaling"] = self._separate_scale()
        return settings

    def _separate_scale(self):
        """Of half velocities the scale of the loss, which keeps small ones; in float32 a scale would change nothing."""
        return float(self._scaling) if self._reading.fixed["velocity_accum_type"] == torch.float16 else 1.0

    @staticmethod
    def _has_momentum(reading):
        every = [group["momentum"] for group in reading.groups if "momentum" in group]
        return any(setting.value != 0 or not setting.constant for setting in every)

    def _rescale(self, old_scaling):
        """Half velocities are kept times the loss scaling: when that changes they follow."""
        fixed = self._reading.fixed
        if (self._reading.kind == "SGD" and not fixed["use_combined_accum"] and old_scaling not in (None, self._scaling)
                and fixed["velocity_accum_type"] == torch.float16):
            for state in self._states.values():
                if "Accl" in state:
                    state["Accl"] = (state["Accl"].float() * (self._scaling / old_scaling)).half()

    def _prepare_states(self):
        reading = self._reading
        for name, settings in self._settings.items():
            state = self._states.setdefault(name, {})
            for slot, (kept, at) in rules.slots(reading.kind, reading.fixed, settings, self._with_momentum).items():
                if slot not in state:
                    state[slot] = torch.full_like(self._parameters[name], at, dtype=kept, requires_grad=False,
                                                  memory_format=torch.preserve_format)
            if reading.kind in ("Adam", "AdamW", "LAMB"):
                state.setdefault(_STEP, 0.0)

    def _say(self):
        """The settings, one line for the whole and one for each group (level DEBUG)."""
        reading = self._reading
        fixed = reading.fixed
        variant = ("1" if fixed["use_combined_accum"] else "2") if reading.kind == "SGD" else ""
        scaling = {} if reading.kind != "SGD" or fixed["use_combined_accum"] else {"velocityScaling": reading.loss_scaling}
        first = fixed["velocity_accum_type" if reading.kind == "SGD" else "first_order_momentum_accum_type"]
        types = ", ".join(f"{name}={str(kept).removeprefix('torch.')}" for name, kept in (
            ("accumType", fixed["accum_type"]), ("firstOrderMomentumAccumType", first),
            ("secondOrderMomentumAccumType", fixed["second_order_momentum_accum_type"])))

        def line(settings):
            return ", ".join(f"{name}={_number(setting.value)}{' (const)' if setting.constant else ''}"
                             for name, setting in settings.items())

        whole = {f"default{name[0].upper()}{name[1:]}": setting for name, setting in (reading.defaults | scaling).items()}
        logger.debug("Updating graph optimizer with %s%s, %s, %s, maxGradNorm=%s", reading.kind, variant,
                     line(whole | {"lossScaling": reading.loss_scaling}), types, _number(fixed["max_grad_norm"]))
        for number, group in enumerate(reading.groups):
            logger.debug("Updating group %d optimizer with %s%s, %s, %s", number, reading.kind, variant,
                         line(group | scaling), types)

    # -- the step -----------------------------------------------------------------------------------------------------

    def step(self, gradients):
        """Changes the parameters in place.

        Args:
            gradients: {name: tensor of the parameter's shape}, reduced over micro-batches and replicas, without the
                loss scaling. Parameters that are missing here or in the optimizer's groups stay as they are. The tensors
                are not changed.
        """
        self._take_what_was_loaded()
        trained = [name for name in self._settings if gradients.get(name) is not None]
        with torch.no_grad():
            clipped = rules.clip([gradients[name].detach() for name in trained], self._reading.fixed["max_grad_norm"])
            ready = dict(zip(trained, clipped))
            for bucket in self._buckets_of(trained):
                self._step_of(bucket, [ready[name] for name in bucket])
        self.version += 1

    def _buckets_of(self, trained):
        """Parameters that share their settings and count of steps, so that one call of the rule serves them."""
        if self._buckets is None or self._buckets[0] != trained:
            found = {}
            for name in trained:
                key = (tuple(self._settings[name].items()), self._states[name].get(_STEP), frozenset(self._states[name]))
                found.setdefault(key, []).append(name)
            self._buckets = trained, [part for names_of_one in found.values() for part in self._parts(names_of_one)]
        return self._buckets[1]

    def _parts(self, bucket):
        """A bucket in parts whose tensors stay in a core's cache through all operations of a rule."""
        part, elements = [], 0
        for name in bucket:
            size = self._parameters[name].numel()
            if part and elements + size > _ELEMENTS_AT_ONCE:
                yield part
                part, elements = [], 0
            part.append(name)
            elements += size
        yield part

    def _step_of(self, bucket, gradients):
        states = [self._states[name] for name in bucket]
        step = states[0].get(_STEP, 0.0) + 1
        parameters = [self._parameters[name].detach() for name in bucket]
        wide = [parameter.float() for parameter in parameters]
        slots = {slot: [state[slot].float() for state in states] for slot in states[0] if slot != _STEP}
        rules.RULES[self._reading.kind](wide, [gradient.float() for gradient in gradients], slots,
                                        self._settings[bucket[0]], self._reading.fixed, step)
        _round_into(parameters, wide)
        for slot, computed in slots.items():
            _round_into([state[slot] for state in states], computed)
        for state in states:
            if _STEP in state:
                state[_STEP] = step

    # -- states -------------------------------------------------------------------------------------------------------

    def state_dict(self):
        """{"ipu_state": {...}, "ipu_param": {...}}: copies of all states and of the settings that may change."""
        self._take_what_was_loaded()
        states = {}
        for name, state in self._states.items():
            for slot, value in state.items():
                states[f"{slot}___{name}"] = torch.tensor(value) if slot == _STEP else value.clone()
        return {"ipu_state": states, "ipu_param": self._shown()}

    def _shown(self):
        reading, found = self._reading, {}
        if not reading.loss_scaling.constant:
            found[names.SCALING] = torch.tensor(float(self._scaling))
        for name, settings in self._settings.items():
            group = reading.groups[reading.group_of[id(self._parameters[name])]]
            constant = {setting for setting, value in group.items() if value.constant}
            for value, number in names.shown(reading.kind, settings, constant, reading.fixed, self._with_momentum,
                                             self._scaling).items():
                found[names.name_of(value, name)] = torch.tensor(float(number))
        return found | {name: value.clone() for name, value in self._loaded.items() if name in found}

    def load_state_dict(self, state):
        """Takes states and settings of `state_dict()`; what is missing there stays.

        Raises Error where a state has another shape than its parameter. Names of other models are warned of.
        """
        strange = [key for key in state["ipu_state"] if not self._load_state(key, state["ipu_state"][key])]
        self._load_settings(state["ipu_param"])
        if strange:
            logger.warning("The optimizer's state has %d tensors that belong to no parameter of this model, such as %s.",
                           len(strange), strange[0])
        self._buckets = None
        self.version += 1

    def _load_state(self, key, value):
        slot, _, name = key.partition("___")
        state = self._states.get(name)
        if state is None or slot not in state:
            return False
        if slot == _STEP:
            state[_STEP] = float(value)
            return True
        if state[slot].shape != value.shape:
            raise Error(f"The optimizer's state {key} has the shape {tuple(value.shape)}, the parameter "
                        f"{tuple(state[slot].shape)}.")
        state[slot].copy_(value)
        return True

    def _load_settings(self, loaded):
        if names.SCALING in loaded:
            self._scaling = float(loaded[names.SCALING])
        by_parameter = {}
        for key, value in loaded.items():
            place = names.split(key)
            if place and place[1] in self._settings:
                by_parameter.setdefault(place[1], {})[place[0]] = float(value)
        for name, values in by_parameter.items():
            now = names.shown(self._reading.kind, self._settings[name], (), self._reading.fixed, self._with_momentum,
                              self._scaling)
            if any(torch.tensor(float(now[value])) != number for value, number in values.items() if value in now):
                self._settings[name] = names.settings_from(self._reading.kind, values, self._settings[name],
                                                           self._reading.fixed, self._with_momentum, self._scaling)
        self._loaded = {key: value.detach().clone().float() for key, value in loaded.items()}

    def _take_what_was_loaded(self):
        """A state that was loaded into the optimizer since the last step comes to act."""
        optimizer = self._optimizer() if self._optimizer else None
        if isinstance(optimizer, StateOfUpdate) and optimizer.bound_to(self) and optimizer.ipu_state_is_dirty:
            optimizer.ipu_state_is_dirty = False
            if optimizer.has_state():
                logger.debug("Writing optimiser state tensors from host to IPU memory.")
                self.load_state_dict(optimizer.kept_state())

    def write_back(self):
        """Lets a state that was loaded into the optimizer act now: for an executor that attaches to its device."""
        self._take_what_was_loaded()

    def read_back(self):
        """Copies the states into the optimizer now: for an executor that detaches from its device or is destroyed."""
        optimizer = self._optimizer() if self._optimizer else None
        if isinstance(optimizer, StateOfUpdate) and optimizer.bound_to(self):
            optimizer.refresh()


def _round_into(kept, computed):
    """Computed values back where they are kept; nothing to do where they were computed in place."""
    for target, value in zip(kept, computed):
        if target.data_ptr() != value.data_ptr() or target.dtype != value.dtype:
            target.copy_(value)
