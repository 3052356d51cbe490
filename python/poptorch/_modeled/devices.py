"""Which devices there are: the model stands for hardware, as SUPERSTEP_POPTORCH_DEVICES and PopTorch's variables say."""

import os

from .._errors import Error
from .._logging import warn_once
from ..enums import ConnectionType

_MODELS = {"gc200": 2, "bow": 3}
_VERSIONS = {"ipu1": "gc2", "ipu2": "gc200", "ipu21": "bow"}
_MOST = 64
_ON = ("1", "true", "yes", "on")


def _flag(name):
    return os.environ.get(name, "").lower() in _ON


def _modeled():
    """The machine that stands for hardware, or None. Error: another word than gc200, bow, none."""
    name = os.environ.get("SUPERSTEP_POPTORCH_DEVICES") or "gc200"
    if name not in (*_MODELS, "none"):
        raise Error(f"SUPERSTEP_POPTORCH_DEVICES is {name!r}: use gc200, bow or none")
    return None if name == "none" or _flag("POPTORCH_IPU_MODEL") else name


def machine():
    """The machine whose model tells cycles: gc200 unless SUPERSTEP_POPTORCH_DEVICES or POPTORCH_IPU_MODEL_VERSION says bow."""
    check_environment()
    named = os.environ.get("SUPERSTEP_POPTORCH_DEVICES")
    if named in _MODELS:
        return named
    return {"gc200": "gc200", "bow": "bow"}.get(_VERSIONS.get(os.environ.get("POPTORCH_IPU_MODEL_VERSION", "ipu2")), "gc200")


def ipuHardwareVersion(num_ipus=1):
    """2 for a GC200, 3 for a Bow: of the modeled machine. AssertionError: there is none."""
    name = _modeled()
    assert name is not None, "No IPU hardware available on this system: POPTORCH_IPU_MODEL or SUPERSTEP_POPTORCH_DEVICES says so"
    return _MODELS[name]


def ipuHardwareIsAvailable(num_ipus=1):
    """True for 1 to 64 chips: the machine's model stands for hardware, which is said once.

    False with POPTORCH_IPU_MODEL=1 or SUPERSTEP_POPTORCH_DEVICES=none, and for more chips.
    """
    name = _modeled()
    if name is None or not 1 <= num_ipus <= _MOST:
        return False
    warn_once("There are no IPUs here: the model of the %s stands for hardware (SUPERSTEP_POPTORCH_DEVICES=none: none)", name)
    return True


def attaches(options):
    """Whether a model of these options would take modeled hardware."""
    return options.connection_type != ConnectionType.Never and _modeled() is not None


def check_environment():
    """Error for a version of the model that is none; a word for the small model."""
    version = os.environ.get("POPTORCH_IPU_MODEL_VERSION")
    if version and version not in _VERSIONS:
        raise Error(f"POPTORCH_IPU_MODEL_VERSION is {version!r}: use {', '.join(_VERSIONS)}")
    if _flag("POPTORCH_SMALL_IPU_MODEL") and not _flag("POPTORCH_IPU_MODEL"):
        warn_once("POPTORCH_SMALL_IPU_MODEL: the machine's model has all its tiles, not 4")
