"""Custom operators: functions that stand for an operator of a script's own C++ library, by domain and name."""

from .._errors import Error

_functions = {}


class Registration:
    """A function of (inputs, attributes) for one custom operator, its gradient and its cycles."""

    def __init__(self, function, gradient, cycles):
        self.function, self.gradient, self.cycles = function, gradient, cycles


def register(domain, name, function, gradient=None, cycles=None):
    """Lets `poptorch.custom_op(..., name, domain, ...)` call `function(inputs, attributes)`, which gives a list of tensors.

    PyTorch derives it unless `gradient(inputs, outputs, gradients, attributes)` gives the inputs' gradients. `cycles(inputs,
    attributes)` tells the machine's model what a call costs. TypeError: no callables.
    """
    for value in (function, *(part for part in (gradient, cycles) if part is not None)):
        if not callable(value):
            raise TypeError(f"register takes functions, not {value!r}")
    _functions[(domain, name)] = Registration(function, gradient, cycles)


def custom_op(inputs, name, domain, domain_version, example_outputs, attributes=None):
    """The tensors that the function registered for this operator gives.

    ValueError: attributes other than int, float, ASCII str and lists of one of these. Error: no function is registered, or
    its results differ from `example_outputs` in number, shape or type.
    """
    attributes = dict(attributes or {})
    _check_attributes(attributes)
    found = _functions.get((domain, name))
    if found is None:
        raise Error(f"There is no implementation of the custom operator {name} of domain {domain}: compiled operators of PopART "
                    "do not run here. Register a Python function for it: poptorch.superstep.register"
                    f"({domain!r}, {name!r}, function)")
    outputs = _called(found, list(inputs), attributes)
    examples = list(example_outputs)
    if len(outputs) != len(examples):
        raise Error(f"The custom operator {name} gave {len(outputs)} tensors where example_outputs has {len(examples)}")
    for index, (output, example) in enumerate(zip(outputs, examples)):
        if output.shape != example.shape or output.dtype != example.dtype:
            raise Error(f"Result {index} of the custom operator {name} is {list(output.shape)} of {output.dtype}, its example "
                        f"{list(example.shape)} of {example.dtype}")
    return outputs


def _called(found, inputs, attributes):
    if found.gradient is None:
        return list(found.function(inputs, attributes))
    return list(_derived(found, attributes).apply(*inputs))


def _derived(found, attributes):
    import torch

    class Derived(torch.autograd.Function):
        """The function with the gradient that was registered."""

        @staticmethod
        def forward(ctx, *inputs):
            outputs = tuple(found.function(list(inputs), attributes))
            ctx.count = len(inputs)
            ctx.save_for_backward(*inputs, *outputs)
            return outputs

        @staticmethod
        def backward(ctx, *gradients):
            saved = ctx.saved_tensors
            return tuple(found.gradient(list(saved[:ctx.count]), list(saved[ctx.count:]), list(gradients), attributes))

    return Derived


def _check_attributes(attributes):
    for key, value in attributes.items():
        if not isinstance(key, str):
            raise ValueError("All attribute keys must be strings.")
        if not isinstance(value, (float, int, str, list, tuple)):
            raise ValueError("Attribute values must be floats, ints, strings or a list/tuple of float, ints of strings.")
        parts = value if isinstance(value, (list, tuple)) else [value]
        if any(not isinstance(part, type(parts[0])) for part in parts):
            raise ValueError("The types in a list/tuple attribute must all be the same.")
        for text in (key, *parts):
            if isinstance(text, str) and not text.isascii():
                raise ValueError(f"{text} contains non-ASCII characters.")
