// Which molecules bind, from their graphs: the graph isomorphism network of K. Xu et al. (arXiv 1810.00826)
// with features of bonds in its messages, as W. Hu et al. (arXiv 1905.12265) have it and as it was run on
// ogbg-molhiv (W. Hu et al., arXiv 2005.00687: five layers of width 300).
//
// x f32 [N, atoms, 36], edge_index i64 [N, 2, edges], edge_attr f32 [N, edges, 6], batch i64 [N, atoms] ->
// odds f32 [N, molecules], contribution f32 [N, atoms]. A sample is a pack of several molecules
// (workload/graph_packs.h): batch is the number of each atom's molecule in the pack, edges lead from atom
// edge_index[0] to atom edge_index[1], and -1 is padding.
//
// h = W x; h_i' = MLP((1 + eps) h_i + sum_j relu(h_j + E e_ij)), an MLP of two layers, the inner one twice as
// wide, each followed by a normalisation and all but the last of the network by a rectifier. The odds are a
// line in the mean over a molecule's atoms, so that what an atom contributes is its share of that.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/workload/chemistry/gin/gin.h"
#include "superstep/workload/chemistry/molecule_model.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/packed_graph.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr PackCapacity default_pack{.nodes = 256, .edges = 576, .graphs = 16};

class GinNetwork {
 public:
  GinNetwork(Layers& layers, const PackedGraph& graph, const GinSizes& sizes)
      : layers_(layers), b_(layers.builder()), graph_(graph), sizes_(sizes) {}

  // Atoms with what is around them: [packs, atoms, width].
  Var atoms(Var x, Var bonds) {
    Var h = graph_.as_nodes(layers_.dense(PackedGraph::as_rows(x), "atoms", sizes_.width));
    for (std::int64_t i = 1; i <= sizes_.layers; ++i)
      h = spread(h, bonds, fmt::format("layer{}", i), i < sizes_.layers);
    return h;
  }

  // The logarithm of the odds of every molecule, and what each atom adds to it.
  void read_out(Var h) {
    const Var batch = graph_.batch();
    const std::int64_t molecules = sizes_.pack.graphs, packs = graph_.packs();
    Var mean, share;
    {
      const op::NameScope scope(b_, "mean");
      share = share_of_an_atom(graph_, molecules);
      mean = op::segment_sum(h, batch, molecules) * share;
    }
    const Var odds = layers_.dense(PackedGraph::as_rows(mean), "odds", 1);
    b_.output("odds", op::reshape(odds, {packs, molecules}));
    const op::NameScope scope(b_, "contribution");
    const Var slope = b_.var(b_.graph().find_value("odds.weight"));
    b_.output("contribution", op::reduce_sum(h * slope * op::gather_rows(share, batch), {2}));
  }

 private:
  Var spread(Var h, Var bonds, const std::string& name, bool is_inner) {
    Var messages;
    {
      const op::NameScope scope(b_, name + ".messages");
      const Var weight = layers_.weight(name + ".bonds", {sizes_.width, data::bond_feature_count},
                                        data::bond_feature_count, sizes_.width);
      const Var of_bonds =
          graph_.as_edges(op::gemm(PackedGraph::as_rows(bonds), weight, {}, {.transpose_b = true}));
      messages = graph_.arriving(op::relu(graph_.at_sources(h) + of_bonds));
    }
    b_.set_name(name + ".sum");
    const Var sum = h * (layers_.zeros(name + ".epsilon", {1}) + 1.0) + messages;
    b_.set_name({});
    const Var inner = layers_.relu(layers_.batch_norm(
        layers_.dense(PackedGraph::as_rows(sum), name + ".in", 2 * sizes_.width), name + ".in.norm"));
    Var out = layers_.batch_norm(layers_.dense(inner, name + ".out", sizes_.width), name + ".out.norm");
    if (is_inner) out = layers_.relu(out);
    // By packs, whose masks are their own however a batch is divided.
    return layers_.dropout(graph_.as_nodes(out), name + ".drop", sizes_.dropout);
  }

  Layers& layers_;
  Builder& b_;
  const PackedGraph& graph_;
  const GinSizes& sizes_;
};

graph::Graph build_gin(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const GinSizes sizes = gin_sizes(options);
  graph::Graph graph("gin");
  Builder b(graph);
  Layers layers(b, seed);
  const MoleculeInputs in = molecule_inputs(b, batch, sizes.pack, true);
  const PackedGraph packed(b, in.edge_index, in.batch);
  GinNetwork network(layers, packed, sizes);
  network.read_out(network.atoms(in.x, in.edge_attr));
  return graph;
}

Recipe quick_recipe() {
  return {.batch = 8,
          .epochs = 15,
          .loss = {.terms = {}, .own = loss_of_odds},
          .optimizer = {.kind = transform::OptimizerKind::adam},
          .learning_rate = 3e-3,
          .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.05}};
}

// Batches of 32 molecules are about three packs.
Recipe published_recipe() {
  return {.batch = 3,
          .epochs = 100,
          .loss = {.terms = {}, .own = loss_of_odds},
          .optimizer = {.kind = transform::OptimizerKind::adam},
          .learning_rate = 1e-3,
          .schedule = {.kind = Schedule::Kind::constant},
          .model_options = {"dropout=0.5"},
          .source = "arXiv 2005.00687, its GIN on ogbg-molhiv: dropout, batches of 32, rate and epochs"};
}

}  // namespace

std::vector<OptionSpec> gin_options() {
  std::vector<OptionSpec> options{{"layers", "5", "from neighbor to neighbor"},
                                  {"width", "64", "of an atom's features in them"},
                                  {"dropout", "0.1", "of an atom's features after each of them"}};
  std::ranges::move(pack_options(default_pack, "molecules"), std::back_inserter(options));
  options.push_back({"fold", "1", "which fifth of the series of molecules is held out, 1 to 5"});
  return options;
}

GinSizes gin_sizes(const Options& options) {
  return {.pack = pack_of(options, "molecules"),
          .layers = options.integer("layers", 1, 64),
          .width = options.integer("width", 1, 4096),
          .dropout = options.number("dropout", 0, 0.9)};
}

// log(1 + e^z) - y z of log-odds z and a label y.
op::Var loss_of_odds(transform::LossPorts& ports) {
  const op::Var odds = ports.output("odds");
  const op::Var active = ports.target("active", odds.type()), weight = ports.target("weight", odds.type());
  return op::reduce_mean(weight * (op::softplus(odds) - active * odds));
}

Workload gin() {
  const PackCapacity& pack = default_pack;
  return {
      .name = "gin",
      .summary = "which molecules bind, from their graphs, by a graph isomorphism network",
      .options = gin_options(),
      .build = build_gin,
      .parameters = 89158,
      .flops = 47434357,
      .inputs = molecule_ports(pack, true, "molecule"),
      .outputs = {{"odds", ElementType::f32, {pack.graphs}, "", "logarithm of the odds of being active"},
                  {"contribution", ElementType::f32, {pack.nodes}, "", "an atom's share in it"}},
      .targets = {{"active", ElementType::f32, {pack.graphs}, "", "1 if it was measured active, else 0"},
                  weight_port(pack)},
      .training = quick_recipe(),
      .published = published_recipe(),
      .by_default = RecipeName::quick,
      .open = open_molecules,
      .metrics = {{"roc_auc", "", true}, {"average_precision", "", true}, {"cross_entropy", ""}},
      .target = QualityTarget{.metric = "roc_auc", .value = 0.90, .higher_is_better = true},
      .things_a_sample = 10,
  };
}

}  // namespace superstep::workload
