"""Batches of graphs of fixed size: contents of padding in closed form, loaders, refusals."""

import pickle

import pytest
import torch

pytest.importorskip("torch_geometric")

from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import ClusterLoader

import poptorch
import poptorch_geometric
from poptorch_geometric import _neighbors
from poptorch_geometric import FixedSizeDataLoader, FixedSizeOptions, FixedSizeStrategy, OverSizeStrategy, _padding
from poptorch_geometric._neighbors import UniformSampler
from poptorch_geometric.cluster_loader import FixedSizeClusterLoader
from poptorch_geometric.collate import CombinedBatchingCollater, FixedSizeCollater, make_exclude_keys
from poptorch_geometric.dataloader import CustomFixedSizeDataLoader, DataLoader
from poptorch_geometric.masker import NoMasker, PreLayerMasker
from poptorch_geometric.neighbor_loader import FixedSizeNeighborLoader
from poptorch_geometric.stream_packing_sampler import StreamPackingSampler
from poptorch_geometric.types import PyGArgsParser


def ring(nodes, label=0.0, of_nodes=False):
    """A ring of `nodes` nodes; features are numbered from 1."""
    index = torch.arange(nodes)
    return Data(x=torch.arange(1.0, 2 * nodes + 1).reshape(nodes, 2), edge_index=torch.stack([index, (index + 1) % nodes]),
                edge_attr=torch.arange(1.0, nodes + 1), y=torch.full((nodes if of_nodes else 1,), label), name=f"ring{nodes}")


def hetero(papers, authors):
    data = HeteroData()
    data["paper"].x = torch.ones(papers, 3)
    data["author"].x = torch.ones(authors, 2)
    count = min(papers, authors)
    data["author", "writes", "paper"].edge_index = torch.arange(count).repeat(2, 1)
    data["author", "writes", "paper"].edge_attr = torch.ones(count, 1)
    data.y = torch.tensor([5.0])
    return data


def options(**values):
    made = poptorch.Options()
    for name, value in values.items():
        getattr(made, name)(value)
    return made


# -- padding ----------------------------------------------------------------------------------------------------------

def test_what_a_padded_batch_holds():
    sizes = FixedSizeOptions(12, 15, 4, node_pad_value=-1.0, edge_pad_value=-2.0, graph_pad_value=-3.0,
                             pad_graph_defaults={"name": "none"})
    batch = FixedSizeCollater(sizes, add_masks_to_batch=True)([ring(3, 1.0), ring(4, 2.0)])
    assert batch.num_graphs == 4 and batch.name == ["ring3", "ring4", "none", "none"]
    # 5 nodes and 8 edges are missing: 3 and 2 nodes, 4 edges each.
    assert batch.batch.tolist() == [0] * 3 + [1] * 4 + [2] * 3 + [3] * 2
    assert batch.ptr.tolist() == [0, 3, 7, 10, 12]
    assert torch.equal(batch.x[:7], torch.cat([ring(3).x, ring(4).x])) and (batch.x[7:] == -1).all()
    assert batch.edge_index[:, :7].tolist() == [[0, 1, 2, 3, 4, 5, 6], [1, 2, 0, 4, 5, 6, 3]]
    assert batch.edge_index[:, 7:].tolist() == [[7] * 4 + [10] * 4] * 2
    assert batch.edge_attr.tolist() == [1, 2, 3, 1, 2, 3, 4] + [-2] * 8
    assert batch.y.tolist() == [1, 2, -3, -3]
    assert batch.graphs_mask.tolist() == [True] * 2 + [False] * 2
    assert batch.nodes_mask.tolist() == [True] * 7 + [False] * 5
    assert batch.edges_mask.tolist() == [True] * 7 + [False] * 8


def test_labels_of_nodes_are_padded_like_nodes():
    sizes = FixedSizeOptions(9, 9, 3, node_pad_value=-1.0, graph_pad_value=-3.0)
    collater = FixedSizeCollater(sizes)
    assert collater([ring(3, 1.0, True), ring(4, 2.0, True)]).y.tolist() == [1] * 3 + [2] * 4 + [-1] * 2
    with pytest.raises(AssertionError, match="y must have one row for each node"):
        collater([ring(3, 1.0, True), ring(4, 2.0)])


def test_padding_takes_no_part_in_messages():
    """Sums over neighbors of real nodes are those of the graphs alone."""
    from torch_geometric.nn import GINConv
    layer = GINConv(torch.nn.Identity())
    graphs = [ring(3), ring(4)]
    batch = FixedSizeCollater(FixedSizeOptions(12, 15, 4, node_pad_value=7.0))(graphs)
    alone = torch.cat([layer(graph.x, graph.edge_index) for graph in graphs])
    assert torch.equal(layer(batch.x, batch.edge_index)[:7], alone)


def test_edges_go_to_graphs_that_have_a_node():
    assert _padding.shares(7, 3) == [3, 2, 2]
    assert _padding.shares_of_edges(5, [1, 1, 0]) == [3, 2, 0]
    assert _padding.shares_of_edges(0, [0, 0]) == [0, 0] and _padding.shares_of_edges(1, [0, 0]) is None
    batch = FixedSizeCollater(FixedSizeOptions(4, 9, 4))([ring(3)])
    assert batch.edge_index.max() == 3 and batch.num_graphs == 4
    with pytest.raises(RuntimeError, match="6 edges of padding have no node to join"):
        FixedSizeCollater(FixedSizeOptions(3, 9, 2))([ring(3)])


def test_heterogeneous_graphs():
    kind = ("author", "writes", "paper")
    sizes = FixedSizeOptions({"paper": 8, "author": 6}, {kind: 9}, 3, node_pad_value=-1.0, edge_pad_value=-2.0,
                             graph_pad_value=-3.0)
    assert sizes.is_hetero() and sizes.total_num_nodes == 14 and sizes.total_num_edges == 9
    batch = FixedSizeCollater(sizes, add_masks_to_batch=True)([hetero(3, 2), hetero(2, 2)])
    assert batch["paper"].x.shape == (8, 3) and (batch["paper"].x[5:] == -1).all()
    assert batch["author"].x.shape == (6, 2) and (batch["author"].x[4:] == -1).all()
    assert batch[kind].edge_index.tolist() == [[0, 1, 2, 3] + [4] * 5, [0, 1, 3, 4] + [5] * 5]
    assert batch[kind].edge_attr.flatten().tolist() == [1] * 4 + [-2] * 5
    assert batch.y.tolist() == [5, 5, -3]
    assert batch["paper"].nodes_mask.sum() == 5 and batch[kind].edges_mask.sum() == 4 and batch.graphs_mask.sum() == 2


def test_too_many_are_refused_by_name():
    with pytest.raises(RuntimeError, match="for the number of nodes: 2 graphs have 7 nodes and the limit is 6.*trim_nodes"):
        FixedSizeCollater(FixedSizeOptions(6, 99, 3))([ring(3), ring(4)])
    with pytest.raises(RuntimeError, match="for the number of edges: 2 graphs have 7 edges and the limit is 6"):
        FixedSizeCollater(FixedSizeOptions(60, 6, 3))([ring(3), ring(4)])
    with pytest.raises(RuntimeError, match="3 graphs were given for a batch of 2"):
        FixedSizeCollater(FixedSizeOptions(60, 60, 2))([ring(3)] * 3)
    with pytest.raises(RuntimeError, match="leave none to pad"):
        FixedSizeCollater(FixedSizeOptions(60, 60, 2))([ring(3)] * 2)
    with pytest.raises(TypeError, match="Expected list, got tuple"):
        FixedSizeCollater(FixedSizeOptions(60))((ring(3),))
    with pytest.raises(ValueError, match="at least 2 graphs"):
        FixedSizeOptions(6, num_graphs=1)
    with pytest.raises(AssertionError, match="has the type author"):
        FixedSizeCollater(FixedSizeOptions({"paper": 8}, {("author", "writes", "paper"): 9}))([hetero(2, 2)])


def test_trimming_leaves_one_of_each_graph():
    torch.manual_seed(1)
    for _ in range(20):
        batch = FixedSizeCollater(FixedSizeOptions(6, 5, 5), True, trim_nodes=True, trim_edges=True)(
            [ring(5), ring(1), ring(9), ring(2)])
        assert batch.x.shape == (6, 2) and batch.edge_index.shape == (2, 5)
        assert batch.batch[batch.nodes_mask].unique().tolist() == [0, 1, 2, 3]
        assert batch.nodes_mask.sum() == 5, "one node is kept for the padding's edges"
        assert batch.edge_index.max() < 6
    kind = ("author", "writes", "paper")
    sizes = FixedSizeOptions({"paper": 4, "author": 20}, {kind: 6}, 3)
    batch = FixedSizeCollater(sizes, True, trim_nodes=True, trim_edges=True)([hetero(5, 6), hetero(6, 6)])
    assert batch["paper"].x.shape[0] == 4 and batch["author"].x.shape[0] == 20 and batch[kind].edge_index.shape[1] == 6
    with pytest.raises(RuntimeError, match="Trimming to 2 nodes would leave some of 3 graphs"):
        FixedSizeCollater(FixedSizeOptions(2, 9, 4), trim_nodes=True)([ring(3)] * 3)


# -- sizes ------------------------------------------------------------------------------------------------------------

def test_sizes_from_data():
    graphs = [ring(3), ring(5), ring(4)]
    sizes = FixedSizeOptions.from_dataset(graphs, 4)
    assert (sizes.num_nodes, sizes.num_edges, sizes.num_graphs) == (16, 16, 4)
    assert FixedSizeOptions(10).num_edges == 90
    from torch_geometric.loader import DataLoader as Plain
    sizes = FixedSizeOptions.from_loader(Plain(graphs, batch_size=2))
    assert (sizes.num_nodes, sizes.num_edges, sizes.num_graphs) == (9, 9, 3)
    both = FixedSizeOptions.from_dataset([hetero(3, 2), hetero(1, 4)], 3)
    assert both.num_nodes == {"paper": 7, "author": 9} and both.num_edges == {("author", "writes", "paper"): 5}


# -- loaders ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("iterations", [1, 3])
def test_every_batch_has_the_same_extents(iterations):
    graphs = [ring(3 + index % 4, float(index)) for index in range(20)]
    loader = FixedSizeDataLoader(graphs, batch_size=3, options=options(deviceIterations=iterations))
    batches = list(loader)
    assert len(batches) == len(loader) == 10 // iterations
    for batch in batches:
        assert batch.x.shape == (13 * iterations, 2) and batch.edge_index.shape == (2 * iterations, 13)
        assert batch.graphs_mask.tolist() == [True, True, False] * iterations and batch.num_nodes == 13
    seen = torch.cat([batch.y[batch.graphs_mask] for batch in batches])
    assert seen.tolist() == list(range(len(seen)))


def test_packing_takes_as_many_as_fit():
    graphs = [ring(size) for size in (3, 3, 6, 2, 2, 2, 9)]
    # Of three graphs and eleven nodes; as many nodes are kept as graphs are missing.
    assert list(StreamPackingSampler(graphs, 3, 11, 11)) == [[0, 1], [2, 3, 4], [5], [6]]
    with pytest.raises(RuntimeError, match="The graph 2 has 6 nodes"):
        list(StreamPackingSampler(graphs, 2, 6, 6))
    assert [index for batch in StreamPackingSampler(graphs, 2, 6, 6, allow_skip_data=True) for index in batch] == [0, 1, 3, 4, 5]
    with pytest.raises(ValueError, match="max_num_nodes is 1"):
        StreamPackingSampler(graphs, 2, 1)
    with pytest.raises(NotImplementedError):
        len(StreamPackingSampler(graphs, 2, base_sampler=torch.utils.data.RandomSampler(graphs)))
    loader = FixedSizeDataLoader(graphs, 4, fixed_size_options=FixedSizeOptions(12, 12, 4),
                                 fixed_size_strategy=FixedSizeStrategy.StreamPack)
    batches = list(loader)
    assert len(batches) == len(loader) == len(StreamPackingSampler(graphs, 3, 11, 11))
    assert all(batch.x.shape == (12, 2) for batch in batches)
    assert sum(int(batch.graphs_mask.sum()) for batch in batches) == 7


def test_loader_refusals():
    graphs = [ring(3)] * 4
    with pytest.raises(AssertionError, match="batch_size is 3 and num_graphs"):
        FixedSizeDataLoader(graphs, 3, fixed_size_options=FixedSizeOptions(9))
    with pytest.raises(AssertionError, match="collate_fn of its own"):
        FixedSizeDataLoader(graphs, 2, collate_fn=list)
    with pytest.raises(ValueError, match="give no batch_sampler"):
        FixedSizeDataLoader(graphs, 2, fixed_size_strategy=FixedSizeStrategy.StreamPack, batch_sampler=[[0]])
    with pytest.raises(RuntimeError, match="limit is 2"):
        list(FixedSizeDataLoader(graphs, 2, fixed_size_options=FixedSizeOptions(2, 9)))
    trimmed = next(iter(FixedSizeDataLoader(graphs, 2, fixed_size_options=FixedSizeOptions(3, 9),
                                            over_size_strategy=OverSizeStrategy.TrimNodes)))
    assert trimmed.nodes_mask.sum() == 2


def test_the_loader_of_earlier_versions():
    graphs = [ring(3 + index % 4, float(index)) for index in range(6)]
    new = list(FixedSizeDataLoader(graphs, 3))
    for masks in (False, True):
        old = list(CustomFixedSizeDataLoader(graphs, 3, collater_args={"add_masks_to_batch": masks}))
        assert len(old) == len(new) and all(torch.equal(one.x, other.x) for one, other in zip(old, new))
        assert ("nodes_mask" in old[0]) == masks
    sampled, = list(CustomFixedSizeDataLoader(graphs, 3, batch_sampler=[[0, 3]]))
    assert sampled.y[:2].tolist() == [0, 3]
    with pytest.raises(AssertionError, match="takes no num_nodes"):
        CustomFixedSizeDataLoader(graphs, 3, collater_args={"num_nodes": 3})


def test_mini_batches_are_joined_tensor_by_tensor():
    graphs = [ring(4, float(index)) for index in range(6)]
    loader = DataLoader(graphs, batch_size=2, options=options(deviceIterations=3))
    batch, = list(loader)
    assert batch.edge_index.shape == (6, 8) and batch.y.tolist() == [0, 1, 2, 3, 4, 5] and batch.num_graphs == 2
    assert torch.equal(batch.batch, torch.tensor([0] * 4 + [1] * 4).repeat(3))
    with pytest.raises(AssertionError, match="Invalid batch size: 3 graphs"):
        CombinedBatchingCollater(loader.collate_fn.collater, 2)(graphs[:3])
    mixed = [hetero(2, 2)] * 4
    batch, = list(DataLoader(mixed, batch_size=2, options=options(deviceIterations=2)))
    assert batch["paper"].x.shape == (8, 3) and batch.num_nodes == 8 and batch.num_edges == 4
    again = pickle.loads(pickle.dumps(batch))
    assert again.num_nodes == 8 and isinstance(again, HeteroData)


class _Clusters:
    """What a loader of clusters needs of PyTorch Geometric's ClusterData, which needs a library to be made."""

    def __init__(self, graph, parts):
        from torch_geometric.loader.cluster import Partition
        order = graph.edge_index[0].argsort(stable=True)
        index = graph.edge_index[1][order]
        indptr = torch.cat([torch.zeros(1, dtype=torch.long), graph.edge_index[0].bincount(minlength=graph.num_nodes).cumsum(0)])
        nodes = torch.arange(graph.num_nodes)
        starts = torch.arange(0, graph.num_nodes + 1, graph.num_nodes // parts)
        self.partition = Partition(indptr, index, starts, nodes, order, "csr")
        self.data = Data(x=graph.x, edge_attr=graph.edge_attr[order], num_nodes=graph.num_nodes)
        self.parts = parts

    def __len__(self):
        return self.parts


def test_clusters():
    clusters = _Clusters(ring(12), 4)
    plain = list(ClusterLoader(clusters, batch_size=2))
    loader = FixedSizeClusterLoader(clusters, FixedSizeOptions(8, 9, 2), batch_size=2, options=options(deviceIterations=2))
    batch, = list(loader)
    assert batch.x.shape == (16, 2) and batch.edge_index.shape == (4, 9)
    assert torch.equal(batch.x[:6], plain[0].x) and torch.equal(batch.x[8:14], plain[1].x)
    real = plain[0].num_edges
    assert torch.equal(batch.edge_index[:2, :real], plain[0].edge_index) and (batch.edge_index[:2, real:] == 6).all()
    with pytest.raises(AssertionError, match="does not take exclude_keys, shuffle"):
        FixedSizeClusterLoader(clusters, FixedSizeOptions(8, 9), shuffle=True, exclude_keys=[])
    with pytest.raises(AssertionError, match="has 2"):
        FixedSizeClusterLoader(clusters, FixedSizeOptions(8, 9, 3))


def test_neighborhoods():
    graph = ring(9)
    loader = FixedSizeNeighborLoader(graph, [2], batch_size=3, fixed_size_options=FixedSizeOptions(7, 6, 2),
                                     neighbor_sampler=UniformSampler(graph, [2]), options=options(deviceIterations=3))
    batch, = list(loader)
    assert batch.x.shape == (21, 2) and batch.edge_index.shape == (6, 6)
    # Seeds 0, 1, 2 with their predecessor 8, then padding.
    assert batch.x[:4, 0].tolist() == [1, 3, 5, 17] and (batch.x[4:7] == 0).all()
    assert batch.input_id.tolist() == list(range(9)) and batch["batch_size"] == 3
    assert batch.nodes_mask[:7].tolist() == [True] * 4 + [False] * 3
    found = FixedSizeNeighborLoader(graph, [2], batch_size=3, neighbor_sampler=UniformSampler(graph, [2]))
    assert found.fixed_size_options.num_nodes == 5 and found.fixed_size_options.num_graphs == 2
    assert sum(1 for _ in found) == 3


class _Asked:
    """What a loader asks a sampler for."""

    time = None

    def __init__(self, nodes, kind=None):
        self.node = self.input_id = torch.tensor(nodes)
        self.input_type = kind


def test_samples_are_edges_of_the_graph():
    torch.manual_seed(0)
    graph = Data(x=torch.zeros(30, 1), edge_index=torch.randint(30, (2, 300)))
    for _ in range(10):
        made = UniformSampler(graph, [3, -1]).sample_from_nodes(_Asked([4, 9]))
        assert made.node[:2].tolist() == [4, 9] and len(made.node.unique()) == len(made.node)
        edges = torch.stack([made.node[made.row], made.node[made.col]])
        assert torch.equal(edges, graph.edge_index[:, made.edge]) and len(made.edge.unique()) == len(made.edge)
        into = graph.edge_index[1].bincount(minlength=30)
        counts = made.col.bincount(minlength=len(made.node))
        assert counts[:2].tolist() == [min(3, int(into[4])), min(3, int(into[9]))]
        first = made.row[:int(counts[:2].sum())].max() + 1
        assert counts[2:first].tolist() == into[made.node[2:first]].tolist(), "all edges of nodes of the first step"
    drawn = torch.stack([UniformSampler(graph, [1]).sample_from_nodes(_Asked([4])).edge for _ in range(400)])
    chosen = drawn.flatten().bincount(minlength=300)[graph.edge_index[1] == 4]
    assert chosen.sum() == 400 and (chosen > 400 / len(chosen) / 3).all(), "every edge is drawn about as often"


def test_samples_of_heterogeneous_graphs():
    graph = hetero(6, 6)
    graph["paper", "of", "author"].edge_index = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    made = UniformSampler(graph, [2, 2]).sample_from_nodes(_Asked([3], "paper"))
    assert made.node["paper"].tolist() == [3, 2] and made.node["author"].tolist() == [3]
    assert made.row["author", "writes", "paper"].tolist() == [0] and made.col["paper", "of", "author"].tolist() == [0]
    loader = FixedSizeNeighborLoader(graph, [2, 2], ("paper", torch.tensor([3, 5])), batch_size=2,
                                     fixed_size_options=FixedSizeOptions({"paper": 6, "author": 5}, {
                                         kind: 7 for kind in graph.edge_types}), neighbor_sampler=UniformSampler(graph, [2, 2]))
    batch, = list(loader)
    assert batch["paper"].x.shape == (6, 3) and batch["author", "writes", "paper"].edge_index.shape == (2, 7)
    with pytest.raises(ValueError, match="says nothing of edges"):
        UniformSampler(graph, {("paper", "of", "author"): [2]})


@pytest.mark.skipif(not _neighbors.missing(), reason="PyTorch Geometric samples itself")
def test_samples_without_a_library():
    loader = FixedSizeNeighborLoader(ring(9), [2], batch_size=3, fixed_size_options=FixedSizeOptions(7, 6))
    assert [batch.x.shape for batch in loader] == [(7, 2)] * 3
    for wrong in ({"replace": True}, {"disjoint": True}, {"subgraph_type": "induced"}):
        with pytest.raises(ImportError, match="needs pyg-lib"):
            FixedSizeNeighborLoader(ring(9), [2], **wrong)


# -- models -----------------------------------------------------------------------------------------------------------

def test_a_graph_is_an_argument_by_its_sorted_tensors():
    graph, parser = ring(3), PyGArgsParser()
    tensors = list(parser.yieldTensors(graph))
    assert [tuple(tensor.shape) for tensor in tensors] == [(3,), (2, 3), (3, 2), (1,)]
    made = parser.reconstruct(graph, iter([tensor + 1 for tensor in tensors]))
    assert torch.equal(made.x, graph.x + 1) and made.name == "ring3" and torch.equal(graph.x, ring(3).x)
    batch = parser.reconstruct(Batch.from_data_list([ring(3), ring(4)]), iter(tensors + [tensors[0]] * 9))
    assert batch.num_graphs == 2 and batch.num_nodes == 7
    with pytest.raises(ValueError, match="Unsupported data type"):
        list(parser.yieldTensors(3))
    assert set(make_exclude_keys(["x"], graph)) == {"edge_index", "edge_attr", "y", "name"}


class Mean(torch.nn.Module):
    """A layer over the graph, the mean of each graph's nodes, the loss of the real graphs."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)

    def forward(self, batch):
        from torch_geometric.nn import global_add_pool
        source, target = batch.edge_index
        x = self.first(batch.x)
        x = torch.relu(x + torch.zeros_like(x).index_add(0, target, x[source]))
        out = self.second(global_add_pool(x * batch.nodes_mask[:, None], batch.batch, batch.num_graphs)).flatten()
        each = torch.nn.functional.mse_loss(out, batch.y, reduction="none")
        return out, poptorch.identity_loss((each * batch.graphs_mask).sum() / batch.graphs_mask.sum(), "none")


def test_an_executor_trains_on_graphs_as_pytorch_does():
    torch.manual_seed(0)
    graphs = [ring(3 + index % 3, index / 10) for index in range(12)]
    model = Mean()
    plain = Mean()
    plain.load_state_dict(model.state_dict())
    start = plain.first.weight.detach().clone()
    made = options(deviceIterations=2)
    made.Training.gradientAccumulation(2)
    loader = FixedSizeDataLoader(graphs, 2, options=made)
    executor = poptorch.trainingModel(model, made, torch.optim.SGD(model.parameters(), lr=1e-5))
    sgd = torch.optim.SGD(plain.parameters(), lr=1e-5)
    one_by_one = list(FixedSizeDataLoader(graphs, 2))
    for call, batch in enumerate(loader):
        executor(batch)
        for step in range(2):
            sgd.zero_grad()
            for part in range(2):
                (plain(one_by_one[call * 4 + step * 2 + part])[1] / 2).backward()
            sgd.step()
    assert len(loader) == 3 and not torch.equal(plain.first.weight, start)
    for (name, mine), other in zip(model.named_parameters(), plain.parameters()):
        torch.testing.assert_close(mine.data, other.data, msg=lambda text: f"{name}: {text}")


def test_the_stepper_compares():
    class Pair(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x, y):
            out = self.layer(x)
            return out, torch.nn.functional.mse_loss(out, y)

    stepper = poptorch_geometric.TrainingStepper(Pair())
    stepper.run(3, (torch.ones(4, 2), torch.zeros(4, 1)))
    with torch.no_grad():
        stepper.cpu_model.layer.bias.add_(0.1)
    with pytest.raises(AssertionError, match="was not equal"):
        stepper.run(1, (torch.ones(4, 2), torch.zeros(4, 1)))


def test_maskers():
    layer = PreLayerMasker(NoMasker()).node_masker(torch.nn.Identity())
    assert torch.equal(layer(torch.ones(2), mask=None), torch.ones(2))


def test_importing_poptorch_loads_no_geometry():
    import subprocess
    import sys
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "import poptorch, sys; "
                           "sys.exit(any(name in sys.modules for name in ('torch_geometric', 'onnx', 'superstep.torch')))"],
                          check=False)
    assert done.returncode == 0
