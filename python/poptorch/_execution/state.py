"""The module behind an executor: its parameters and buffers by name, and other tensors in their place for a while."""

import torch

from .._errors import Error

# How often each buffer was changed by a training executor, by the identity of the tensor.
_trained = torch.utils.weak.WeakIdKeyDictionary()


class ModuleState:
    """Named parameters and buffers of a module (or of a plain function: none)."""

    def __init__(self, model):
        self.module = model if isinstance(model, torch.nn.Module) else None

    def parameters(self):
        """Parameters by name, each once."""
        return dict(self.module.named_parameters()) if self.module is not None else {}

    def buffers(self):
        """Buffers by name, each once."""
        return dict(self.module.named_buffers()) if self.module is not None else {}

    def places(self, names):
        """Where each of these names (of parameters or buffers) and its aliases is kept: [(dictionary, key, name)]."""
        tensors = {**self.parameters(), **self.buffers()}
        by_identity = {id(tensors[name]): name for name in names}
        found = []
        for module in self.module.modules() if self.module is not None else ():
            for table in (module._parameters, module._buffers):
                found += [(table, key, by_identity[id(tensor)]) for key, tensor in table.items()
                          if tensor is not None and id(tensor) in by_identity]
        return found

    def modes(self):
        """(module, training) of the module and all below it."""
        return [(module, module.training) for module in self.module.modules()] if self.module is not None else []

    def identities(self):
        """Identity of every parameter and buffer by full name, for `check_unchanged`."""
        if self.module is None:
            return {}, {}
        parameters = {name: id(value) for name, value in self.module.named_parameters(remove_duplicate=False)}
        buffers = {name: id(value) for name, value in self.module.named_buffers(remove_duplicate=False)}
        return parameters, buffers

    def check_unchanged(self, before):
        """Error where forward assigned a parameter or buffer anew or took one away."""
        for kind, old, new in zip(("Parameter", "Buffer"), before, self.identities()):
            for name, identity in old.items():
                if name not in new:
                    raise Error(f"{kind} {name} is removed from the model when calling the forward method.")
                if new[name] != identity:
                    last = name.rsplit(".", 1)[-1]
                    raise Error(f"{kind} {name} is reassigned within the model when calling the forward method. This is not "
                                f"supported. Consider using self.{last}.copy_(src) to copy data from a source tensor, where "
                                "src is the name of the source tensor.")


class Swapped:
    """Other tensors in the place of a module's, within the context: [(dictionary, key, name)] and tensors by name."""

    def __init__(self, places, tensors):
        self._places, self._tensors = places, tensors
        self._before = []

    def __enter__(self):
        self._before = [table[key] for table, key, _ in self._places]
        for table, key, name in self._places:
            table[key] = self._tensors[name]

    def __exit__(self, *error):
        for (table, key, _), tensor in zip(self._places, self._before):
            table[key] = tensor


class Modes:
    """A module's training flags as they were at one moment, within the context."""

    def __init__(self, modes):
        self._modes = modes
        self._changed = []

    def __enter__(self):
        self._changed = [(module, module.training) for module, mode in self._modes if module.training != mode]
        if self._changed:
            for module, mode in self._modes:
                module.training = mode

    def __exit__(self, *error):
        for module, mode in self._changed:
            module.training = mode


def count_training(buffers):
    """A training executor changed these buffers."""
    for buffer in buffers:
        _trained[buffer] = _trained.get(buffer, 0) + 1


def trainings(buffers):
    """How often training executors changed these buffers."""
    return [_trained.get(buffer, 0) for buffer in buffers]


class Randomness:
    """Random numbers of one executor: a stream of its own, apart from the host's."""

    def __init__(self, seed):
        generator = torch.Generator()
        generator.manual_seed(seed)
        self.seed = seed
        self._state = generator.get_state()
        self._host = None

    def __enter__(self):
        self._host = torch.get_rng_state()
        torch.set_rng_state(self._state)

    def __exit__(self, *error):
        self._state = torch.get_rng_state()
        torch.set_rng_state(self._host)

    def copy(self):
        """A stream that goes on as this one would."""
        made = Randomness(self.seed)
        made._state = self._state.clone()
        return made

    def numbers(self):
        """Seed and state as integers."""
        return [self.seed] + self._state.tolist()

    def restore(self, numbers):
        """Goes on from what `numbers` gave; the seed alone begins anew. Error: other numbers."""
        if len(numbers) == 1:
            self.__init__(numbers[0])
            return
        if len(numbers) != 1 + self._state.numel():
            raise Error(f"rng_state takes {1 + self._state.numel()} integers (or the seed alone), not {len(numbers)}")
        self.seed = numbers[0]
        self._state = torch.tensor(numbers[1:], dtype=torch.uint8)
