"""The class of a module while it is trained: a subclass that knows its executor and pickles as the plain class."""

import copyreg
import weakref

_PLAIN = "_poptorch_plain_class"


def is_wrapped(model):
    """Whether the module belongs to a trainingModel."""
    return hasattr(type(model), _PLAIN)


def plain_class(model):
    """The module's own class."""
    return getattr(type(model), _PLAIN, type(model))


def wrap(model, executor):
    """Changes the class of `model` to a subclass called `Poptorch` + its name. The module does not keep the executor."""
    model.__class__ = _subclass(type(model), weakref.ref(executor))


def unwrap(model):
    """Gives the module its own class back."""
    model.__class__ = plain_class(model)


def _subclass(plain, executor):
    def copyWeightsToHostIfNeeded(self):
        """Whether weights were brought to the host: see the executor's method."""
        found = executor()
        return found.copyWeightsToHostIfNeeded() if found is not None else False

    def destroy(self):
        """Releases the executor; the module has its own class again."""
        found = executor()
        if found is not None:
            found.destroy()
        if is_wrapped(self):
            unwrap(self)

    def __reduce_ex__(self, protocol):
        return _reduced(self, plain, protocol)

    members = {"copyWeightsToHostIfNeeded": copyWeightsToHostIfNeeded, "destroy": destroy, "__reduce_ex__": __reduce_ex__,
               _PLAIN: plain, "__module__": plain.__module__, "__doc__": plain.__doc__}
    made = type(f"Poptorch{plain.__name__}", (plain,), members)
    made.__qualname__ = f"Poptorch{plain.__qualname__}"
    return made


def _reduced(model, plain, protocol):
    """What pickle and copy get: an object of the plain class with the same state."""
    if plain.__reduce_ex__ is not object.__reduce_ex__ or plain.__reduce__ is not object.__reduce__:
        unwrapped, wrapped = model, type(model)
        unwrapped.__class__ = plain
        try:
            return unwrapped.__reduce_ex__(protocol)
        finally:
            model.__class__ = wrapped
    state = model.__getstate__() if hasattr(model, "__getstate__") else model.__dict__
    return copyreg._reconstructor, (plain, object, None), state
