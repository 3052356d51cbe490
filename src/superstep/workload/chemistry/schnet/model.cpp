// Energies of clusters of atoms, and the forces on the atoms, by a continuous-filter network (K. Schuett et
// al., J. Chem. Phys. 148, 241722 (2018); of water clusters: J. Bilbrey et al., J. Chem. Phys. 153, 024302
// (2020), with the widths of H. Helal et al., arXiv 2211.13853).
//
// z i64 [N, atoms], pos f32 [N, atoms, 3] (A), edge_index i64 [N, 2, edges], batch i64 [N, atoms] -> energy
// f32 [N, clusters] (eV), forces f32 [N, atoms, 3] (eV/A). A sample is a pack of several clusters
// (workload/graph_packs.h): batch is the number of each atom's cluster in the pack, edges lead from atom
// edge_index[0] to its neighbour's row edge_index[1], and -1 is padding.
//
// x_i = embedding(z_i); four times x_i += W3 ssp(W2 sum_j (W1 x_j) * f(d_ij)), f = (ssp(g W4) W5) c(d) with
// Gaussians g of the distance and c = (cos(pi d / cutoff) + 1) / 2; energy = sum_i W7 ssp(W6 x_i); ssp(x) =
// log((1 + e^x) / 2). Forces are minus the gradient of the energy by the positions: reverse mode, built into
// the model, so that a loss of forces differentiates it once more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/trigonometry.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/transform/training/differentiate.h"
#include "superstep/workload/chemistry/schnet/schnet.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/packed_graph.h"

namespace superstep::workload {
namespace {

Var shifted_softplus(Var x) { return op::softplus(x) - std::numbers::ln2; }

// What the edges of a pack are to every block: their lengths in Gaussians, and the cutoff.
struct Edges {
  Var gaussians;  // [N * edges, gaussians]
  Var cutoff;     // [N, edges, 1]
};

// Not below a thousandth of an A, where the root has a slope: edges of padding have no length.
Var lengths(const PackedGraph& graph, Var positions) {
  Builder& b = positions.builder();
  const op::NameScope scope(b, "distance");
  const Var apart = op::gather_rows(positions, graph.source()) - op::gather_rows(positions, graph.target());
  const Var squares = op::reduce_sum(apart * apart, {2}, true);
  return op::sqrt(op::max(squares, b.scalar(ElementType::f32, 1e-6)));
}

Edges describe_edges(const PackedGraph& graph, Var positions, const SchnetSizes& sizes) {
  Builder& b = positions.builder();
  const Var distance = lengths(graph, positions);
  const double spacing = sizes.cutoff / static_cast<double>(std::max<std::int64_t>(1, sizes.gaussians - 1));
  Tensor centres(ElementType::f32, {sizes.gaussians});
  for (std::int64_t i = 0; i < sizes.gaussians; ++i) centres.set(i, static_cast<double>(i) * spacing);
  Edges edges;
  {
    const op::NameScope scope(b, "gaussians");
    const Var from_centre = (distance - b.constant(centres)) / spacing;
    edges.gaussians = PackedGraph::as_rows(op::exp(from_centre * from_centre * -0.5));
  }
  const op::NameScope scope(b, "cutoff");
  edges.cutoff = (op::cos(distance * (std::numbers::pi / sizes.cutoff)) + 1.0) * 0.5;
  return edges;
}

class Schnet {
 public:
  Schnet(Layers& layers, const PackedGraph& graph, const SchnetSizes& sizes)
      : layers_(layers), graph_(graph), sizes_(sizes) {}

  // What each atom adds to the energy, in units: [N, atoms, 1].
  Var atom_energies(Var z, Var positions) {
    const Edges edges = describe_edges(graph_, positions, sizes_);
    Var x = embed(z);
    for (std::int64_t i = 1; i <= sizes_.blocks; ++i)
      x = x + interaction(x, edges, fmt::format("block{}", i));
    const Var hidden =
        activated(layers_.dense(x, "hidden", std::max<std::int64_t>(1, sizes_.width / 2)), "hidden");
    return graph_.as_nodes(layers_.dense(hidden, "out", 1));
  }

 private:
  Var activated(Var x, const std::string& name) {
    const op::NameScope scope(layers_.builder(), name);
    return shifted_softplus(x);
  }

  // Rows of the standard deviation 1: [N * atoms, width].
  Var embed(Var z) {
    const op::NameScope scope(layers_.builder(), "embedding");
    const Var table = layers_.uniform("embedding.weight", {embedded_elements, sizes_.width}, std::sqrt(3.0));
    return PackedGraph::as_rows(op::gather(table, z));
  }

  Var filters(const Edges& edges, const std::string& name) {
    const Var hidden =
        activated(layers_.dense(edges.gaussians, name + ".filter1", sizes_.width), name + ".filter1");
    const Var made = graph_.as_edges(layers_.dense(hidden, name + ".filter2", sizes_.width));
    const op::NameScope scope(layers_.builder(), name + ".filter2");
    return made * edges.cutoff;
  }

  Var interaction(Var x, const Edges& edges, const std::string& name) {
    Builder& b = layers_.builder();
    const Var filter = filters(edges, name);
    b.set_name(name + ".in");
    const Var weight =
        layers_.weight(name + ".in.weight", {sizes_.width, sizes_.width}, sizes_.width, sizes_.width);
    const Var own = graph_.as_nodes(op::gemm(x, weight, {}, {.transpose_b = true}));
    b.set_name(name + ".convolution");
    const Var heard = op::gather_rows(own, graph_.source()) * filter;
    const Var sum = PackedGraph::as_rows(op::segment_sum(heard, graph_.target(), graph_.nodes()));
    b.set_name({});
    const Var mixed = activated(layers_.dense(sum, name + ".mix", sizes_.width), name + ".mix");
    return layers_.dense(mixed, name + ".out", sizes_.width);
  }

  Layers& layers_;
  const PackedGraph& graph_;
  const SchnetSizes& sizes_;
};

// Each real atom's energy counts once: the gradient of the sum of all clusters' energies.
Var forces_of(const PackedGraph& graph, Var of_atoms, Var positions) {
  Builder& b = positions.builder();
  const op::NameScope scope(b, "forces");
  const Var outputs[] = {of_atoms}, seeds[] = {graph.is_node()}, wrt[] = {positions};
  const std::vector<Var> gradient = transform::vjp(b, outputs, seeds, wrt);
  b.set_name("forces");
  return transform::or_zeros(gradient[0], positions) * -energy_unit;
}

graph::Graph build_schnet(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const SchnetSizes sizes = schnet_sizes(options);
  graph::Graph graph("schnet");
  Builder b(graph);
  Layers layers(b, seed);
  const PackCapacity& pack = sizes.pack;
  const Var z = b.input("z", ElementType::i64, {batch, pack.nodes});
  const Var positions = b.input("pos", ElementType::f32, {batch, pack.nodes, 3});
  const Var edge_index = b.input("edge_index", ElementType::i64, {batch, 2, pack.edges});
  const Var cluster = b.input("batch", ElementType::i64, {batch, pack.nodes});
  const PackedGraph packed(b, edge_index, cluster);
  const Var of_atoms = Schnet(layers, packed, sizes).atom_energies(z, positions);
  b.set_name("energy");
  const Var sums = op::segment_sum(of_atoms, cluster, pack.graphs);
  b.output("energy", op::reshape(sums * energy_unit, {batch, pack.graphs}));
  b.set_name({});
  if (sizes.forces > 0) b.output("forces", forces_of(packed, of_atoms, positions));
  return graph;
}

Recipe quick_recipe() {
  return {.batch = 1,
          .epochs = 45,
          .loss = {.terms = {}, .own = loss_of_clusters},
          .optimizer = {.kind = transform::OptimizerKind::adam},
          .learning_rate = 2e-3,
          .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.05}};
}

Recipe published_recipe() {
  return {.batch = 8,
          .epochs = 25,
          .loss = {.terms = {}, .own = loss_of_clusters},
          .optimizer = {.kind = transform::OptimizerKind::adam},
          .learning_rate = 1e-3,
          .schedule = {.kind = Schedule::Kind::constant},
          .model_options = {"forces=0"},
          .source =
              "arXiv 2211.13853: mean squared error of energies, Adam; epochs, rate and the size of "
              "packs are chosen here"};
}

}  // namespace

std::vector<OptionSpec> schnet_options() {
  return {{"blocks", "4", "interaction blocks"},
          {"width", "100", "of an atom's features and of filters"},
          {"gaussians", "25", "in which a distance is written"},
          {"cutoff", "6", "beyond which atoms are no neighbors, A"},
          {"neighbours", "28", "nearest ones that an atom hears of, at most"},
          {"forces", "100", "weight of their errors, (eV/A)^-2; 0: energies alone, learnt and given"},
          {"atoms", "96", "room for atoms in a pack"},
          {"edges", "2640", "room for edges in a pack"},
          {"clusters", "10", "room for clusters in a pack"},
          {"most", "30", "molecules of a generated cluster, at most"}};
}

SchnetSizes schnet_sizes(const Options& options) {
  return {.pack = {.nodes = options.integer("atoms", 2, 65536),
                   .edges = options.integer("edges", 2, 1 << 22),
                   .graphs = options.integer("clusters", 1, 65536)},
          .blocks = options.integer("blocks", 1, 64),
          .width = options.integer("width", 1, 4096),
          .gaussians = options.integer("gaussians", 2, 4096),
          .cutoff = options.number("cutoff", 0.5, 100),
          .neighbours = static_cast<int>(options.integer("neighbours", 1, 4096)),
          .forces = options.number("forces", 0, 1e6)};
}

op::Var loss_of_clusters(transform::LossPorts& ports) {
  const Var found = ports.output("energy");
  const Var missed = (found - ports.target("energy_target", found.type())) / energy_unit;
  const Var loss = op::reduce_mean(ports.target("weight", found.type()) * missed * missed);
  if (!ports.has_output("forces")) return loss;
  const Var forces = ports.output("forces");
  const Var astray = forces - ports.target("forces_target", forces.type());
  return loss + op::reduce_mean(ports.target("force_weight", forces.type()) * astray * astray);
}

Workload schnet() {
  const PackCapacity pack{.nodes = 96, .edges = 2640, .graphs = 10};
  return {
      .name = "schnet",
      .summary = "energies of water clusters and forces on their atoms, by continuous filters",
      .options = schnet_options(),
      .build = build_schnet,
      .parameters = 186701,
      .flops = 590861050,
      .inputs =
          {{"z", ElementType::i64, {pack.nodes}, "", "atomic numbers"},
           {"pos", ElementType::f32, {pack.nodes, 3}, "A", "positions"},
           {"edge_index", ElementType::i64, {2, pack.edges}, "", "atoms an edge joins: from, to; or -1"},
           {"batch", ElementType::i64, {pack.nodes}, "", "an atom's cluster in the pack, or -1"}},
      .outputs = {{"energy", ElementType::f32, {pack.graphs}, "eV", "of each cluster"},
                  {"forces", ElementType::f32, {pack.nodes, 3}, "eV/A", "minus the energy's gradient"}},
      .targets = {{"energy_target", ElementType::f32, {pack.graphs}, "eV", "of each cluster"},
                  {"weight", ElementType::f32, {pack.graphs}, "", "of a place in the loss; 0: empty"},
                  {"forces_target", ElementType::f32, {pack.nodes, 3}, "eV/A", "on each atom"},
                  {"force_weight", ElementType::f32, {pack.nodes, 3}, "", "in the loss; 0: not known"}},
      .training = quick_recipe(),
      .published = published_recipe(),
      .by_default = RecipeName::quick,
      .open = open_clusters,
      .fit = fitted_atom_energy,
      .metrics = {{"mae_per_molecule", "meV"}, {"mae", "meV"}, {"force_mae", "meV/A"}},
      .target = QualityTarget{.metric = "mae_per_molecule", .value = 5, .higher_is_better = false},
  };
}

}  // namespace superstep::workload
