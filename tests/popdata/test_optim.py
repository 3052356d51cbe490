"""The optimizers' steps, held against torch.optim's or against formulas written out here."""

import copy
import logging
import math
import pickle

import pytest
import torch

from poptorch import optim
from poptorch._errors import Error

STEPS = 7


def parameters(dtype=torch.float32, seed=0):
    """A matrix, a bias and a scalar."""
    drawn = torch.Generator().manual_seed(seed)
    shapes = {"layer.weight": (5, 3), "layer.bias": (5,), "scale": ()}
    return {name: torch.nn.Parameter(torch.randn(shape, generator=drawn).to(dtype)) for name, shape in shapes.items()}


def gradients(step, like):
    drawn = torch.Generator().manual_seed(100 + step)
    return {name: torch.randn(value.shape, generator=drawn).to(value.dtype) for name, value in like.items()}


def copies(of):
    return {name: torch.nn.Parameter(value.detach().clone()) for name, value in of.items()}


def run_torch(base, settings, weights, steps=STEPS, groups=None):
    """The parameters after some steps of an optimizer of torch."""
    optimizer = base(groups(weights) if groups else list(weights.values()), **settings)
    for step in range(steps):
        for name, gradient in gradients(step, weights).items():
            weights[name].grad = gradient
        optimizer.step()
    return weights


def run_own(optimizer, weights, steps=STEPS):
    update = optim.make_update(optimizer, weights)
    for step in range(steps):
        update.step(gradients(step, weights))
    return update


def largest_difference(left, right):
    return max((left[name] - right[name]).abs().max().item() for name in left)


TORCH_SETTINGS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.02}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.03, "betas": (0.7, 0.9), "weight_decay": 0.3}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
]


@pytest.mark.parametrize("name, settings", TORCH_SETTINGS)
@pytest.mark.parametrize("from_torch", [False, True])
def test_step_has_the_bits_of_torch(name, settings, from_torch):
    expected = run_torch(getattr(torch.optim, name), settings, parameters())
    weights = parameters()
    run_own(getattr(torch.optim if from_torch else optim, name)(weights.values(), **settings), weights)
    for key in weights:
        assert torch.equal(weights[key], expected[key]), key


@pytest.mark.parametrize("name, settings", TORCH_SETTINGS)
def test_negative_control_a_setting_off_by_a_thousandth_is_seen(name, settings):
    expected = run_torch(getattr(torch.optim, name), settings, parameters())
    weights = parameters()
    default = {"SGD": 0.1, "Adam": 1e-3, "AdamW": 1e-3, "RMSprop": 1e-2}[name]
    run_own(getattr(optim, name)(weights.values(), **settings | {"lr": settings.get("lr", default) * 1.001}), weights)
    assert largest_difference(weights, expected) > 1e-7


def test_gradients_are_left_as_they_were():
    weights = parameters()
    update = optim.make_update(optim.AdamW(weights.values(), weight_decay=0.1, max_grad_norm=0.1), weights)
    given = gradients(0, weights)
    before = {name: value.clone() for name, value in given.items()}
    update.step(given)
    assert all(torch.equal(given[name], before[name]) for name in given)


@pytest.mark.parametrize("combined", [False, True])
def test_sgd_dampens_the_first_gradient_too(combined):
    weights = parameters()
    start = copies(weights)
    optimizer = optim.SGD(weights.values(), lr=0.5, momentum=0.9, dampening=0.25, use_combined_accum=combined)
    run_own(optimizer, weights, 2)
    for name in weights:
        first, second = (gradients(step, weights)[name] for step in (0, 1))
        velocity = 0.75 * first
        expected = start[name] - 0.5 * velocity - 0.5 * (0.9 * velocity + 0.75 * second)
        torch.testing.assert_close(weights[name].data, expected.data)


@pytest.mark.parametrize("scale", [1.0, 128.0, 3.0])
def test_combined_velocity_is_kept_scaled_and_acts_unscaled(scale):
    plain, scaled = parameters(), parameters()
    run_own(optim.SGD(plain.values(), lr=0.1, momentum=0.9), plain)
    update = run_own(optim.SGD(scaled.values(), lr=0.1, momentum=0.9, use_combined_accum=True, velocity_scaling=scale,
                               loss_scaling=16.0), scaled)
    assert largest_difference(plain, scaled) < 1e-5
    kept = update.state_dict()["ipu_state"]["Accl___layer.bias"]
    again = parameters()
    velocity = run_own(optim.SGD(again.values(), lr=0.1, momentum=0.9), again).state_dict()["ipu_state"]["Accl___layer.bias"]
    torch.testing.assert_close(kept, velocity * scale)


def lamb_by_hand(weights, settings, steps=STEPS, corrected=True):
    rate, (beta1, beta2) = settings["lr"], settings["betas"]
    moments = {name: [torch.zeros_like(value.data).double() for _ in range(2)] for name, value in weights.items()}
    values = {name: value.data.double() for name, value in weights.items()}
    for step in range(steps):
        for name, gradient in gradients(step, weights).items():
            first, second = moments[name]
            first.copy_(beta1 * first + (1 - beta1) * gradient)
            second.copy_(beta2 * second + (1 - beta2) * gradient.double() ** 2)
            one, two = (1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)) if corrected else (1, 1)
            change = first / one / ((second / two).sqrt() + settings["eps"]) + settings["weight_decay"] * values[name]
            trust = min(values[name].norm().item(), settings["max_weight_norm"]) / change.norm()
            values[name] = values[name] - rate * trust * change
    return {name: value.float() for name, value in values.items()}


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("most", [65500.0, 0.5])
def test_lamb_follows_its_formula_vectors_too(corrected, most):
    settings = {"lr": 0.02, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.1, "max_weight_norm": most}
    weights = parameters()
    expected = lamb_by_hand(weights, settings, corrected=corrected)
    other = lamb_by_hand(weights, settings, corrected=not corrected)
    run_own(optim.LAMB(weights.values(), bias_correction=corrected, **settings), weights)
    assert largest_difference(weights, expected) < 1e-5
    assert largest_difference(weights, other) > 1e-4, "the correction of the bias makes no difference"


def test_lamb_takes_a_plain_step_from_zero_and_has_a_step_on_the_host():
    weights = {"zero": torch.nn.Parameter(torch.zeros(3))}
    optim.make_update(optim.LAMB(weights.values(), lr=0.1), weights).step({"zero": torch.tensor([1.0, -2.0, 4.0])})
    torch.testing.assert_close(weights["zero"].data, torch.tensor([-0.1, 0.1, -0.1]))
    here, there = parameters(), parameters()
    run_own(optim.LAMB(here.values()), here)
    run_torch(optim.LAMB, {}, there)
    assert largest_difference(here, there) == 0


def test_rmsprop_of_tensorflow_by_its_formula():
    weights = {"w": torch.nn.Parameter(torch.tensor([1.0, -2.0]))}
    given = torch.tensor([0.5, 3.0])
    settings = {"lr": 0.1, "alpha": 0.9, "eps": 0.01, "momentum": 0.5}
    update = optim.make_update(optim.RMSprop(weights.values(), use_tf_variant=True, **settings), weights)
    square, buffer, value = torch.ones(2), torch.zeros(2), weights["w"].data.clone()
    for _ in range(3):
        update.step({"w": given})
        square = 0.9 * square + 0.1 * given ** 2
        buffer = 0.5 * buffer + 0.1 * given / (square + 0.01).sqrt()
        value = value - buffer
    torch.testing.assert_close(weights["w"].data, value)


def test_adamw_without_correction_is_the_same_and_said(caplog):
    caplog.set_level(logging.WARNING, "poptorch::python")
    logging.getLogger("poptorch::python").propagate = True
    here, there = parameters(), parameters()
    run_own(optim.AdamW(here.values(), bias_correction=False), here)
    run_own(optim.AdamW(there.values()), there)
    assert largest_difference(here, there) == 0
    assert "bias_correction=False" in caplog.text


# -- precision --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, slot", [("Adam", "Accl1"), ("AdamW", "Accl2"), ("LAMB", "Accl1"), ("RMSprop", "Accl1")])
def test_half_states_are_rounded_after_each_step(name, slot):
    kind = getattr(optim, name)
    types = {"first_order_momentum_accum_type": torch.float16, "second_order_momentum_accum_type": torch.float16}
    weights, exact = parameters(), parameters()
    update = run_own(kind(weights.values(), lr=0.01, **types), weights)
    run_own(kind(exact.values(), lr=0.01), exact)
    kept = update.state_dict()["ipu_state"][f"{slot}___layer.weight"]
    assert kept.dtype == torch.float16
    difference = largest_difference(weights, exact)
    assert 0 < difference < 0.01


def test_half_moment_by_its_formula():
    weights = {"w": torch.nn.Parameter(torch.zeros(1))}
    update = optim.make_update(optim.Adam(weights.values(), first_order_momentum_accum_type=torch.float16), weights)
    moment = torch.zeros(1)
    for value in (0.3, 0.7, 0.11):
        update.step({"w": torch.tensor([value])})
        moment = (moment.float().lerp(torch.tensor([value]), 0.1)).half()
    assert torch.equal(update.state_dict()["ipu_state"]["Accl1___w"], moment)


def test_half_velocities_are_kept_times_the_loss_scaling():
    """A velocity of 2^-26 is below half precision's least number; times 1024 it is not."""
    tiny = {"w": torch.full((2,), 2.0 ** -26)}

    def moved(loss_scaling):
        weights = {"w": torch.nn.Parameter(torch.zeros(2))}
        update = optim.make_update(optim.SGD(weights.values(), lr=1.0, momentum=0.5, loss_scaling=loss_scaling,
                                             velocity_accum_type=torch.float16), weights)
        update.step(tiny)
        update.step(tiny)
        return weights["w"][0].item()

    assert moved(1024.0) == -(2.0 ** -26) * 2.5
    assert moved(1.0) == -(2.0 ** -26) * 2


def test_half_velocities_follow_the_loss_scaling():
    weights = {"w": torch.nn.Parameter(torch.zeros(1))}
    types = {"velocity_accum_type": torch.float16, "momentum": 0.5, "lr": 1.0}
    update = optim.make_update(optim.SGD(weights.values(), loss_scaling=1024.0, **types), weights)
    update.step({"w": torch.ones(1)})
    update.adopt(optim.SGD(weights.values(), loss_scaling=16.0, **types))
    update.step({"w": torch.zeros(1)})
    assert weights["w"].item() == -1.5


@pytest.mark.parametrize("name", ["SGD", "AdamW", "LAMB"])
def test_half_parameters_are_computed_in_float32_and_rounded(name):
    weights = parameters(torch.float16)
    exact = {key: torch.nn.Parameter(value.detach().float()) for key, value in weights.items()}
    given = gradients(0, weights)
    for kept in (weights, exact):
        optim.make_update(getattr(optim, name)(kept.values(), lr=0.01), kept).step(given)
    for key in weights:
        assert weights[key].dtype == torch.float16
        assert torch.equal(weights[key].data, exact[key].data.half())


# -- groups, clipping, scaling ----------------------------------------------------------------------------------------

def test_groups_have_their_own_settings():
    def groups(weights):
        return [{"params": [weights["layer.weight"]], "lr": 0.5, "weight_decay": 0.2, "momentum": 0.5},
                {"params": [weights["layer.bias"]]}]

    expected, weights = parameters(), parameters()
    run_torch(torch.optim.SGD, {"lr": 0.1}, expected, groups=groups)
    run_own(optim.SGD(groups(weights), lr=0.1), weights)
    assert largest_difference(weights, expected) == 0
    assert torch.equal(weights["scale"], parameters()["scale"]), "a parameter in no group was trained"


def test_all_gradients_are_clipped_together():
    expected, weights = parameters(), parameters()
    optimizer = torch.optim.AdamW(expected.values(), lr=0.1)
    update = optim.make_update(optim.AdamW(weights.values(), lr=0.1, max_grad_norm=0.5), weights)
    for step in range(STEPS):
        drawn = gradients(step, weights)
        length = math.sqrt(sum(value.square().sum().item() for value in drawn.values()))
        assert length > 0.5
        for name, value in drawn.items():
            expected[name].grad = value * (0.5 / length)
        optimizer.step()
        update.step(drawn)
    assert largest_difference(weights, expected) < 1e-6


def test_short_gradients_are_not_lengthened():
    clipped, plain = parameters(), parameters()
    run_own(optim.SGD(clipped.values(), lr=0.1, max_grad_norm=1e6), clipped)
    run_own(optim.SGD(plain.values(), lr=0.1), plain)
    assert largest_difference(clipped, plain) == 0


def test_what_executors_read():
    weights = parameters()
    update = optim.make_update(optim.Adam(weights.values(), loss_scaling=64.0, accum_type=torch.float16), weights)
    assert update.loss_scaling == 64.0 and update.accumulation_type == torch.float16
    assert update.trained == ["layer.weight", "layer.bias", "scale"]
    plain = optim.make_update(torch.optim.Adam(weights.values()), weights)
    assert plain.loss_scaling == 1.0 and plain.accumulation_type == torch.float32


# -- variable and constant --------------------------------------------------------------------------------------------

def test_what_was_given_is_variable():
    optimizer = optim.AdamW(parameters().values(), betas=(0.9, 0.99))
    attrs = optimizer.variable_attrs
    assert not attrs.isConstant("betas") and not attrs.isConstant("lr") and attrs.isConstant("weight_decay")
    attrs.markAsConstant("betas")
    attrs.markAsVariable("loss_scaling")
    assert attrs.isConstant("betas") and not attrs.isConstant("loss_scaling")
    with pytest.raises(AssertionError, match="no attribute velocity"):
        attrs.markAsConstant("velocity")
    with pytest.raises(AssertionError, match="no attribute accum_type"):
        attrs.markAsVariable("accum_type")


def test_rates_are_read_when_the_optimizer_is_set():
    weights = parameters()
    optimizer = torch.optim.SGD(weights.values(), lr=0.0)
    update = optim.make_update(optimizer, weights)
    start = copies(weights)
    optimizer.param_groups[0]["lr"] = 1.0
    update.step(gradients(0, weights))
    assert largest_difference(weights, start) == 0, "the rate was read before it was set"
    update.adopt(optimizer)
    update.step(gradients(0, weights))
    assert largest_difference(weights, start) > 0.1


@pytest.mark.parametrize("change", [{"momentum": 0.5}, {"weight_decay": 0.1}])
def test_a_changed_constant_is_refused(change):
    weights = parameters()
    update = optim.make_update(optim.SGD(weights.values(), lr=0.1), weights)
    with pytest.raises(Error, match="constant 0"):
        update.adopt(optim.SGD(weights.values(), lr=0.1, **change))


def test_a_variable_may_change():
    weights = parameters()
    update = optim.make_update(optim.SGD(weights.values(), lr=0.1, momentum=0.0, loss_scaling=1.0), weights)
    update.adopt(optim.SGD(weights.values(), lr=0.2, momentum=0.5, loss_scaling=8.0))
    assert update.loss_scaling == 8.0


def test_refusals():
    weights = parameters()
    update = optim.make_update(optim.Adam(weights.values()), weights)
    with pytest.raises(Error, match="compiled with Adam"):
        update.adopt(optim.SGD(weights.values(), lr=0.1))
    with pytest.raises(ValueError, match="is already compiled"):
        update.adopt(optim.Adam(weights.values(), accum_type=torch.float16))
    with pytest.raises(Error, match="scale was trained"):
        update.adopt(optim.Adam([weights["layer.weight"], weights["layer.bias"]]))
    with pytest.raises(AssertionError, match="Unsupported optimizer Adagrad"):
        optim.make_update(torch.optim.Adagrad(weights.values()), weights)
    for word in ("amsgrad", "maximize"):
        with pytest.raises(ValueError, match=word):
            optim.make_update(optim.AdamW(weights.values(), **{word: True}), weights)
    with pytest.raises(AssertionError, match="accumulators are"):
        optim.Adam(weights.values(), accum_type=torch.bfloat16)
    with pytest.raises(ValueError, match="NaN"):
        optim.make_update(optim.SGD(weights.values(), lr=1.0, max_grad_norm=float("nan")), weights)
    with pytest.raises(AssertionError, match="same 'centered'"):
        mixed = optim.RMSprop([{"params": [weights["scale"]], "centered": True}, {"params": [weights["layer.bias"]]}])
        optim.make_update(mixed, weights)


def test_late_attributes_are_said_once_and_subclasses_too(caplog):
    logging.getLogger("poptorch::python").propagate = True
    caplog.set_level(logging.WARNING, "poptorch::python")
    weights = parameters()
    optimizer = optim.SGD(weights.values(), lr=0.1)
    update = optim.make_update(optimizer, weights)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.speed = 3
    update.adopt(optimizer)
    update.adopt(optimizer)
    assert caplog.text.count("unexpected optimizer attribute") == 1 and "'speed'" in caplog.text
    assert caplog.text.count("unexpected group 0 attribute") == 1 and "initial_lr" in caplog.text

    class Mine(torch.optim.SGD):
        pass

    assert "does not run Python" not in caplog.text
    optim.make_update(Mine(weights.values(), lr=0.1), weights)
    optim.check(Mine(weights.values(), lr=0.1))
    assert caplog.text.count("does not run Python") == 1


# -- states -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"])
@pytest.mark.parametrize("way", ["state_dict", "pickle", "deepcopy"])
def test_training_goes_on_from_a_state(name, way, tmp_path):
    settings = {"lr": 0.05} | ({"momentum": 0.9} if name in ("SGD", "RMSprop") else {})
    whole = parameters()
    run_own(getattr(optim, name)(whole.values(), **settings), whole, 4)

    weights = parameters()
    first = getattr(optim, name)(weights.values(), **settings)
    before = optim.make_update(first, weights)
    for step in (0, 1):
        before.step(gradients(step, weights))
    if way == "state_dict":
        torch.save(first.state_dict(), tmp_path / "state.pt")
        second = getattr(optim, name)(weights.values(), **settings)
        second.load_state_dict(torch.load(tmp_path / "state.pt"))
    else:
        second = pickle.loads(pickle.dumps(first)) if way == "pickle" else copy.deepcopy(first)
        second.param_groups[0]["params"] = list(weights.values())
    after = optim.make_update(second, weights)
    for step in (2, 3):
        after.step(gradients(step, weights))
    assert largest_difference(whole, weights) == 0


def test_names_and_values_of_a_state():
    weights = parameters()
    optimizer = optim.Adam(weights.values(), lr=0.25, weight_decay=0.125, loss_scaling=2.0)
    assert optimizer.state_dict()["ipu_state"] is None and optimizer.state_dict()["ipu_param"] is None
    update = optim.make_update(optimizer, weights)
    state = optimizer.state_dict()
    assert sorted(state) == ["ipu_param", "ipu_state", "param_groups", "state"]
    assert set(state["ipu_state"]) == {f"{slot}___{name}" for slot in ("Accl1", "Accl2", "Step") for name in weights}
    assert state["ipu_param"]["learningRate___specific___layer.bias"] == 0.25
    assert state["ipu_param"]["weightDecay___specific___scale"] == 0.125
    assert state["ipu_param"]["lossScaling_FLOAT"] == 2.0
    assert not any("beta1" in name for name in state["ipu_param"]), "constants are no parameters of the state"
    update.step(gradients(0, weights))
    assert optimizer.state_dict()["ipu_state"]["Step___scale"] == 1.0
    assert state["ipu_state"]["Step___scale"] == 0.0, "an earlier state is a copy"


def test_products_of_sgd():
    weights = parameters()
    optimizer = optim.SGD(weights.values(), lr=0.05, weight_decay=0.025, loss_scaling=0.75)
    optim.make_update(optimizer, weights)
    shown = optimizer.state_dict()["ipu_param"]
    torch.testing.assert_close(shown["scaledLearningRate0___specific___scale"], torch.tensor(0.05 / 0.75))
    torch.testing.assert_close(shown["weightDecayScaleFactor0___specific___scale"], torch.tensor(1 - 0.05 * 0.025))


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9, "dampening": 0.1},
                                      {"momentum": 0.9, "use_combined_accum": True, "velocity_scaling": 4.0}])
def test_settings_of_a_loaded_state_act_until_the_optimizer_is_set(settings):
    """Rate and decay of another SGD, loaded, make the steps of that other one."""
    everything = {"lr": 0.1, "weight_decay": 0.3, "loss_scaling": 2.0, "dampening": 0.1} | settings
    other = parameters()
    giver = optim.SGD(other.values(), **everything)
    giving = optim.make_update(giver, other)
    weights = parameters()
    changed = {"lr": 0.7, "weight_decay": 0.01} | ({"momentum": 0.2} if "momentum" in settings else {})
    taker = optim.SGD(weights.values(), **everything | changed)
    taking = optim.make_update(taker, weights)
    taker.load_state_dict(giver.state_dict())
    loaded = taker.state_dict()["ipu_param"]
    for step in (0, 1):
        giving.step(gradients(step, weights))
        taking.step(gradients(step, weights))
    assert largest_difference(weights, other) < 1e-6
    shown = taker.state_dict()["ipu_param"]
    assert all(torch.equal(shown[name], loaded[name]) for name in loaded)
    taker.param_groups[0]["lr"] = 0.0
    taking.adopt(taker)
    before = copies(weights)
    taking.step(gradients(1, weights))
    assert largest_difference(weights, before) == 0


def test_a_new_optimizer_goes_on_or_brings_its_state():
    weights = parameters()
    update = optim.make_update(optim.Adam(weights.values(), lr=0.1), weights)
    update.step(gradients(0, weights))
    fresh = optim.Adam(weights.values(), lr=0.2)
    update.adopt(fresh)
    assert fresh.state_dict()["ipu_state"]["Step___scale"] == 1.0
    stored = fresh.state_dict()
    stored["ipu_state"]["Step___scale"] = torch.tensor(10.0)
    third = optim.Adam(weights.values(), lr=0.3)
    third.load_state_dict(stored)
    third.param_groups[0]["lr"] = 0.3
    update.adopt(third)
    update.step(gradients(1, weights))
    assert third.state_dict()["ipu_state"]["Step___scale"] == 11.0
    assert third.state_dict()["ipu_param"]["learningRate___specific___scale"] == torch.tensor(0.3)
    assert fresh.state_dict()["ipu_state"]["Step___scale"] == 1.0, "an optimizer that was replaced keeps its state"


def test_states_that_cannot_be_loaded():
    weights = parameters()
    optimizer = optim.Adam(weights.values())
    with pytest.raises(RuntimeError, match="is empty"):
        optimizer.load_state_dict({})
    with pytest.raises(RuntimeError, match="Only IPU optimizer states can be loaded onto the IPU."):
        optimizer.load_state_dict(torch.optim.Adam(weights.values()).state_dict())
    update = optim.make_update(optimizer, weights)
    state = optimizer.state_dict()
    state["ipu_state"]["Accl1___scale"] = torch.zeros(3)
    optimizer.load_state_dict(state)
    with pytest.raises(Error, match="shape \\(3,\\)"):
        update.step(gradients(0, weights))
