"""Losses and metrics of a user's own model beside PyTorch's and scikit-learn's. Skipped without them, and without onnx."""
import numpy
import pytest
from support import error_of

onnx = pytest.importorskip("onnx")

import superstep

N, C = 6, 4
SEED = 3


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """Files whose output is their input times a parameter of one: what a loss makes of given numbers."""
    folder = tmp_path_factory.mktemp("scaled")

    def file(shape, two=False):
        from onnx import TensorProto, helper, numpy_helper
        path = folder / f"scaled{'x'.join(map(str, shape))}{two}.onnx"
        names = ["N", *shape]
        inputs = ["x", "v"] if two else ["x"]
        nodes = [helper.make_node("Mul", [name, f"{name}.scale"], [out]) for name, out in zip(inputs, ["y", "w"])]
        one = numpy.ones((1,) * len(shape), numpy.float32)
        graph = helper.make_graph(
            nodes, "scaled", [helper.make_tensor_value_info(name, TensorProto.FLOAT, names) for name in inputs],
            [helper.make_tensor_value_info(out, TensorProto.FLOAT, names) for _, out in zip(inputs, ["y", "w"])],
            [numpy_helper.from_array(one, f"{name}.scale") for name in inputs])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return str(path)
    return file


def random(*shape, low=-2.0, high=2.0, seed=SEED):
    return numpy.random.default_rng(seed).uniform(low, high, shape).astype(numpy.float32)


def logarithms(x):
    return x - numpy.log(numpy.exp(x).sum(1, keepdims=True))


def loss_of(file, text, x, *targets):
    arrays = [x] if isinstance(x, numpy.ndarray) else list(x)
    return superstep.Model(file, loss=text, train=["*"]).trainer(batch=N, optimizer="sgd", threads=1).step(*arrays, *targets)


Y, T, P = random(N, C), random(N, C, low=0, high=1, seed=4), random(N, C, low=0.02, high=0.98, seed=5)
LABELS = numpy.array([0, 3, 1, 2, 2, 0])
IGNORED = numpy.array([0, -100, 1, 2, -100, 0])
IMAGE = random(N, C, 5, 3)
CELLS = numpy.random.default_rng(1).integers(0, C, (N, 5, 3))
WEIGHTS = [0.5, 2.0, 1.0, 4.0]
TEXT_WEIGHTS = "class_weights=0.5:2:1:4"

CASES = {
    "mse": ("mse", Y, T, lambda F, y, t: F.mse_loss(y, t)),
    "l1": ("l1", Y, T, lambda F, y, t: F.l1_loss(y, t)),
    "huber": ("huber(delta=0.7)", Y, T, lambda F, y, t: F.huber_loss(y, t, delta=0.7)),
    "smooth_l1": ("smooth_l1(beta=0.7)", Y, T, lambda F, y, t: F.smooth_l1_loss(y, t, beta=0.7)),
    "bce": ("bce", P, T, lambda F, y, t: F.binary_cross_entropy(y, t)),
    "logits": ("bce_with_logits(positive_weight=3)", Y, T,
               lambda F, y, t: F.binary_cross_entropy_with_logits(y, t, pos_weight=y.new_tensor(3.0))),
    "cross_entropy": ("cross_entropy", Y, LABELS, lambda F, y, t: F.cross_entropy(y, t)),
    "weighted": (f"cross_entropy({TEXT_WEIGHTS},smoothing=0.2)", Y, LABELS,
                 lambda F, y, t: F.cross_entropy(y, t, weight=y.new_tensor(WEIGHTS), label_smoothing=0.2)),
    "ignored": (f"cross_entropy({TEXT_WEIGHTS},ignore=-100,smoothing=0.1)", Y, IGNORED,
                lambda F, y, t: F.cross_entropy(y, t, weight=y.new_tensor(WEIGHTS), label_smoothing=0.1)),
    "cells": (f"cross_entropy({TEXT_WEIGHTS},ignore=2)", IMAGE, CELLS,
              lambda F, y, t: F.cross_entropy(y, t, weight=y.new_tensor(WEIGHTS), ignore_index=2)),
    "nll": (f"nll({TEXT_WEIGHTS})", logarithms(Y), LABELS, lambda F, y, t: F.nll_loss(y, t, weight=y.new_tensor(WEIGHTS))),
    "kl_div": ("kl_div", logarithms(Y), T, lambda F, y, t: F.kl_div(y, t, reduction="batchmean")),
    "poisson": ("poisson_nll", Y, T, lambda F, y, t: F.poisson_nll_loss(y, t)),
    "cosine": ("cosine", Y, T, lambda F, y, t: F.cosine_embedding_loss(y, t, y.new_ones(N))),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_are_those_of_pytorch(scaled, name):
    torch = pytest.importorskip("torch")
    text, y, t, formula = CASES[name]
    expected = float(formula(torch.nn.functional, torch.from_numpy(y), torch.from_numpy(t)))
    assert loss_of(scaled(y.shape[1:]), text, y, t) == pytest.approx(expected, rel=2e-6)


def test_likelihoods_are_those_of_pytorch(scaled):
    torch = pytest.importorskip("torch")
    expected = torch.nn.functional.gaussian_nll_loss(torch.from_numpy(Y), torch.from_numpy(T), torch.from_numpy(P))
    assert loss_of(scaled((C,), two=True), "gaussian_nll(variance=w):y", [Y, P], T) == pytest.approx(float(expected), rel=2e-6)


def test_sequences_are_those_of_pytorch(scaled):
    torch = pytest.importorskip("torch")
    y, rows = random(N, 7, C), numpy.array([[1, 1, 0], [2, 0, 0], [0, 0, 0], [1, 2, 1], [3, 3, 3], [2, 3, 0]])
    frames, counts = numpy.array([7, 5, 3, 7, 6, 2]), numpy.array([2, 1, 0, 3, 3, 2])
    expected = torch.nn.functional.ctc_loss(torch.from_numpy(y).log_softmax(2).transpose(0, 1), *map(torch.from_numpy, (rows, frames, counts)))
    text = "ctc(longest=3,input_lengths=frames,target_lengths=counts)"
    assert loss_of(scaled((7, C)), text, y, rows, frames, counts) == pytest.approx(float(expected), rel=2e-6)
    assert loss_of(scaled((7, C)), "ctc(longest=3)", y, rows) == pytest.approx(float(torch.nn.functional.ctc_loss(
        torch.from_numpy(y).log_softmax(2).transpose(0, 1), torch.from_numpy(rows), torch.full((N,), 7), torch.from_numpy(counts))), rel=2e-6)


def test_focal_is_torchvisions(scaled):
    torch = pytest.importorskip("torch")
    focal = pytest.importorskip("torchvision").ops.sigmoid_focal_loss
    expected = focal(torch.from_numpy(Y), torch.from_numpy(T), alpha=0.6, gamma=1.5, reduction="mean")
    assert loss_of(scaled((C,)), "focal(alpha=0.6,gamma=1.5)", Y, T) == pytest.approx(float(expected), rel=2e-6)


def test_weights_and_masks_are_inputs_of_the_step(scaled):
    weights, mask = random(N, low=0, high=2), (random(N, C) > 0).astype(numpy.float32)
    squares = (Y - T) ** 2
    model = superstep.Model(scaled((C,)), loss="mse(sample_weights=trust)", train=["*"])
    assert [port.name for port in model.targets()] == ["target", "trust"]
    assert loss_of(scaled((C,)), "mse(sample_weights=trust)", Y, T, weights) == pytest.approx(float((squares * weights[:, None]).mean()), rel=2e-6)
    assert loss_of(scaled((C,)), "mse(mask=valid)", Y, T, mask) == pytest.approx(float((squares * mask).sum() / mask.sum()), rel=2e-6)


def measured(file, loss, metrics, y, t, **extra):
    """What a run of no learning says of given answers: those of its validation samples, the last fifth."""
    data = {"x": numpy.repeat(y, 5, axis=0), "target": numpy.repeat(t, 5, axis=0)}
    order = numpy.argsort(numpy.tile(numpy.arange(5), len(y)), kind="stable")  # every sample once in the last fifth
    run = superstep.train(file, {name: array[order] for name, array in data.items()}, loss=loss, metrics=metrics, train=["*"],
                          optimizer="sgd", learning_rate=1e-12, steps=1, batch=4, **extra)
    return run.metrics


NAMES = {"numbers": ["rmse", "mae", "r2", "max_error", "mape"],
         "shares": ["bce", "accuracy", "precision", "recall", "f1", "iou", "auc"],
         "classes": ["cross_entropy", "accuracy", "balanced_accuracy", "precision", "recall", "f1", "iou", "auc"]}


def test_metrics_of_numbers_are_those_of_scikit_learn(scaled):
    m = pytest.importorskip("sklearn.metrics")
    y, t = random(40, C), random(40, C, seed=9)
    found = measured(scaled((C,)), "mse", ",".join(NAMES["numbers"]), y, t)
    expected = [m.root_mean_squared_error(t.ravel(), y.ravel()), m.mean_absolute_error(t, y), m.r2_score(t, y, multioutput="variance_weighted"),
                m.max_error(t.ravel(), y.ravel()), m.mean_absolute_percentage_error(t, y)]
    assert [found[name] for name in NAMES["numbers"]] == pytest.approx(expected, rel=1e-5)


def test_metrics_of_yes_and_no_are_those_of_scikit_learn(scaled):
    m = pytest.importorskip("sklearn.metrics")
    y, t = random(60, 1), (random(60, 1, seed=9) > 0.5).astype(numpy.float32)
    p = 1 / (1 + numpy.exp(-y.ravel().astype(float)))
    found = measured(scaled((1,)), "bce_with_logits", NAMES["shares"], y, t)
    said, so = p >= 0.5, t.ravel() > 0.5
    expected = [m.log_loss(so, p), m.accuracy_score(so, said), m.precision_score(so, said), m.recall_score(so, said),
                m.f1_score(so, said), m.jaccard_score(so, said), m.roc_auc_score(so, p)]
    assert [found[name] for name in NAMES["shares"]] == pytest.approx(expected, rel=1e-5)


def test_metrics_of_classes_are_those_of_scikit_learn(scaled):
    m = pytest.importorskip("sklearn.metrics")
    y, t = random(80, C), numpy.random.default_rng(2).integers(0, C, 80)
    p = numpy.exp(logarithms(y.astype(float)))
    found = measured(scaled((C,)), "cross_entropy", NAMES["classes"], y, t)
    said = p.argmax(1)
    expected = [m.log_loss(t, p), m.accuracy_score(t, said), m.balanced_accuracy_score(t, said), m.precision_score(t, said, average="macro"),
                m.recall_score(t, said, average="macro"), m.f1_score(t, said, average="macro"), m.jaccard_score(t, said, average="macro"),
                m.roc_auc_score(t, p, multi_class="ovr", average="macro")]
    assert [found[name] for name in NAMES["classes"]] == pytest.approx(expected, rel=1e-5)


def test_what_does_not_fit_is_named(scaled, tmp_path):
    data = {"x": random(20, C), "target": random(20, C)}
    with error_of(superstep.InvalidArgument, "auc", "no metric of what this loss compares"):
        superstep.train(scaled((C,)), data, loss="mse", metrics="auc", train=["*"], steps=1)
    with error_of(superstep.InvalidArgument, "there is no loss 'hubert'", "huber"):
        superstep.train(scaled((C,)), data, loss="hubert", train=["*"], steps=1)
