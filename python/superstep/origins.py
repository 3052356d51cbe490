"""Where a model came from, so that it can be made again: what pickles of models and sessions hold."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy

from . import _core
from .errors import BadFile, Error, NotFound

__all__ = ["Origin", "open_origin"]

MODEL_FILES = (".onnx", ".pt2")
_form = 1  # of what is pickled


class Origin:
    """A workload of the zoo with its options, or the bytes of an ONNX file; the folder of a run is one of both."""

    __slots__ = ("what", "settings", "run", "_kept")

    def __init__(self, what: str, settings: Mapping[str, Any], run: str = "", kept: Any = None) -> None:
        self.what = what
        self.settings = dict(settings)
        self.run = run
        self._kept = kept  # the folder of a file that came out of a pickle

    @classmethod
    def of_run(cls, folder: str) -> Origin:
        """Of a run's folder, which is looked at when the model is pickled."""
        return cls("", {}, run=folder)

    def state(self, parameters: Mapping[str, numpy.ndarray]) -> dict[str, Any]:
        """What is pickled: all that it takes to make the model again, elsewhere too."""
        what, settings = self._settled()
        onnx = _onnx_of(what, settings) if what.endswith(MODEL_FILES) else None
        return {"form": _form, "what": os.path.basename(what) if onnx else what, "settings": settings, "onnx": onnx,
                "parameters": dict(parameters)}

    def _settled(self) -> tuple[str, dict[str, Any]]:
        if not self.run:
            return self.what, self.settings
        try:
            config = json.loads((pathlib.Path(self.run) / "config.json").read_text())
        except (OSError, ValueError) as error:
            raise NotFound("the run that the model is of is not there any more", self.run,
                           "keep its folder until the model is pickled") from error
        settings = {"options": config["model_options"], "shapes": config.get("shapes", []), "bounds": config.get("bounds", []),
                    "loss": config.get("loss", ""), "seed": config.get("seed", 1), "train": config.get("train", []),
                    "freeze": config.get("freeze", [])}
        if config["workload"].endswith(MODEL_FILES):
            # The file as the run wrote it: the user's own may have gone. What is trained has its names there, too.
            return str(pathlib.Path(self.run) / "model.onnx"), settings
        return config["workload"], settings


def _onnx_of(what: str, settings: Mapping[str, Any]) -> bytes:
    try:
        onnx = pathlib.Path(what).read_bytes()
    except OSError as error:
        raise NotFound("the model's file is not there any more", what, "keep it until the model is pickled, or give "
                       "write_onnx(FILE) and open that") from error
    # Tensors in files beside it ("location") come along in a file that holds all of them.
    if b"\n\x08location\x12" not in onnx:
        return onnx
    with tempfile.TemporaryDirectory(prefix="superstep-") as folder:
        whole = pathlib.Path(folder) / "model.onnx"
        _core.open_model(what, dict(settings)).write_onnx(str(whole), 0, 0)
        return whole.read_bytes()


def open_origin(state: Mapping[str, Any]) -> tuple[Any, Origin]:
    """The library's model that a pickle holds, and where it came from."""
    if state.get("form") != _form:
        raise BadFile(f"the pickle is of form {state.get('form')}, not {_form}", "superstep", "unpickle it with the version that wrote it")
    what, kept = str(state["what"]), None
    if state["onnx"] is not None:
        kept = tempfile.TemporaryDirectory(prefix="superstep-")
        what = str(pathlib.Path(kept.name) / what)
        pathlib.Path(what).write_bytes(state["onnx"])
    core = _core.open_model(what, dict(state["settings"]))
    known = {name for name, _, _ in core.parameters()}
    for name, value in state["parameters"].items():
        if name not in known:
            raise Error(f"the model has no parameter '{name}'", what, "unpickle it with the version that wrote it")
        core.set_parameter(name, value)
    return core, Origin(what, state["settings"], kept=kept)
