"""Graphs by distance, held against loops over all pairs."""

import pytest
import torch

pytest.importorskip("torch_geometric")

from torch_geometric import nn

import poptorch
import poptorch_geometric  # noqa: F401 - fills what PyTorch Geometric lacks
from poptorch_geometric import _near, ops


def points(count, seed=0, examples=3):
    drawn = torch.Generator().manual_seed(seed)
    return (torch.randn(count, 3, generator=drawn),
            torch.randint(examples, (count,), generator=drawn).sort().values)


def by_loops(x, y, batch_x, batch_y, limit, most=float("inf"), but_itself=False):
    """For each point of y the places in x, nearest first."""
    result = []
    for row, (point, example) in enumerate(zip(y, batch_y)):
        near = [((point - other).norm().item(), column) for column, other in enumerate(x)
                if batch_x[column] == example and not (but_itself and column == row)]
        result.append([column for distance, column in sorted(near) if distance <= most][:limit])
    return result


def listed(place):
    return [[column for column in row if column >= 0] for row in place.tolist()]


@pytest.mark.parametrize("k", [1, 4, 30])
def test_nearest_are_nearest(k, monkeypatch):
    monkeypatch.setattr(_near, "_AT_ONCE", 100)
    (x, batch_x), (y, batch_y) = points(25), points(13, 1)
    far, place = _near.nearest(x, y, k, batch_x, batch_y)
    assert place.shape == (13, min(k, 25)) and listed(place) == by_loops(x, y, batch_x, batch_y, k)
    assert torch.equal(far.isinf(), place < 0)
    edges = ops.knn(x, y, k, batch_x, batch_y)
    assert edges.shape == (2, 13 * min(k, 25)) and torch.equal(edges[0] < 0, edges[1] < 0)
    rows = [[edge[1] for edge in nn.knn(x, y, k, batch_x, batch_y).T.tolist() if edge[0] == row] for row in range(13)]
    assert rows == listed(place)


@pytest.mark.parametrize("loop", [True, False])
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_graphs_of_near_points(loop, flow):
    x, batch = points(20)
    for edges, expected in ((nn.knn_graph(x, 3, batch, loop, flow), by_loops(x, x, batch, batch, 3, but_itself=not loop)),
                            (nn.radius_graph(x, 1.5, batch, loop, 5, flow),
                             by_loops(x, x, batch, batch, 5, 1.5, but_itself=not loop))):
        source, target = edges if flow == "source_to_target" else edges.flip(0)
        assert [source[target == row].tolist() for row in range(20)] == expected
    fixed = ops.radius_graph(x, 1.5, batch, loop, 5, flow)
    assert fixed.shape == (2, 100) and torch.equal(_near.found(fixed), edges)


def test_a_point_with_a_twin_is_not_its_own_neighbor():
    x = torch.zeros(3, 2)
    edges = ops.knn_graph(x, 1)
    assert edges.shape == (2, 3) and (edges[0] != edges[1]).all()


def test_the_nearest_point_of_each():
    (x, batch_x), (y, batch_y) = points(9), points(14, 1)
    expected = by_loops(y, x, batch_y, batch_x, 1)
    assert [[place] for place in nn.nearest(x, y, batch_x, batch_y).tolist()] == expected


def test_layers_of_near_points():
    x, batch = points(12)
    layer = nn.DynamicEdgeConv(torch.nn.Linear(6, 2), 3, "max")
    edges = ops.knn(x, x, 3, batch, batch).flip(0)
    expected = nn.EdgeConv(layer.nn, "max")(x, edges[:, edges[0] >= 0])
    torch.testing.assert_close(layer(x, batch), expected)


def test_cosine_and_single_coordinates():
    x = torch.tensor([[1.0, 0.0], [10.0, 10.0], [0.0, 3.0]])
    assert nn.knn(x, torch.tensor([[2.0, 2.1]]), 1, cosine=True)[1].tolist() == [1]
    assert nn.knn(x, torch.tensor([[2.0, 2.1]]), 1)[1].tolist() == [2]
    assert nn.radius(torch.tensor([1, 5, 9]), torch.tensor([6]), 2)[1].tolist() == [1]


def test_features_between_points():
    x, pos = torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    between = ops.knn_interpolate(x, pos, torch.tensor([[1.0, 0.0], [3.0, 0.0]]), k=2)
    torch.testing.assert_close(between, torch.tensor([[(1 + 3 / 4) / (1 + 1 / 4)], [3.0]]))
    alone = ops.knn_interpolate(x, pos, torch.zeros(1, 2), torch.tensor([1, 1]), torch.tensor([0]))
    assert alone.tolist() == [[0.0]]


def test_refusals():
    with pytest.raises(ValueError, match="no distance"):
        ops.knn(torch.zeros(2, 3), torch.zeros(2, 2), 1)
    with pytest.raises(ValueError, match="batch_x has 3 entries for 2 points"):
        ops.knn(torch.zeros(2, 3), torch.zeros(2, 3), 1, torch.zeros(3), torch.zeros(2))
    with pytest.raises(ValueError, match="flow is"):
        ops.knn_graph(torch.zeros(2, 3), 1, flow="up")


def test_a_model_of_pytorch_geometric_runs_without_its_library():
    from torch_geometric.nn.models import SchNet
    torch.manual_seed(0)
    model = SchNet(hidden_channels=16, num_filters=16, num_interactions=2, num_gaussians=8, cutoff=3.0).eval()
    z, (pos, batch) = torch.randint(1, 9, (12,)), points(12, examples=2)
    expected = model(z, pos, batch)
    assert expected.shape == (2, 1) and expected.isfinite().all()
    moved = model(z, pos + torch.tensor([1.0, 2.0, 3.0]), batch)
    torch.testing.assert_close(moved, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(poptorch.inferenceModel(model)(z, pos, batch), expected)
