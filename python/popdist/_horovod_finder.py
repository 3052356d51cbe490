"""Lets `import horovod.torch` find the stand-in of this package where horovod is not installed."""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last of the finders: what is installed is found before it is asked."""

    _names = ("horovod", "horovod.torch")

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=fullname == "horovod")

    def create_module(self, spec):
        if spec.name == "horovod":
            made = types.ModuleType("horovod", "Stand-in of popdist for horovod, which is not installed: horovod.torch alone.")
            made.__path__ = []
            return made
        return _copy_of_stand_in()

    def exec_module(self, module):
        pass


def _copy_of_stand_in():
    """A module of its own with the stand-in's names, so that importing it does not rename `popdist.horovod`."""
    stand_in = importlib.import_module("popdist.horovod")
    made = types.ModuleType("horovod.torch", stand_in.__doc__)
    made.__dict__.update({name: value for name, value in vars(stand_in).items()
                          if not name.startswith("__") or name == "__getattr__"})
    return made


def install():
    """Adds the finder once; not with SUPERSTEP_POPTORCH_HOROVOD=0."""
    if os.environ.get("SUPERSTEP_POPTORCH_HOROVOD") == "0":
        return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
