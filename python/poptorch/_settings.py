"""Named values with checks: what `Options` and its sections are made of."""

import copy


class Settings:
    """Values by name, read and set as attributes.

    Only names that the class declares may be set, by values of the type that they have. After `_freeze()` every change is an
    AttributeError; a deep copy is free again. Private attributes are those of the constructor, before `super().__init__`.
    """

    def __init__(self, **values):
        self.__dict__["_is_frozen"] = False
        self.__dict__["_values"] = values

    def exists(self, name):
        """Whether a value of this name is set."""
        return name in self.__dict__.get("_values", {})

    def set(self, **values):
        """Sets values that exist. AssertionError: an unknown name, another type; AttributeError: frozen."""
        self.checkIsFrozen()
        for name, value in values.items():
            assert self.exists(name), f"Invalid option {name}, valid options are {', '.join(self._values)}"
            expected = type(self._values[name])
            assert isinstance(value, expected), (
                f"Unexpected type {type(value).__name__} for option {name}. Expected {expected.__name__}")
            self._values[name] = value

    def createOrSet(self, **values):
        """As `set`, and makes names that do not exist yet."""
        self.checkIsFrozen()
        for name, value in values.items():
            if self.exists(name):
                self.set(**{name: value})
            else:
                self._values[name] = value

    def deleteIfExists(self, name):
        """Takes a value away, so that it does not exist."""
        self.checkIsFrozen()
        self._values.pop(name, None)

    def checkIsFrozen(self, option=None):
        """AttributeError when this object may not be changed any more."""
        if self.__dict__.get("_is_frozen", False):
            raise AttributeError("Can't modify frozen Options: a model or a data loader has them. Take a clone().")

    def toDict(self):
        """The values as a dictionary of their own."""
        return dict(self._values)

    def _sections(self):
        return [value for value in self.__dict__.values() if hasattr(type(value), "_set_frozen")]

    def _set_frozen(self, frozen):
        self.__dict__["_is_frozen"] = frozen
        for section in self._sections():
            section._set_frozen(frozen)

    def _freeze(self):
        self._set_frozen(True)

    def _unfreeze(self):
        self._set_frozen(False)

    def __getattr__(self, name):
        if name == "_values" or name.startswith("__"):
            raise AttributeError(name)
        if not self.exists(name):
            raise AttributeError(f"Invalid attribute {name}.")
        return self._values[name]

    def __setattr__(self, name, value):
        if name == "__class__":
            object.__setattr__(self, name, value)
            return
        self.checkIsFrozen(name)
        if not name.startswith("_"):
            self.set(**{name: value})
            return
        if "_values" in self.__dict__ and name not in self.__dict__:
            known = [known for known in self.__dict__ if known.startswith("_")]
            raise AttributeError(f"Invalid private attribute {name}. Valid attributes: {', '.join(known)}")
        object.__setattr__(self, name, value)

    def __deepcopy__(self, memory):
        made = self.__class__.__new__(self.__class__)
        memory[id(self)] = made
        for name, value in self.__dict__.items():
            made.__dict__[name] = copy.deepcopy(value, memory)
        made.__dict__["_is_frozen"] = False
        return made

    def __getstate__(self):
        return dict(self.__dict__)

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __call__(self, option):
        return getattr(self, option)

    def __repr__(self):
        hidden = ("_values", "_is_frozen")
        parts = [f"{name}={value!r}" for name, value in self._values.items()]
        parts += [f"{name}={value!r}" for name, value in self.__dict__.items() if name not in hidden]
        return f"{type(self).__name__}({', '.join(parts)})"
