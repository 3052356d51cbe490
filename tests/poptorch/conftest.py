"""Tests of PopTorch's interface. Skipped without torch."""
import logging
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def same_start(monkeypatch):
    """The same random numbers, no options of the surroundings, words that are said once said again."""
    for name in ("POPTORCH_CACHE_DIR", "POPTORCH_DEFAULT_OPTIONS", "POPTORCH_IPU_MODEL", "POPLAR_ENGINE_OPTIONS",
                 "SUPERSTEP_POPTORCH_ENGINE", "SUPERSTEP_POPTORCH_DEVICES", "SUPERSTEP_POPTORCH_FIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SUPERSTEP_POPTORCH_ENGINE", "eager")  # test_captured.py compares the other one with it
    import poptorch
    poptorch._logging._said.clear()
    torch.manual_seed(1)


@pytest.fixture
def said(caplog):
    """What the package's logger says, at every level."""
    import poptorch
    poptorch.setLogLevel("TRACE")
    poptorch.logger.addHandler(caplog.handler)
    caplog.set_level(logging.DEBUG)
    yield caplog
    poptorch.logger.removeHandler(caplog.handler)
    poptorch.setLogLevel("WARN")
