"""What compiling found, kept in the folder of `Options.enableExecutableCaching`: a JSON file per model and arguments."""

import hashlib
import json
import os

from .._logging import logger
from . import devices

_VERSION = 1


def path_of(executor):
    """The file of a compiled executor, or None where caching is off."""
    folder = executor.options._cache_path
    if folder is None:
        return None
    return os.path.join(str(folder), f"{_key(executor)}.poptorch.json")


def _key(executor):
    """A digest of all that the machine's model depends on: the module, shapes, options, the machine."""
    parameters = [(name, list(value.shape), str(value.dtype)) for name, value in executor._engine.state.parameters().items()]
    arguments = [(list(tensor.shape), str(tensor.dtype)) for tensor in executor._compiled.tensors()]
    options = {name: value for name, value in executor.options.toDict().items() if name not in ("cachePath", "log_dir")}
    facts = (_VERSION, repr(executor._model), parameters, arguments, repr(sorted(options.items(), key=str)),
             repr(executor._plan.blocks), executor._training, devices.machine())
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def read(path):
    """The content of a file, or {} where there is none that can be read."""
    if path is None or not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("version") == _VERSION else {}


def write(path, content):
    """Writes the content beside what others write, and puts it in place at once."""
    if path is None:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.getpid()}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump({"version": _VERSION, **content}, file)
    os.replace(part, path)
    logger.debug("Kept %s", path)
