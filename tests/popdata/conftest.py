"""Finds the packages in the source tree, so that these tests need no installation: `python -m pytest tests/popdata`."""

import importlib.util
import os
import pathlib
import sys

import pytest

if importlib.util.find_spec("poptorch") is None:
    source = str(pathlib.Path(__file__).parents[2] / "python")
    sys.path.insert(0, source)
    # For programs that the tests start.
    os.environ["PYTHONPATH"] = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)

pytest.importorskip("torch")
