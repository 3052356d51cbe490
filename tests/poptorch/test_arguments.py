"""Arguments and results: structures, names, defaults, and what differs from what was compiled."""
import collections

import poptorch
import pytest
import torch


class Sum(torch.nn.Module):
    """Adds what it gets."""

    def forward(self, a, b=torch.tensor([10.0]), *more, scale=1, **named):
        total = a + b
        for one in (*more, *named.values()):
            total = total + one
        return total * scale


def one(value):
    return torch.tensor([float(value)])


def test_defaults_names_and_places():
    executor = poptorch.inferenceModel(Sum())
    assert executor(one(1)) == 11
    assert executor(a=one(1)) == 11
    assert executor(one(1), b=one(2)) == 3
    other = poptorch.inferenceModel(Sum())
    assert other(one(1), one(2), one(3), scale=2, extra=one(4)) == 20


def test_structures_come_back_as_they_are():
    Pair = collections.namedtuple("Pair", "first second")

    class Table(collections.OrderedDict):
        pass

    def model(x):
        table = Table()
        table["b"], table["a"] = x + 1, [x, (x,)]
        return Pair(x, {"k": x * 2}), table, "word", None

    pair, table, word, nothing = poptorch.inferenceModel(model)(one(3))
    assert type(pair) is Pair and pair.second["k"] == 6
    assert type(table) is Table and list(table) == ["b", "a"] and table["a"][1][0] == 3
    assert (word, nothing) == ("word", None)


def test_classes_of_the_users():
    class Graph:
        def __init__(self, nodes, edges):
            self.nodes, self.edges = nodes, edges

    class Parser(poptorch.ICustomArgParser):
        def yieldTensors(self, struct):
            yield struct.nodes
            yield struct.edges

        def reconstruct(self, original_structure, tensor_iterator):
            return Graph(next(tensor_iterator), next(tensor_iterator))

    poptorch.registerCustomArgParser(Graph, Parser())
    try:
        executor = poptorch.inferenceModel(lambda graph: Graph(graph.nodes * 2, graph.edges),
                                           poptorch.Options().deviceIterations(2))
        result = executor(Graph(torch.ones(4), torch.zeros(2)))
        assert result.nodes.tolist() == [2, 2, 2, 2]
        with pytest.raises(poptorch.Error, match=r"graph\[1\]"):
            executor(Graph(torch.ones(4), torch.zeros(4)))
        with pytest.raises(poptorch.Error, match="ICustomArgParser"):
            poptorch.registerCustomArgParser(Graph, object())
    finally:
        poptorch.registerCustomArgParser(Graph, None)


@pytest.mark.parametrize("arguments, words", [
    (dict(a=torch.ones(3)), "Shape mismatch for a"), (dict(a=torch.ones(2).half()), "mismatch for a.*float32.*float16"),
    (dict(a=[torch.ones(2)]), "Type mismatch for a"), (dict(b=3), "Value mismatch for b: expected 2 but got 3"),
    (dict(b=None), "Type mismatch for b"), (dict(c={"y": torch.ones(1)}), "Missing arguments: x"),
    (dict(c={"x": torch.ones(1), "y": torch.ones(1)}), "Unexpected arguments: y")])
def test_what_differs_is_named(arguments, words):
    executor = poptorch.inferenceModel(lambda a, b, c: a * b + c["x"])
    first = dict(a=torch.ones(2), b=2, c={"x": torch.ones(1)})
    executor(**first)
    with pytest.raises(poptorch.Error, match=words):
        executor(**{**first, **arguments})
    executor(**first)


def test_after_destroy_other_shapes_are_fine():
    executor = poptorch.inferenceModel(torch.nn.ReLU())
    executor(torch.ones(2))
    executor.destroy()
    assert executor(torch.ones(3)).shape == (3,)


@pytest.mark.parametrize("call, kind, words", [
    (lambda e: e(), poptorch.Error, "Mandatory parameter x missing"), (lambda e: e(one(1), one(2)), AssertionError, "Too many"),
    (lambda e: e(one(1), y=one(1)), AssertionError, ""), (lambda e: e(y=one(1)), AssertionError, "y is not a valid parameter"),
    (lambda e: e(torch.ones(2, dtype=torch.complex64)), poptorch.Error, "complex")])
def test_wrong_calls(call, kind, words):
    class Model(torch.nn.Module):
        def forward(self, x):
            return x

    with pytest.raises(kind, match=words):
        call(poptorch.inferenceModel(Model()))


def test_inputs_carry_no_gradients():
    x = torch.ones(2, requires_grad=True)
    assert not poptorch.inferenceModel(lambda a: a + 1)(x).requires_grad


def test_inputs_that_forward_changes_in_place_are_changed_once_a_call():
    x = torch.ones(2)
    executor = poptorch.inferenceModel(lambda a: a.add_(1))
    executor(x)
    assert x.tolist() == [2, 2]
    executor(x)
    assert x.tolist() == [3, 3]


def test_forward_knows_where_it_runs():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x + 1 if poptorch.isRunningOnIpu() else x

    model = Model()
    assert poptorch.inferenceModel(model)(one(1)) == 2
    assert model(one(1)) == 1
