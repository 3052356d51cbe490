// Energies of atoms in periodic or open space, forces on them and virials, by the smooth descriptor se_e2_a
// (L. Zhang et al., "End-to-end symmetry preserving inter-atomic potential energy model", NeurIPS 2018; H.
// Wang et al., Comput. Phys. Commun. 228, 178 (2018)).
//
// coord f32 [N, atoms, 3] (A), type i64 [N, atoms] (-1: no atom), box f32 [N, 3, 3] (A, edges as rows),
// neighbours i64 [N, atoms, room] (rows of atoms, by type; -1: none), images f32 [N, atoms, room, 3] (whole
// numbers of edges) -> energy f32 [N, 1] (eV), force f32 [N, atoms, 3] (eV/A), virial f32 [N, 3, 3] (eV,
// -dE/d(strain)). Atoms stand in rows by type.
//
// Neighbour j of atom i at the distance r: s = switched_inverse(r), row R_j = (s, s x/r, s y/r, s z/r), less
// a mean and divided by deviations that are counted on the data; G_j = embedding of the neighbour's type of
// the first number; X = G^T R / room; D = X X_<^T, X_< the first rows of X; energy of i = network of i's type
// of D. Padding looks like a neighbour at the cutoff. Forces and virial are made of the gradient of the
// energy by the vectors between neighbours: reverse mode, built into the model, so that a loss of forces
// differentiates it once more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/file/atoms/element.h"
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
#include "superstep/transform/training/differentiate.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/materials/deepmd/deepmd.h"

namespace superstep::workload {
namespace {

std::string symbol_of(int element) { return std::string(data::element_symbol(element)); }

// 1 where an index names something, with one more axis of 1.
Var is_there(Var index, ElementType element) {
  const Var zero = index.builder().constant(Tensor::scalar<std::int64_t>(0));
  return op::unsqueeze(op::cast(op::greater_or_equal(index, zero), element), {index.shape().rank()});
}

// Each type's block of rows or neighbours, along an axis.
std::vector<Var> blocks(Var x, std::int64_t axis, const std::vector<std::int64_t>& lengths) {
  return lengths.size() == 1 ? std::vector{x} : op::split(x, axis, lengths);
}

Var joined(const std::vector<Var>& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts[0] : op::concat(parts, axis);
}

struct FramePorts {
  Var coord, type, box, neighbours, images;
};

class Deepmd {
 public:
  Deepmd(Layers& layers, const DeepmdSizes& sizes, const FramePorts& in)
      : b_(layers.builder()),
        layers_(layers),
        sizes_(sizes),
        in_(in),
        batch_(in.coord.shape()[0]),
        atoms_(sizes.all_atoms()),
        near_(sizes.all_near()) {}

  // From every atom to its neighbours, A: [N, atoms, room, 3]. What stands where there is none is not used.
  Var vectors() {
    const op::NameScope scope(b_, "vectors");
    const Var there = op::gather_rows(in_.coord, flat_neighbours());
    const Var images = op::reshape(in_.images, {batch_, atoms_ * near_, 3});
    const Var shifted = op::reshape(there + op::matmul(images, in_.box), {batch_, atoms_, near_, 3});
    return shifted - op::unsqueeze(in_.coord, {2});
  }

  // Of each atom, eV: [N, atoms, 1]; 0 where there is none.
  Var atom_energies(Var vectors) {
    const Var factor = factors(environment(vectors));
    const Var all = descriptor(factor);
    std::vector<Var> energies;
    const std::vector<Var> by_type = blocks(all, 1, sizes_.atoms);
    for (std::size_t t = 0; t < by_type.size(); ++t)
      energies.push_back(fitted(by_type[t], sizes_.elements[t]));
    const op::NameScope scope(b_, "energies");
    return joined(energies, 1) * is_there(in_.type, sizes_.outer);
  }

  // From the gradient of the energy by the vectors: on each atom, eV/A.
  Var forces(Var gradient) {
    const op::NameScope scope(b_, "force");
    const Var pulled = op::reduce_sum(gradient, {2});
    const Var pulling =
        op::segment_sum(op::reshape(gradient, {batch_, atoms_ * near_, 3}), flat_neighbours(), atoms_);
    return pulled - pulling;
  }

  Var virial(Var gradient, Var vectors) {
    const op::NameScope scope(b_, "virial");
    const Var rows = op::reshape(gradient, {batch_, atoms_ * near_, 3});
    const Var ends = op::reshape(vectors, {batch_, atoms_ * near_, 3});
    return op::matmul(op::transpose(rows, {0, 2, 1}), ends) * -1.0;
  }

 private:
  Var flat_neighbours() { return op::reshape(in_.neighbours, {batch_, atoms_ * near_}); }

  // A state of one number for each centre type, for every row: [1, atoms, 1, 1].
  Var counted(const char* name, double value) {
    const auto types = static_cast<std::int64_t>(sizes_.elements.size());
    const Var state = b_.state(name, Tensor::full(sizes_.outer, {types}, value));
    if (types == 1) return op::reshape(state, {1, 1, 1, 1});
    std::vector<Var> rows;
    const std::vector<Var> each = op::split(state, 0, std::vector<std::int64_t>(sizes_.elements.size(), 1));
    for (std::size_t t = 0; t < each.size(); ++t) rows.push_back(op::expand(each[t], {sizes_.atoms[t]}));
    return op::reshape(op::concat(rows, 0), {1, atoms_, 1, 1});
  }

  struct Environment {
    Var weight;  // of neighbours: the first column of the rows, [N, atoms, room, 1]
    Var rows;    // R, normalised: [N, atoms, room, 4]
  };
  Environment environment(Var vectors) {
    const op::NameScope scope(b_, "environment");
    const Var there = is_there(in_.neighbours, sizes_.outer);
    // Padding is moved beyond the cutoff, where nothing has a value or a slope.
    Tensor beyond(sizes_.outer, {3});
    beyond.set(0, 2 * sizes_.cutoff);
    const Var placed = vectors * there + (1.0 - there) * b_.constant(beyond);
    // Not below a hundredth of an A, where the root has a slope.
    const Var squares = op::reduce_sum(placed * placed, {3}, true);
    const Var distance = op::sqrt(op::max(squares, b_.scalar(sizes_.outer, 1e-4)));
    const Var x = op::clip((distance - sizes_.smooth) / (sizes_.cutoff - sizes_.smooth), 0, 1);
    const Var weight = (x * x * x * (x * (x * -6.0 + 15.0) - 10.0) + 1.0) / distance;
    const Var radial = (weight - counted(radial_mean, 0)) / counted(radial_deviation, 1);
    const Var angular = placed * (weight / distance) / counted(angular_deviation, 1);
    return {op::cast(radial, sizes_.inner),
            op::cast(op::concat(std::vector{radial, angular}, 3), sizes_.inner)};
  }

  Var embedded(Var s, const std::string& name) {
    Var x = s;
    for (std::size_t i = 0; i < sizes_.embedding.size(); ++i) {
      const std::int64_t width = sizes_.embedding[i], before = x.shape()[1];
      const std::string layer = fmt::format("{}.embed{}", name, i + 1);
      const Var pre = layers_.dense(x, layer, width);
      const op::NameScope scope(b_, layer);
      const Var made = op::tanh(pre);
      x = width == before ? x + made : width == 2 * before ? op::concat(std::vector{x, x}, 1) + made : made;
    }
    return x;
  }

  // X: [N * atoms, 4, width of the embedding].
  Var factors(const Environment& around) {
    const std::vector<Var> by_type = blocks(around.rows, 2, sizes_.near),
                           weights = blocks(around.weight, 2, sizes_.near);
    Var sum;
    for (std::size_t t = 0; t < by_type.size(); ++t) {
      const std::int64_t room = sizes_.near[t], all = batch_ * atoms_;
      const Var g = embedded(op::reshape(weights[t], {all * room, 1}), symbol_of(sizes_.elements[t]));
      const op::NameScope scope(b_, "descriptor");
      const Var r = op::transpose(op::reshape(by_type[t], {all, room, 4}), {0, 2, 1});
      const Var part = op::matmul(r, op::reshape(g, {all, room, sizes_.embedding.back()}));
      sum = sum.valid() ? sum + part : part;
    }
    const op::NameScope scope(b_, "descriptor");
    return sum / static_cast<double>(near_);
  }

  // D: [N, atoms, width * axis].
  Var descriptor(Var factor) {
    const op::NameScope scope(b_, "descriptor");
    const std::int64_t width = sizes_.embedding.back();
    const Var first = op::transpose(factor, {0, 2, 1});
    const Var second = sizes_.axis == width ? factor : op::slice(factor, {0}, {sizes_.axis}, {2});
    return op::reshape(op::matmul(first, second), {batch_, atoms_, width * sizes_.axis});
  }

  Var fitted(Var all, int element) {
    const std::string name = symbol_of(element);
    const std::int64_t rows = all.shape()[1];
    Var x = op::reshape(all, {batch_ * rows, all.shape()[2]});
    for (std::size_t i = 0; i < sizes_.fitting.size(); ++i) {
      const std::string layer = fmt::format("{}.fit{}", name, i + 1);
      const std::int64_t width = sizes_.fitting[i];
      const Var pre = layers_.dense(x, layer, width);
      const op::NameScope scope(b_, layer);
      const Var made = op::tanh(pre);
      // A step of a tenth at first, as published.
      x = width == x.shape()[1] ? x + made * layers_.filled(layer + ".step", {width}, 0.1) : made;
    }
    const Var energy = layers_.dense(x, name + ".energy", 1);
    return op::reshape(op::cast(energy, sizes_.outer), {batch_, rows, 1});
  }

  Builder& b_;
  Layers& layers_;
  const DeepmdSizes& sizes_;
  const FramePorts& in_;
  std::int64_t batch_, atoms_, near_;
};

graph::Graph build_deepmd(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const DeepmdSizes sizes = deepmd_sizes(options);
  graph::Graph graph("deepmd");
  Builder b(graph);
  Layers layers(b, seed, FirstWeights::xavier, sizes.inner);
  const std::int64_t atoms = sizes.all_atoms(), near = sizes.all_near();
  FramePorts in;
  in.coord = b.input("coord", sizes.outer, {batch, atoms, 3});
  in.type = b.input("type", ElementType::i64, {batch, atoms});
  in.box = b.input("box", sizes.outer, {batch, 3, 3});
  in.neighbours = b.input("neighbours", ElementType::i64, {batch, atoms, near});
  in.images = b.input("images", sizes.outer, {batch, atoms, near, 3});
  Deepmd model(layers, sizes, in);
  const Var vectors = model.vectors();
  const Var of_atoms = model.atom_energies(vectors);
  b.set_name("energy");
  b.output("energy", op::reduce_sum(of_atoms, {1}));
  b.set_name("gradient");
  const Var outputs[] = {of_atoms}, wrt[] = {vectors},
            seeds[] = {b.constant(Tensor::full(sizes.outer, of_atoms.shape(), 1))};
  const Var gradient = transform::or_zeros(transform::vjp(b, outputs, seeds, wrt)[0], vectors);
  b.set_name({});
  b.output("force", model.forces(gradient));
  b.output("virial", model.virial(gradient, vectors));
  return graph;
}

Recipe quick_recipe() {
  return {.batch = 4,
          .epochs = 60,
          .loss = {.terms = {}, .own = loss_of_frames},
          .optimizer = {.kind = transform::OptimizerKind::adam},
          .learning_rate = 3e-3,
          .schedule = {.kind = Schedule::Kind::cosine, .final_share = 1e-3}};
}

Recipe published_recipe() {
  return {
      .batch = 1,
      .epochs = 3125,
      .loss = {.terms = {}, .own = loss_of_frames},
      .optimizer = {.kind = transform::OptimizerKind::adam},
      .learning_rate = 1e-3,
      .schedule = {.kind = Schedule::Kind::stairs, .period = 15.625, .factor = 0.95},
      .model_options = {"halving=211"},
      .source =
          "Wang et al., Comput. Phys. Commun. 228, 178 (2018): loss, prefactors and Adam; a million steps, "
          "0.95 each 5000, here as epochs of 320 frames"};
}

}  // namespace

std::string energy_bias_name(int element) { return symbol_of(element) + ".energy.bias"; }

op::Var loss_of_frames(transform::LossPorts& ports) {
  const Var energy = ports.output("energy"), force = ports.output("force"), virial = ports.output("virial");
  const std::int64_t batch = energy.shape()[0];
  const graph::ValueType weight{energy.element(), {batch, 1}};
  const auto term = [&](Var missed, Var weighs) {
    const std::int64_t numbers = missed.shape().element_count() / batch;
    const Var rows = op::reshape(missed, {batch, numbers});
    return op::reduce_mean(op::reduce_sum(rows * rows, {1}, true) * weighs);
  };
  const Var energy_target = ports.target("energy_target", energy.type());
  const Var energy_weight = ports.target("energy_weight", weight);
  const Var force_target = ports.target("force_target", force.type());
  const Var force_weight = ports.target("force_weight", weight);
  const Var virial_target = ports.target("virial_target", virial.type());
  const Var virial_weight = ports.target("virial_weight", weight);
  return term(energy - energy_target, energy_weight) + term(force - force_target, force_weight) +
         term(virial - virial_target, virial_weight);
}

Workload deepmd() {
  return {
      .name = "deepmd",
      .summary = "energies, forces and virials of atoms in boxes, by smooth descriptors: a force field",
      .options = deepmd_options(),
      .build = build_deepmd,
      .parameters = 507091,  // 6,450 of an embedding and 500,641 of a fitting network
      .flops = 157638057,
      .inputs = {{"coord", ElementType::f32, {32, 3}, "A", "positions"},
                 {"type", ElementType::i64, {32}, "", "an atom's type, rows sorted by it; -1: none"},
                 {"box", ElementType::f32, {3, 3}, "A", "edges of the periodic box, as rows"},
                 {"neighbours", ElementType::i64, {32, 100}, "", "rows of an atom's neighbors, or -1"},
                 {"images", ElementType::f32, {32, 100, 3}, "", "edges of the box between them"}},
      .outputs = {{"energy", ElementType::f32, {1}, "eV", "of all atoms"},
                  {"force", ElementType::f32, {32, 3}, "eV/A", "minus the energy's gradient"},
                  {"virial", ElementType::f32, {3, 3}, "eV", "minus the energy's derivative by strain"}},
      .targets = {{"energy_target", ElementType::f32, {1}, "eV", "of all atoms"},
                  {"energy_weight", ElementType::f32, {1}, "eV^-2", "in the loss; 0: not known"},
                  {"force_target", ElementType::f32, {32, 3}, "eV/A", "on each atom"},
                  {"force_weight", ElementType::f32, {1}, "(eV/A)^-2", "in the loss; 0: not known"},
                  {"virial_target", ElementType::f32, {3, 3}, "eV", "-dE/d(strain)"},
                  {"virial_weight", ElementType::f32, {1}, "eV^-2", "in the loss; 0: not known"}},
      .training = quick_recipe(),
      .published = published_recipe(),
      .by_default = RecipeName::quick,
      .open = open_frames,
      .fit = counted_statistics,
      .metrics = {{"energy_rmse", "meV/atom"}, {"force_rmse", "meV/A"}, {"virial_rmse", "meV/atom"}},
      .target = QualityTarget{.metric = "energy_rmse", .value = 2, .higher_is_better = false},
  };
}

}  // namespace superstep::workload
