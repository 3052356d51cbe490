"""Finds the packages in the source tree, so that these tests need no installation: `python -m pytest tests/popdata`."""

import importlib.util
import pathlib
import sys

import pytest

if importlib.util.find_spec("poptorch") is None:
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))

pytest.importorskip("torch")
