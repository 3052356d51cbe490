// Glass transition temperatures of polymers from the graph of their repeat unit: the two networks of
// ANL-23/15 (2022 AI Testbed Expeditions Report, Argonne National Laboratory), whose widths and optimiser
// were not published.
//
// x f32 [N, atoms, 36], edge_index i64 [N, 2, edges], batch i64 [N, atoms] -> Tg_K f32 [N, polymers],
// contribution f32 [N, atoms]. A sample is a pack of several polymers (workload/graph_packs.h): batch is the
// number of each atom's polymer in the pack, edges lead from atom edge_index[0] to atom edge_index[1], and -1
// is padding. The message passing network reads edge_attr f32 [N, edges, 6], too.
//
// polymer-gcn: h_i' = relu(norm(W sum_j h_j / c_ij)), c_ij = sqrt(d_i d_j) (T. Kipf, M. Welling, arXiv
// 1609.02907, with an edge from every atom to itself, or, as the report prints it, without). polymer-mpnn:
// h_i' = relu(norm(w h_i + sum_j relu(W [h_i, h_j, e_ij]))) (J. Gilmer et al., arXiv 1704.01212). Both add up
// the atoms of a polymer and end in two dense layers.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/workload/chemistry/molecule_model.h"
#include "superstep/workload/chemistry/polymer/polymer.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/packed_graph.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr PackCapacity default_pack{.nodes = 256, .edges = 576, .graphs = 24};
constexpr std::int64_t readout_width = 64;

// The matrix 1 / c_ij over the edges of a pack, those of atoms to themselves behind the others.
class NormalisedAdjacency {
 public:
  NormalisedAdjacency(Builder& builder, const PackedGraph& graph, bool self_loops) : atoms_(graph.nodes()) {
    const op::NameScope scope(builder, "adjacency");
    source_ = graph.source(), target_ = graph.target();
    if (self_loops) {
      const Var own = graph.own_number(), sources[] = {source_, own}, targets[] = {target_, own};
      source_ = op::concat(sources, 1), target_ = op::concat(targets, 1);
    }
    // Padding has no edges: as if it had one, so that its root is a number.
    const Var degree = op::max(op::segment_sum(PackedGraph::is_there(target_), target_, atoms_),
                               builder.scalar(ElementType::f32, 1));
    const Var root = op::reciprocal(op::sqrt(degree));
    const Var weight = op::gather_rows(root, source_) * op::gather_rows(root, target_);
    weight_ = op::reshape(weight, source_.shape());
  }

  Var times(Var h) const { return op::sparse_product(h, source_, target_, weight_, atoms_); }

 private:
  std::int64_t atoms_;
  Var source_, target_, weight_;
};

// What a pack's atoms say about its polymers: the sum over a polymer's atoms h [packs, atoms, width] through
// two dense layers, and what each atom contributes to it. Since atoms are added up, the slope of the result
// by an atom's features is that by the sum: the gradient-weighted activation of an atom (R. Selvaraju et al.,
// Grad-CAM, ICCV 2017, before its rectifier), whose sum over atoms is the result without the biases.
void read_out(Layers& layers, const PackedGraph& graph, Var h, Var batch, std::int64_t polymers) {
  Builder& b = layers.builder();
  const std::int64_t rows = graph.packs() * polymers;
  const auto node = [&](const char* name) { return op::NameScope(b, name); };
  Var pooled;
  {
    const auto scope = node("pool");
    pooled = op::reshape(op::segment_sum(h, batch, polymers), {rows, h.shape()[2]});
  }
  const Var hidden = layers.relu(layers.dense(pooled, "hidden", readout_width));
  const Var logarithm = layers.dense(hidden, "out", 1);
  {
    const auto scope = node("Tg_K");
    b.output("Tg_K", op::reshape(op::exp(logarithm * log_kelvin_unit), {graph.packs(), polymers}));
  }
  const auto scope = node("contribution");
  const auto state = [&](const char* name) { return b.var(b.graph().find_value(name)); };
  const Var active = op::cast(op::greater(hidden, b.scalar(ElementType::f32, 0)), ElementType::f32);
  const Var slope = op::matmul(active * (state("out.weight") * log_kelvin_unit), state("hidden.weight"));
  const Var of_atoms = op::gather_rows(op::reshape(slope, {graph.packs(), polymers, h.shape()[2]}), batch);
  b.output("contribution", op::reduce_sum(of_atoms * h, {2}));
}

graph::Graph build_gcn(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const PolymerSizes sizes = polymer_sizes(options);
  graph::Graph graph("polymer-gcn");
  Builder b(graph);
  Layers layers(b, seed);
  const MoleculeInputs in = molecule_inputs(b, batch, sizes.pack, false);
  const PackedGraph packed(b, in.edge_index, in.batch);
  const NormalisedAdjacency adjacency(b, packed, options.flag("self-loops"));
  Var h = in.x;
  for (std::int64_t i = 1; i <= sizes.layers; ++i) {
    const std::string name = fmt::format("conv{}", i);
    b.set_name(name + ".neighbours");
    const Var rows = packed.as_rows(adjacency.times(h));
    b.set_name({});
    const Var mixed = layers.batch_norm(layers.dense(rows, name, sizes.width), name + ".norm");
    h = packed.as_nodes(layers.relu(mixed));
  }
  read_out(layers, packed, h, in.batch, sizes.pack.graphs);
  return graph;
}

// relu(W [h_i, h_j, e_ij]), summed over the edges that end in i: the products with h are made an atom, not an
// edge.
Var messages(Layers& layers, const PackedGraph& graph, Var h, Var bonds, const std::string& name,
             std::int64_t width) {
  const Var rows = graph.as_rows(h);
  const std::int64_t in = rows.shape()[1], bond_features = bonds.shape()[2];
  const op::NameScope scope(layers.builder(), name);
  const std::int64_t fan_in = 2 * in + bond_features;
  const auto product = [&](const char* part) {
    const Var weight = layers.weight(name + part, {width, in}, fan_in, width);
    return graph.as_nodes(op::gemm(rows, weight, {}, {.transpose_b = true}));
  };
  const Var to = product(".to"), from = product(".from");
  const Var weight = layers.weight(name + ".bond", {width, bond_features}, fan_in, width);
  const Var of_bonds = op::gemm(PackedGraph::as_rows(bonds), weight, layers.zeros(name + ".bias", {width}),
                                {.transpose_b = true});
  return graph.arriving(op::relu(graph.at_targets(to) + graph.at_sources(from) + graph.as_edges(of_bonds)));
}

graph::Graph build_mpnn(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const PolymerSizes sizes = polymer_sizes(options);
  graph::Graph graph("polymer-mpnn");
  Builder b(graph);
  Layers layers(b, seed);
  const MoleculeInputs in = molecule_inputs(b, batch, sizes.pack, true);
  const PackedGraph packed(b, in.edge_index, in.batch);
  Var h = in.x;
  for (std::int64_t i = 1; i <= sizes.layers; ++i) {
    const std::string name = fmt::format("step{}", i);
    const Var said = packed.as_rows(messages(layers, packed, h, in.edge_attr, name, sizes.width));
    const std::int64_t width = h.shape()[2];
    const Var own = layers.weight(name + ".own", {sizes.width, width}, width, sizes.width);
    b.set_name(name + ".own");
    const Var next = op::gemm(packed.as_rows(h), own, {}, {.transpose_b = true}) + said;
    b.set_name({});
    h = packed.as_nodes(layers.relu(layers.batch_norm(next, name + ".norm")));
  }
  read_out(layers, packed, h, in.batch, sizes.pack.graphs);
  return graph;
}

Recipe quick_recipe(std::int64_t batch, double epochs) {
  return {.batch = batch,
          .epochs = epochs,
          .loss = {.terms = {}, .own = loss_of_logarithms},
          .optimizer = {.kind = transform::OptimizerKind::adam, .weight_decay = 1e-5},
          .learning_rate = 3e-3,
          .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.05}};
}

// 23 steps an epoch: four fifths of 7,558 polymers in batches of about 256, which are 29 packs.
Recipe published_recipe() {
  return {.batch = 29,
          .epochs = 400,
          .loss = {.terms = {}, .own = loss_of_logarithms},
          .optimizer = {.kind = transform::OptimizerKind::adam, .weight_decay = 1e-5},
          .learning_rate = 1e-3,
          .schedule = {.kind = Schedule::Kind::constant, .give_up = 100},
          .source = "ANL-23/15: 23 steps an epoch, patience 100; loss, optimizer and rate are chosen here"};
}

Workload polymer_network(const char* name, const char* summary, bool with_bonds, const char* width) {
  const PackCapacity& pack = default_pack;
  return {
      .name = name,
      .summary = summary,
      .options = polymer_options(width),
      .inputs = molecule_ports(pack, with_bonds, "polymer"),
      .outputs = {{"Tg_K", ElementType::f32, {pack.graphs}, "K", "glass transition temperature"},
                  {"contribution", ElementType::f32, {pack.nodes}, "", "an atom's share in ln Tg"}},
      .targets = {{"measured_K", ElementType::f32, {pack.graphs}, "K", "what was measured"},
                  weight_port(pack)},
      .training = quick_recipe(8, 30),
      .published = published_recipe(),
      .by_default = RecipeName::quick,
      .open =
          [=](const TaskSettings& settings, const Options& model) {
            return open_polymers({.generator = name, .with_bonds = with_bonds}, settings, model);
          },
      .fit = fitted_polymer_mean,
      .metrics = {{"r2", "", true}, {"mae", "K"}, {"rmse", "K"}},
      .target = QualityTarget{.metric = "r2", .value = 0.85, .higher_is_better = true},
      .things_a_sample = 9,
  };
}

}  // namespace

std::vector<OptionSpec> polymer_options(const char* width) {
  std::vector<OptionSpec> options{{"layers", "4", "from neighbor to neighbor"},
                                  {"width", width, "of an atom's features in them"}};
  std::ranges::move(pack_options(default_pack, "polymers"), std::back_inserter(options));
  options.push_back({"fold", "1", "which fifth of the polymers is held out, 1 to 5"});
  return options;
}

PolymerSizes polymer_sizes(const Options& options) {
  return {.pack = pack_of(options, "polymers"),
          .layers = options.integer("layers", 1, 64),
          .width = options.integer("width", 1, 4096)};
}

// Within one unit it is a square, beyond that a line: outliers pull no more than others.
op::Var loss_of_logarithms(transform::LossPorts& ports) {
  const op::Var found = ports.output("Tg_K");
  const op::Var measured = ports.target("measured_K", found.type()),
                weight = ports.target("weight", found.type());
  const op::Var one = found.builder().scalar(ElementType::f32, 1);
  const op::Var distance = op::abs((op::log(found) - op::log(op::max(measured, one))) / log_kelvin_unit);
  const op::Var inside = op::min(distance, one);
  return op::reduce_mean(weight * (inside * inside * 0.5 + (distance - inside)));
}

Workload polymer_gcn() {
  Workload workload = polymer_network(
      "polymer-gcn", "glass transition of polymers from their repeat unit, by graph convolutions", false,
      "128");
  workload.build = build_gcn;
  workload.parameters = 63617;
  workload.flops = 29781128;
  workload.options.push_back({"self-loops", "yes", "an edge from every atom to itself"});
  return workload;
}

Workload polymer_mpnn() {
  Workload workload = polymer_network(
      "polymer-mpnn", "glass transition of polymers from their repeat unit, by messages along bonds", true,
      "96");
  workload.build = build_mpnn;
  workload.parameters = 103041;
  workload.flops = 52702984;
  return workload;
}

}  // namespace superstep::workload
