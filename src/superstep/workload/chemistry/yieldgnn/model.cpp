// Yields of coupling reactions from the molecules involved (M. Saebi et al., Chem. Sci. 14, 4997 (2023)): a
// Weisfeiler-Lehman network over the graph of all of them, attention between all pairs of its atoms, and
// beside it a line in descriptors.
//
// x f32 [N, atoms, 36], edge_index i64 [N, 2, edges], edge_attr f32 [N, edges, 6], batch i64 [N, atoms], desc
// f32 [N, reactions, 280] -> yield f32 [N, reactions] (per cent), contribution f32 [N, atoms]. A sample is a
// pack of several reactions (workload/graph_packs.h): batch is the number of each atom's reaction in the
// pack, atoms of one reaction stand together, in the order of the reactions; -1 is padding.
//
// h = relu(W1 x); between layers m_i = sum_j relu(Wn [h_j, e_ij]), h_i = relu(Wa [h_i, m_i]); at last local_i
// = (W2 h_i) * sum_j (Wan h_j) * (Wbn e_ij). a_ij = sigmoid(w relu(Wp (local_i + local_j)) + b), global_i =
// sum_j a_ij local_j over the atoms of one reaction. graph = mean_i |w' relu(Wg global_i + Wl local_i) + b'|,
// chem = |W desc|, yield / 100 % = W'' [chem, graph].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/workload/chemistry/molecule_model.h"
#include "superstep/workload/chemistry/yieldgnn/yieldgnn.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/packed_graph.h"

namespace superstep::workload {
namespace {

// All pairs of atoms of one reaction, each once and each atom with itself, one after the other: i64 [packs,
// pairs], -1 behind the last. They follow from `batch`: atom i is followed in its reaction by so many, and
// the running sum of that says where its pairs begin.
struct AtomPairs {
  Var first, second;      // the second never before the first
  Var second_if_another;  // -1 where it is the first itself
};

// i64 [packs, reactions], those without atoms 0.
Var atoms_of_reactions(const PackedGraph& graph, std::int64_t reactions) {
  const Var counted = op::segment_sum(graph.is_node(), graph.batch(), reactions);
  return op::cast(op::reshape(counted, {graph.packs(), reactions}), ElementType::i64);
}

AtomPairs atom_pairs(Builder& b, const PackedGraph& graph, const YieldSizes& sizes) {
  const op::NameScope scope(b, "pairs");
  const auto integer = [&](std::int64_t value) { return b.constant(Tensor::scalar<std::int64_t>(value)); };
  const Var zero = integer(0), one = integer(1), none = integer(-1);
  const Var own = graph.own_number(), is_atom = op::greater_or_equal(own, zero);
  // Of every atom: where its reaction ends, and so how many pairs it begins.
  const Var ends = op::cumsum(atoms_of_reactions(graph, sizes.pack.graphs), 1);
  const Var end = op::gather_elements(ends, op::max(graph.batch(), zero), 1);
  const Var begun = op::where(is_atom, op::max(end - own, zero), zero);
  const Var before = op::cumsum(begun, 1, true);
  // An atom leaves a mark where its pairs begin; the running sum of marks counts the atoms.
  const Var has_room = op::logical_and(is_atom, op::less(before, integer(sizes.pairs())));
  const Var mark = op::segment_sum(graph.is_node(), op::where(has_room, before, none), sizes.pairs());
  const Var marks = op::cast(op::reshape(mark, {graph.packs(), sizes.pairs()}), ElementType::i64);
  const Var first = op::cumsum(marks, 1) - one;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(sizes.pairs()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  const Var place = b.constant(Tensor::from(Shape{1, sizes.pairs()}, numbers));
  const Var known = op::max(first, zero);
  const Var behind = place - op::gather_elements(before, known, 1);
  const Var is_pair = op::less(behind, op::gather_elements(begun, known, 1));
  return {op::where(is_pair, known, none), op::where(is_pair, known + behind, none),
          op::where(op::logical_and(is_pair, op::greater(behind, zero)), known + behind, none)};
}

constexpr PackCapacity default_pack{.nodes = 256, .edges = 560, .graphs = 5};
constexpr double usual_atoms = 60;  // of a reaction

class YieldNetwork {
 public:
  YieldNetwork(Layers& layers, const PackedGraph& graph, const YieldSizes& sizes)
      : layers_(layers), b_(layers.builder()), graph_(graph), sizes_(sizes) {}

  // Atoms as they are with their surroundings: rows [N * atoms, width].
  Var local(Var x, Var bonds) {
    Var h = layers_.relu(dense(PackedGraph::as_rows(x), "atoms", true));
    for (std::int64_t i = 1; i < sizes_.depth; ++i) h = spread(h, bonds, fmt::format("layer{}", i));
    const Var own = dropped(dense(h, "local.own", false), "local.own");
    const Var of_bonds = graph_.as_edges(dense(PackedGraph::as_rows(bonds), "local.bonds", false));
    const Var heard = graph_.at_sources(graph_.as_nodes(dense(h, "local.neighbours", false)));
    const op::NameScope scope(b_, "local");
    const Var sum = summed(heard * of_bonds);
    return own * dropped(sum, "neighbours");
  }

  // What every atom hears of all atoms of its reaction: rows [N * atoms, width].
  Var attended(Var local, const AtomPairs& pairs) {
    const Var own = graph_.as_nodes(dense(local, "pair", true));
    const std::int64_t count = sizes_.pairs();
    b_.set_name("pair");
    // The bias is there once: half of it comes with each atom.
    const Var together = op::relu(op::gather_rows(own, pairs.first) + op::gather_rows(own, pairs.second));
    b_.set_name({});
    const Var score = dense(op::reshape(together, {graph_.packs() * count, sizes_.width}), "attention", true,
                            1, attention_start());
    const op::NameScope scope(b_, "attention");
    const Var weight = op::reshape(op::sigmoid(score), {graph_.packs(), count});
    const Var rows = graph_.as_nodes(local);
    // a_ij = a_ji: each pair is heard at both ends.
    const Var there = op::sparse_product(rows, pairs.second, pairs.first, weight, graph_.nodes());
    const Var back = op::sparse_product(rows, pairs.first, pairs.second_if_another, weight, graph_.nodes());
    return PackedGraph::as_rows(there + back);
  }

  // |w relu(Wg global + Wl local) + b| of every atom: [N, atoms, 1], 0 of padding.
  Var scores(Var local, Var global) {
    const Var sum = dense(global, "score.global", false) + dense(local, "score.local", true);
    const Var score = op::abs(dense(layers_.relu(sum), "score", true, 1));
    const op::NameScope scope(b_, "score");
    return graph_.as_nodes(score) * graph_.is_node();
  }

  // What descriptors say: |W d|, or |W relu(V d)| with a layer between, which sees what a component does in
  // the company of another.
  Var described(Var rows) {
    if (sizes_.chem > 0) {
      const Var hidden = layers_.relu(dense(rows, "chem.hidden", true, sizes_.chem));
      // By packs, as below.
      const Var by_pack = op::reshape(hidden, {graph_.packs(), sizes_.pack.graphs, sizes_.chem});
      rows = PackedGraph::as_rows(layers_.dropout(by_pack, "chem.drop", sizes_.chem_dropout));
    }
    return op::abs(dense(rows, "chem", true, 1));
  }

  // Rows by a matrix with a bias that begins at `start`.
  Var dense(Var rows, const std::string& name, bool bias, std::int64_t out = 0, double start = 0) {
    const op::NameScope scope(b_, name);
    const std::int64_t width = out > 0 ? out : sizes_.width;
    const double limit = deviation(rows.shape()[1], width) * std::sqrt(3.0);
    const Var weight = layers_.uniform(name + ".weight", {width, rows.shape()[1]}, limit);
    return op::gemm(rows, weight, bias ? layers_.filled(name + ".bias", {width}, start) : Var(),
                    {.transpose_b = true});
  }

 private:
  // Of first weights. As the authors draw them, the factors of local_i are a tenth or less each, and their
  // product a thousandth: an atom is hardly seen until they have grown. By what comes in (He et al., ICCV
  // 2015) they are of the order of one.
  double deviation(std::int64_t in, std::int64_t out) const {
    return sizes_.published_start ? std::min(1 / std::sqrt(static_cast<double>(out)), 0.1)
                                  : std::sqrt(2.0 / static_cast<double>(in));
  }
  // Of a_ij: so that what an atom hears of all n is of the size of what one says. sigmoid(-log(n)) is about 1
  // / n.
  double attention_start() const { return sizes_.published_start ? 0 : -std::log(usual_atoms); }

  Var summed(Var edges) const { return PackedGraph::as_rows(graph_.arriving(edges)); }

  // By packs, whose masks are their own however a batch is divided.
  Var dropped(Var rows, const std::string& name) {
    return PackedGraph::as_rows(layers_.dropout(graph_.as_nodes(rows), name, sizes_.dropout));
  }

  // W [a, b] is W_a a + W_b b: products are made an atom, not an edge.
  Var spread(Var h, Var bonds, const std::string& name) {
    const Var heard = graph_.at_sources(graph_.as_nodes(dense(h, name + ".neighbours", false))) +
                      graph_.as_edges(dense(PackedGraph::as_rows(bonds), name + ".bonds", true));
    b_.set_name(name + ".messages");
    const Var messages = summed(op::relu(heard));
    b_.set_name({});
    return layers_.relu(dense(h, name + ".own", false) + dense(messages, name + ".mix", true));
  }

  Layers& layers_;
  Builder& b_;
  const PackedGraph& graph_;
  const YieldSizes& sizes_;
};

// Descriptors as rows, standardised by what was fitted.
Var standardised(Builder& b, Var desc) {
  const op::NameScope scope(b, "descriptors");
  const Tensor zeros(ElementType::i64, {reaction_descriptors});
  const auto fitted = [&](const char* name, double unit) {
    return op::cast(b.state(name, zeros), ElementType::f32) * (1 / unit);
  };
  const Var mean = fitted(descriptor_mean, millionths);
  return (PackedGraph::as_rows(desc) - mean) * fitted(descriptor_inverse, millionths);
}

graph::Graph build_yieldgnn(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const YieldSizes sizes = yield_sizes(options);
  const PackCapacity& pack = sizes.pack;
  graph::Graph graph("yieldgnn");
  Builder b(graph);
  Layers layers(b, seed);
  const MoleculeInputs in = molecule_inputs(b, batch, pack, true);
  const Var desc = b.input("desc", ElementType::f32, {batch, pack.graphs, reaction_descriptors});
  const PackedGraph packed(b, in.edge_index, in.batch);
  YieldNetwork network(layers, packed, sizes);
  const Var local = network.local(in.x, in.edge_attr);
  const Var scores = network.scores(local, network.attended(local, atom_pairs(b, packed, sizes)));
  const Var chem = network.described(standardised(b, desc));
  b.set_name("yield");
  // Of the descriptors' share and the graph's.
  const Var weights = layers.filled("yield.weight", {1, 2}, 0.5), bias = layers.zeros("yield.bias", {1});
  const Var share = share_of_an_atom(packed, pack.graphs);
  const Var mean = op::segment_sum(scores, in.batch, pack.graphs) * share;
  const Var both[] = {chem, PackedGraph::as_rows(mean)};
  const Var fraction = op::gemm(op::concat(both, 1), weights, bias, {.transpose_b = true});
  b.output("yield", op::reshape(fraction * 100.0, {batch, pack.graphs}));
  b.set_name("contribution");
  const Var graph_weight = op::reshape(op::slice(weights, {0, 1}, {1, 2}), {1});
  const Var own = scores * op::gather_rows(share, in.batch) * (graph_weight * 100.0);
  b.output("contribution", op::reshape(own, {batch, pack.nodes}));
  b.set_name({});
  return graph;
}

constexpr const char* chosen_here =
    "Chem. Sci. 14, 4997: batches of 40 reactions, which are about ten packs; their size is chosen here";

transform::OptimizerSpec clipped_adam() {
  transform::OptimizerSpec adam{.kind = transform::OptimizerKind::adam};
  adam.clip = 0.8;
  return adam;
}

Recipe quick_recipe() {
  return {.batch = 2,
          .epochs = 30,
          .loss = {.terms = {}, .own = loss_of_yields},
          .optimizer = clipped_adam(),
          .learning_rate = 3e-3,
          .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.05}};
}

}  // namespace

std::vector<OptionSpec> yield_options() {
  std::vector<OptionSpec> options{
      {"width", "200", "of an atom's features"},
      {"depth", "2", "layers of the Weisfeiler-Lehman network"},
      {"dropout", "0.04", "of what makes an atom's last features"},
      {"chem", "0", "units of a layer behind the descriptors; 0: a line, as published"},
      {"chem-dropout", "0.1", "of that layer"},
      {"largest", "100", "atoms of a reaction, at most"},
      {"start", "he", "first weights: he (by what comes in) or published (0.1 at most)"},
      {"split", "1", "which random 70:30 split, 1 to 1000"}};
  std::ranges::move(pack_options(default_pack, "reactions"), std::back_inserter(options));
  return options;
}

YieldSizes yield_sizes(const Options& options) {
  YieldSizes sizes{.pack = pack_of(options, "reactions"),
                   .largest = options.integer("largest", 1, 256),
                   .depth = options.integer("depth", 1, 16),
                   .width = options.integer("width", 1, 4096),
                   .dropout = options.number("dropout", 0, 0.9),
                   .chem = options.integer("chem", 0, 65536),
                   .chem_dropout = options.number("chem-dropout", 0, 0.9)};
  const std::string starts[] = {"he", "published"};
  sizes.published_start = options.choice("start", starts) == 1;
  sizes.largest = std::min(sizes.largest, sizes.pack.nodes);
  return sizes;
}

op::Var loss_of_yields(transform::LossPorts& ports) {
  const op::Var found = ports.output("yield");
  const op::Var missed = (found - ports.target("yield_target", found.type())) / 100.0;
  return op::reduce_mean(ports.target("weight", found.type()) * missed * missed);
}

Workload yieldgnn() {
  const PackCapacity& pack = default_pack;
  Recipe published = quick_recipe();
  published.batch = 10;
  published.epochs = 200;
  published.learning_rate = 1e-2;
  published.schedule = {.kind = Schedule::Kind::plateau, .final_share = 1e-4, .factor = 0.5, .patience = 5};
  published.model_options = {"start=published"};
  published.source = chosen_here;
  std::vector<PortSpec> inputs = molecule_ports(pack, true, "reaction");
  inputs.push_back(
      {"desc", ElementType::f32, {pack.graphs, reaction_descriptors}, "", "descriptors of molecules"});
  return {
      .name = "yieldgnn",
      .summary = "yields of coupling reactions from their molecules, by attention between atoms",
      .options = yield_options(),
      .build = build_yieldgnn,
      .parameters = 331286,
      .flops = 192547074,
      .inputs = std::move(inputs),
      .outputs = {{"yield", ElementType::f32, {pack.graphs}, "%", "of each reaction"},
                  {"contribution", ElementType::f32, {pack.nodes}, "%", "an atom's share in it"}},
      .targets = {{"yield_target", ElementType::f32, {pack.graphs}, "%", "what was measured"},
                  weight_port(pack)},
      .training = quick_recipe(),
      .published = published,
      .by_default = RecipeName::quick,
      .open = open_reactions,
      .fit = fitted_standardisation,
      .metrics = {{"r2", "", true}, {"rmse", "%"}, {"mae", "%"}},
      .target = QualityTarget{.metric = "r2", .value = 0.80, .higher_is_better = true},
      .things_a_sample = 3.7,
  };
}

}  // namespace superstep::workload
