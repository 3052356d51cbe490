"""Compiled models in files: version, arguments, options, and where asked for the module, the optimizer, the random state.

A file is what `torch.save` writes, of a dictionary with the key `superstep_poptorch`. It holds pickled Python objects: load
only files that you trust.
"""

import os

import torch

from .._errors import Error
from .._logging import logger
from ..enums import ConnectionType
from .arguments import Arguments

_KEY = "superstep_poptorch"
_VERSION = 1


def save(executor, filename, export_model, save_rng_state):
    """Writes the executor's state. A folder as `filename`: `model.poptorch` in it; folders above are made."""
    filename = str(filename)
    folder = os.path.dirname(filename)
    if folder:
        os.makedirs(folder, exist_ok=True)
    if os.path.isdir(filename):
        logger.warning("save(): %s is a directory, saving model to %s", filename, os.path.join(filename, "model.poptorch"))
        filename = os.path.join(filename, "model.poptorch")
    content = {_KEY: _VERSION, "options": executor.options.clone(), "training": executor._training,
               "positional": _empty(executor._compiled.positional), "names": executor._compiled.names,
               "named": _empty(executor._compiled.named)}
    if export_model:
        content["model"] = executor.model
        content["optimizer"] = executor._optimizer
        content["optimizer_state"] = _optimizer_state(executor._optimizer)
    if save_rng_state:
        content["rng_state"] = executor.rng_state
    with open(filename + ".part", "wb") as file:
        torch.save(content, file, pickle_protocol=4)
    os.replace(filename + ".part", filename)


def _optimizer_state(optimizer):
    return None if optimizer is None else optimizer.state_dict()


def _empty(value):
    """The structure with tensors of zeros, so that a file does not hold the inputs of the first call."""
    from .._structures import mapped
    return mapped(value, torch.zeros_like)


class Saved:
    """What a file holds."""

    def __init__(self, content, filename):
        self._content = content
        self._filename = filename

    def arguments(self):
        """The arguments that the model was compiled for."""
        return Arguments(self._content["positional"], self._content["names"], self._content["named"])

    def __getattr__(self, name):
        return self._content.get(name)


def read(filename):
    """What the file holds. Error: no such file, no file of this package, another version."""
    filename = str(filename)
    if os.path.isdir(filename):
        filename = os.path.join(filename, "model.poptorch")
    if not os.path.exists(filename):
        raise Error(f"There is no file {filename}")
    try:
        content = torch.load(filename, weights_only=False)
    except Exception as error:
        raise Error(f"Invalid file {filename}: it is not one that save() wrote ({error})") from error
    if not isinstance(content, dict) or _KEY not in content:
        raise Error(f"Invalid file {filename}: it is not one that save() wrote")
    if content[_KEY] != _VERSION:
        raise Error(f"Invalid file {filename}: its version is {content[_KEY]}, this package reads version {_VERSION}")
    return Saved(content, filename)


def load(filename, edit_opts_fn=None):
    """The executor that `save` or `compileAndExport` wrote, compiled. `edit_opts_fn(options)` may change its options first.

    AssertionError: the file was written with export_model=False. Error: see `read`.
    """
    from .._executor import inferenceModel, trainingModel
    saved = read(filename)
    assert saved.model is not None, (
        f"{filename} is a valid PopTorch file but was created with 'export_model=False' which means you need to re-create the "
        "PopTorch model using poptorch.inferenceModel or poptorch.trainingModel then call "
        f"poptorch_model.loadExecutable(\"{filename}\").")
    options = saved.options
    options._unfreeze()
    options.deleteIfExists("ipu_version")
    if options.connection_type == ConnectionType.Never:
        options.connectionType(ConnectionType.Always)
    if edit_opts_fn:
        edit_opts_fn(options)
    if saved.optimizer is not None and saved.optimizer_state is not None and _has_state(saved.optimizer_state):
        saved.optimizer.load_state_dict(saved.optimizer_state)
    executor = trainingModel(saved.model, options, saved.optimizer) if saved.training else inferenceModel(saved.model, options)
    executor._pending_rng = saved.rng_state
    executor.loadExecutable(filename)
    return executor


def _has_state(state):
    return not ("ipu_state" in state and state["ipu_state"] is None)
