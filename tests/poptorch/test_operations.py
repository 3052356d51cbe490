"""Operations of models: blocks and the rules of strategies, control flow, slices, hints, custom operators, printing."""
import copy
import io

import poptorch
import pytest
import torch


class Stages(torch.nn.Module):
    """Layers, each in a block on a chip."""

    def __init__(self, chips):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in chips])
        for layer, chip in zip(self.layers, chips):
            poptorch.BeginBlock(layer, ipu_id=chip)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x, poptorch.identity_loss(x, "mean")


def options_of(accumulation, strategy=None, iterations=1):
    options = poptorch.Options().deviceIterations(iterations)
    options.Training.gradientAccumulation(accumulation)
    return options.setExecutionStrategy(strategy) if strategy is not None else options


def test_values_do_not_depend_on_blocks():
    model = Stages([0, 1, 0, 1])
    plain = copy.deepcopy(model)
    poptorch.removeBlocks(plain)
    assert "BeginBlock(user_id=None, ipu_id=1) Linear(" in poptorch.module_repr(model)
    assert "BeginBlock" not in poptorch.module_repr(plain)
    x = torch.randn(7, 2)
    found = poptorch.trainingModel(model, options_of(7))(x)
    expected = poptorch.trainingModel(plain, options_of(7))(x)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("training, have, needed", [(True, 6, 7), (True, 7, None), (False, 3, 4), (False, 4, None)])
def test_pipelines_need_micro_batches(training, have, needed):
    model = Stages([0, 1, 0, 1])
    if training:
        executor = poptorch.trainingModel(model, options_of(have))
    else:
        executor = poptorch.inferenceModel(model, options_of(1, iterations=have))
    x = torch.randn(have, 2)
    if needed is None:
        executor(x)
    else:
        with pytest.raises(poptorch.Error, match=rf"pipeline stages \({needed}\)"):
            executor(x)
        executor = (poptorch.inferenceModel if not training else lambda m, o: poptorch.trainingModel(m.destroy() or m, o))(
            model, options_of(have if training else 1, poptorch.ShardedExecution(), 1 if training else have))
        executor(x)  # one stage after the other needs none


def test_numbers_of_chips():
    model = Stages([0, 1, 2])
    with pytest.raises(poptorch.Error, match="3 IPUs.*4.*autoRoundNumIPUs"):
        poptorch.inferenceModel(model, options_of(1, iterations=3))(torch.randn(3, 2))
    poptorch.inferenceModel(model, options_of(1, iterations=3).autoRoundNumIPUs())(torch.randn(3, 2))
    with pytest.raises(poptorch.Error, match="Too many IPUs requested .128"):
        poptorch.inferenceModel(torch.nn.ReLU(), poptorch.Options().replicationFactor(128))(torch.randn(128))


def test_lists_of_blocks():
    def forward(x):
        with poptorch.Block("A"):
            x = x + 1
        with poptorch.Block("B"):
            return x + 1

    strategy = poptorch.PipelinedExecution("A", poptorch.Stage("B").ipu(1))
    assert poptorch.inferenceModel(forward, options_of(1, strategy, 2))(torch.zeros(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="Unknown Block 'B'"):
        poptorch.inferenceModel(forward, options_of(1, poptorch.PipelinedExecution("A", "C"), 2))(torch.zeros(2))
    with pytest.raises(AssertionError, match="no IPU was specified for block A"):
        poptorch.inferenceModel(forward, options_of(1, iterations=2))(torch.zeros(2))
    with pytest.raises(AssertionError, match="more than one stage"):
        poptorch.PipelinedExecution("A", ["B", "A"])
    with pytest.raises(AssertionError, match="specify the phases"):
        poptorch.SerialPhasedExecution()
    with pytest.raises(poptorch.Error, match="phase 1 is on IPU 0"):
        poptorch.inferenceModel(forward, options_of(1, poptorch.ParallelPhasedExecution(
            poptorch.Phase(poptorch.Stage("A").ipu(0)), poptorch.Phase(poptorch.Stage("B").ipu(0)))))(torch.zeros(1))


def test_operators_belong_to_blocks():
    def forward(x):
        with poptorch.Block(ipu_id=0):
            x = x + 1
        return x + 1

    with pytest.raises(poptorch.Error, match="No active Block"):
        poptorch.inferenceModel(forward)(torch.zeros(1))


def test_blocks_of_modules_copy_and_save():
    layer = torch.nn.Linear(2, 2)
    assert poptorch.BeginBlock(layer, "one", ipu_id=1) is layer
    with pytest.raises(poptorch.Error, match="already"):
        poptorch.BeginBlock(layer)
    with pytest.raises(poptorch.Error, match="not an instance"):
        poptorch.BeginBlock(3)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for other in (copy.deepcopy(layer), torch.load(file, weights_only=False)):
        assert "BeginBlock(user_id=one, ipu_id=1)" in poptorch.module_repr(other)
    function = poptorch.BeginBlock(lambda x: x + 1, ipu_id=0)
    assert function(torch.ones(1)) == 2


def test_loops_and_conditions():
    def loop(x):
        return poptorch.for_loop(5, lambda a, b: [a + b, b], [x, torch.ones(1)])[0]

    def choice(x):
        return poptorch.cond(x.sum() > 0, lambda a: a + 10, [x], lambda a: a - 10, [x])[0]

    assert poptorch.inferenceModel(loop)(torch.zeros(1)) == 5
    executor = poptorch.inferenceModel(choice)
    assert [float(executor(torch.tensor([value]))) for value in (1.0, -1.0)] == [11, -11]
    with pytest.raises(ValueError, match="not list"):
        poptorch.for_loop(2, lambda a: a, torch.ones(1))
    with pytest.raises(poptorch.Error, match="1 inputs but 2 outputs"):
        poptorch.for_loop(2, lambda a: [a, a], [torch.ones(1)])
    with pytest.raises(poptorch.Error, match="output 0 of body"):
        poptorch.for_loop(2, lambda a: torch.cat([a, a]), [torch.ones(1)])

    class Trained(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            return poptorch.identity_loss(loop(x * self.weight), "mean")

    with pytest.raises(poptorch.Error, match="for_loop.*inference"):
        poptorch.trainingModel(Trained())(torch.ones(1))


def test_slices_by_index_wrap_around():
    x = torch.arange(6.0)
    assert poptorch.dynamic_slice(x, 0, torch.tensor([4]), 3, 1).tolist() == [4, 5, 0]
    assert poptorch.dynamic_slice(x, 0, torch.tensor([0]), 3, 2).tolist() == [0, 2]
    assert poptorch.dynamic_update(x, torch.tensor([-1.0, -2.0]), 0, torch.tensor([5]), 2).tolist() == [-2, 1, 2, 3, 4, -1]
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    for call, words in ((lambda: poptorch.dynamic_slice(x, 0, 1, 3, 1), "must be a torch.tensor"),
                        (lambda: poptorch.dynamic_slice(x, 0, torch.tensor([1]), 0, 1), "must be different"),
                        (lambda: poptorch.dynamic_update(x, torch.ones(1, 1), 0, torch.tensor([1]), 1), "dimensionality"),
                        (lambda: poptorch.dynamic_update(x, torch.ones(1, dtype=torch.int64), 0, torch.tensor([1]), 1), "dtype")):
        with pytest.raises(poptorch.Error, match=words):
            call()


def test_hints_leave_values():
    def forward(x):
        x = poptorch.set_available_memory(x, 0.3)
        x, y = poptorch.recomputationCheckpoint(x, x + 1)
        with poptorch.NameScope("scope"), poptorch.Attribute(key=1):
            x = poptorch.nop(x)
        torch.ops.poptorch.push_name_scope("other")
        torch.ops.poptorch.pop_name_scope()
        return x, y

    x = torch.randn(3)
    for found in (poptorch.inferenceModel(forward)(x), forward(x)):
        torch.testing.assert_close(found, (x, x + 1))
    a, b = torch.randn(4, 6), torch.randn(6, 2)
    mode = poptorch.MatMulSerializationMode
    torch.testing.assert_close(poptorch.serializedMatMul(a, b, mode.ReducingDim, 3), a @ b)
    with pytest.raises(poptorch.Error, match="4 does not divide.*ReducingDim of extent 6"):
        poptorch.serializedMatMul(a, b, mode.ReducingDim, 4)
    with pytest.raises(ValueError, match="tensors"):
        poptorch.recomputationCheckpoint(x, 3)


def test_several_convolutions():
    layer = torch.nn.Conv1d(1, 1, 1)

    def forward(x, inside):
        with poptorch.MultiConv().partialsTypes(torch.half):
            y = layer(x) if inside else x
        return y

    x = torch.randn(1, 1, 4)
    torch.testing.assert_close(poptorch.inferenceModel(forward)(x, True), layer(x).detach())
    with pytest.raises(poptorch.Error, match="no convolution"):
        poptorch.inferenceModel(forward)(x, False)


def test_custom_operators():
    def forward(x):
        return poptorch.custom_op([x], "Cube", "test.ops", 1, example_outputs=[x], attributes={"scale": 2.0})[0]

    x = torch.tensor([1.0, 2.0])
    with pytest.raises(poptorch.Error, match="Cube of domain test.ops.*poptorch.superstep.register"):
        forward(x)
    poptorch.superstep.register("test.ops", "Cube", lambda inputs, attributes: [attributes["scale"] * inputs[0] ** 3])
    assert poptorch.inferenceModel(forward)(x).tolist() == [2, 16]
    poptorch.superstep.register("test.ops", "Cube", lambda inputs, attributes: [inputs[0] ** 3],
                                gradient=lambda inputs, outputs, gradients, attributes: [gradients[0] * 100])
    y = forward(x.requires_grad_())
    y.sum().backward()
    assert x.grad.tolist() == [100, 100]
    with pytest.raises(poptorch.Error, match="example_outputs has 2"):
        poptorch.custom_op([x], "Cube", "test.ops", 1, example_outputs=[x, x])
    for attributes, words in (({1: 2}, "keys"), ({"a": {}}, "values"), ({"a": [1, 2.0]}, "same"), ({"a": "ü"}, "ASCII")):
        with pytest.raises(ValueError, match=words):
            poptorch.custom_op([x], "Cube", "test.ops", 1, example_outputs=[x], attributes=attributes)


def test_tensors_are_printed_with_their_gradients(capfd):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))

        def forward(self, x):
            y = poptorch.ipu_print_tensor(self.weight * x, "value", digits=3, open_bracket="<", close_bracket=">", separator="|")
            return poptorch.identity_loss(y, "sum")

    executor = poptorch.trainingModel(Model())
    executor.compile(torch.ones(2))
    capfd.readouterr()
    executor(torch.ones(2))
    out, err = capfd.readouterr()
    assert "value: <1.00|2.00>" in err and "value_gradient: <1.00|1.00>" in err
    assert out == ""


def test_host_operators_and_points():
    double = poptorch.CPU(lambda x: x * 2, "double")
    assert poptorch.inferenceModel(lambda x: double(x) + 1)(torch.ones(1)) == 3
    points = torch.tensor([[0.0], [1.0], [10.0], [0.0], [5.0]])
    assert poptorch.fps(points, [0, 3, 5], 0.5).tolist() == [0, 2, 3]
    assert poptorch.nearest(torch.tensor([[0.9], [4.0]]), points[:3]).tolist() == [1, 1]
    assert poptorch.nearest(torch.tensor([[9.0], [9.0]]), points[:3], [0, 1], [0, 0, 1]).tolist() == [1, 2]


def test_beams_find_the_labeling_of_most_probability():
    # Two steps of (blank, a): "a" by three paths is 1 - 0.6 ^ 2 = 0.64, the empty labeling 0.36.
    probabilities = torch.log(torch.tensor([[[0.6, 0.4]], [[0.6, 0.4]]]))
    scores, lengths, labels = poptorch.ctc_beam_search_decoder(probabilities, torch.tensor([2]), top_paths=2)
    torch.testing.assert_close(scores.exp(), torch.tensor([[0.64, 0.36]]))
    assert lengths.tolist() == [[1, 0]]
    assert labels[0, 0, 0] == 1
