"""The algebra of batches: which rows each micro-batch sees, what comes back, what is refused."""
import copy

import poptorch
import pytest
import torch
from support import Regression, micro_batch, reference


def options_of(iterations, accumulation, replicas, mode=poptorch.OutputMode.All, period=None):
    options = poptorch.Options().deviceIterations(iterations).replicationFactor(replicas)
    options.Training.gradientAccumulation(accumulation)
    return options.outputMode(mode, period)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("iterations, accumulation, replicas", [(1, 1, 1), (3, 1, 1), (1, 4, 1), (1, 1, 2), (3, 2, 4)])
def test_training_is_the_plain_loop(iterations, accumulation, replicas, mean):
    model = Regression()
    plain = copy.deepcopy(model)
    rows = 2 * iterations * accumulation * replicas
    x, target = torch.randn(rows, 4), torch.randn(rows, 3)
    options = options_of(iterations, accumulation, replicas)
    options.Training.accumulationAndReplicationReductionType(
        poptorch.ReductionType.Mean if mean else poptorch.ReductionType.Sum)
    executor = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))
    y, losses = executor(x, target)
    expected = reference(plain, x, target, 0.1, iterations, accumulation, replicas, mean)
    torch.testing.assert_close(losses.reshape(-1), expected)
    torch.testing.assert_close(model.layer.weight, plain.layer.weight)
    assert y.shape == (rows, 3)


MODES = [(poptorch.OutputMode.All, None, 12), (poptorch.OutputMode.EveryN, 3, 4), (poptorch.OutputMode.Final, None, 2),
         (poptorch.OutputMode.Sum, None, 2)]


@pytest.mark.parametrize("mode, period, extent", MODES)
def test_output_modes_join_what_they_say(mode, period, extent):
    executor = poptorch.inferenceModel(lambda x: x + 0.0, poptorch.Options().deviceIterations(6).replicationFactor(2)
                                       .outputMode(mode, period))
    x = torch.arange(12.0)  # a row each: iteration by iteration, replica by replica
    by_replica = x.reshape(6, 2)
    expected = {poptorch.OutputMode.All: x, poptorch.OutputMode.EveryN: by_replica[[2, 5]].reshape(-1),
                poptorch.OutputMode.Final: by_replica[5], poptorch.OutputMode.Sum: by_replica.sum(0)}[mode]
    y = executor(x)
    assert len(y) == extent
    torch.testing.assert_close(y, expected)


def test_scalars_become_vectors_only_where_there_are_several():
    model = Regression()
    x, target = torch.randn(6, 4), torch.randn(6, 3)
    _, one = poptorch.trainingModel(model, options_of(3, 1, 1, poptorch.OutputMode.Final))(x, target)
    model.destroy()
    _, several = poptorch.trainingModel(model, options_of(3, 1, 2, poptorch.OutputMode.Final))(x, target)
    assert one.shape == ()
    assert several.shape == (2,)


@pytest.mark.parametrize("kind, group_of", [(poptorch.CommGroupType.Consecutive, lambda r: r // 2),
                                            (poptorch.CommGroupType.Orthogonal, lambda r: r % 2)])
def test_replicas_of_a_group_read_the_same_rows(kind, group_of):
    options = poptorch.Options().deviceIterations(2).replicationFactor(4)
    options.inputReplicaGrouping(2, kind)
    x = torch.arange(8.0)
    y = poptorch.inferenceModel(lambda rows: rows + 0.0, options)(x)
    expected = [micro_batch(x, d, 0, r, 2, 1, 2, group_of) for d in range(2) for r in range(4)]
    torch.testing.assert_close(y, torch.cat(expected))


def test_rows_that_do_not_divide_are_refused_with_the_factors():
    executor = poptorch.trainingModel(Regression(), options_of(3, 2, 1))
    with pytest.raises(AssertionError, match="7 rows.*multiple of 6.*3 device iterations.*accumulation 2"):
        executor(torch.randn(7, 4), torch.randn(7, 3))


def test_a_period_that_keeps_nothing_is_refused():
    options = poptorch.Options().deviceIterations(3).outputMode(poptorch.OutputMode.EveryN, 4)
    with pytest.raises(poptorch.Error, match="period of 4 keeps nothing of 3"):
        poptorch.inferenceModel(torch.nn.ReLU(), options)(torch.ones(3))


def test_a_tensor_without_elements_is_refused():
    with pytest.raises(poptorch.Error, match="Zero-sized"):
        poptorch.inferenceModel(torch.nn.ReLU())(torch.zeros(0, 3))


def test_types_are_those_of_the_device():
    y = poptorch.inferenceModel(lambda a, b: (a, b, a + 1))(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.float64))
    assert [tensor.dtype for tensor in y] == [torch.int32, torch.float32, torch.int32]


def test_results_refuse_backward():
    _, loss = poptorch.trainingModel(Regression())(torch.randn(2, 4), torch.randn(2, 3))
    with pytest.raises(poptorch.Error, match="backward"):
        loss.backward()


def test_results_have_memory_of_their_own():
    x = torch.ones(2)
    y = poptorch.inferenceModel(lambda rows: rows)(x)
    y += 1
    assert x.tolist() == [1, 1]
