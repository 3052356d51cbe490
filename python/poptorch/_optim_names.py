"""Hyperparameters as they appear in an optimizer's state (`state_dict()["ipu_param"]`): names, and back to settings.

The compiler that PopTorch used kept one scalar per setting and parameter, `learningRate___specific___PARAMETER`, and of
SGD products of settings: with lr, wd, m, d (dampening), ls (loss scaling), vs (velocity scaling)

| without momentum | with |
|---|---|
| scaledLearningRate0 = lr (1 - d) / ls | scaledLearningRateK = lr / vs |
| weightDecayScaleFactor0 = 1 - lr (1 - d) wd | weightDecayScaleFactorK = (1 - d) wd vs |
| | dampeningScaleFactorK = (1 - d) vs / ls |
| | scaledMomentumK = m |

K is 1 for the combined buffer, 2 for separate ones, whose vs is the loss scaling.
"""

SCALING = "lossScaling_FLOAT"
_SPECIFIC = "___specific___"


def name_of(value, parameter):
    """The name of a parameter's hyperparameter."""
    return f"{value}{_SPECIFIC}{parameter}"


def split(name):
    """(value, parameter) of such a name, or None."""
    value, found, parameter = name.partition(_SPECIFIC)
    return (value, parameter) if found else None


def _sgd_variant(fixed, with_momentum):
    if not with_momentum:
        return "0"
    return "1" if fixed["use_combined_accum"] else "2"


def _shown_of_sgd(settings, fixed, with_momentum, scaling):
    variant = _sgd_variant(fixed, with_momentum)
    rate, decay, kept = settings["learningRate"], settings["weightDecay"], 1 - settings["dampening"]
    if variant == "0":
        return {"scaledLearningRate0": rate * kept / scaling, "weightDecayScaleFactor0": 1 - rate * kept * decay}
    velocity = settings["velocityScaling"] if variant == "1" else scaling
    return {f"scaledLearningRate{variant}": rate / velocity,
            f"weightDecayScaleFactor{variant}": kept * decay * velocity,
            f"dampeningScaleFactor{variant}": kept * velocity / scaling,
            f"scaledMomentum{variant}": settings["momentum"]}


def shown(kind, settings, constant, fixed, with_momentum, scaling):
    """{value: number} of one parameter: its variable settings; of SGD always the products.

    `constant` has the names of the settings that are compiled into the model.
    """
    if kind == "SGD":
        return _shown_of_sgd(settings, fixed, with_momentum, scaling)
    return {name: value for name, value in settings.items() if name not in constant}


def _ratio(numerator, denominator):
    return numerator / denominator if denominator else 0.0


def settings_from(kind, loaded, settings, fixed, with_momentum, scaling):
    """`settings` with what `loaded` ({value: number}) says in their place; products of SGD are taken apart."""
    if kind != "SGD":
        return settings | {name: value for name, value in loaded.items() if name in settings}
    variant = _sgd_variant(fixed, with_momentum)
    values = _shown_of_sgd(settings, fixed, with_momentum, scaling) | loaded
    result = dict(settings)
    if variant == "0":
        kept = 1 - settings["dampening"]
        result["learningRate"] = _ratio(values["scaledLearningRate0"] * scaling, kept)
        result["weightDecay"] = _ratio(1 - values["weightDecayScaleFactor0"], result["learningRate"] * kept)
        return result
    velocity = settings["velocityScaling"] if variant == "1" else scaling
    kept = _ratio(values[f"dampeningScaleFactor{variant}"] * scaling, velocity)
    result["learningRate"] = values[f"scaledLearningRate{variant}"] * velocity
    result["dampening"] = 1 - kept
    result["weightDecay"] = _ratio(values[f"weightDecayScaleFactor{variant}"], kept * velocity)
    result["momentum"] = values[f"scaledMomentum{variant}"]
    return result
