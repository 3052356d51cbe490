// A trained model as a force field of any number of atoms in open space.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/workload/atom_model.h"
#include "superstep/workload/chemistry/schnet/schnet.h"

namespace superstep::workload {
namespace {

// Outputs, and inputs in the order of the model.
enum { energy_output, forces_output };
enum { z_input, positions_input, edges_input, cluster_input };

class SchnetAtoms : public AtomModel {
 public:
  SchnetAtoms(const std::vector<int>& elements, const SchnetSizes& sizes)
      : elements_(elements), cutoff_(sizes.cutoff), neighbours_(sizes.neighbours) {
    if (!(sizes.forces > 0)) throw Error(ErrorCode::unsupported, "was trained without forces (forces=0)");
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (elements[i] < 1 || elements[i] >= embedded_elements)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("atom {} has the atomic number {}: the model knows those below {}", i + 1,
                                elements[i], embedded_elements));
    const auto atoms = static_cast<std::int64_t>(elements.size());
    const std::int64_t near = std::min<std::int64_t>(neighbours_, std::max<std::int64_t>(1, atoms - 1));
    nodes_ = std::max<std::int64_t>(2, atoms);
    edges_ = std::max<std::int64_t>(2, atoms * near);
  }

  std::vector<std::string> room() const override {
    return {fmt::format("atoms={}", nodes_), fmt::format("edges={}", edges_), "clusters=1"};
  }
  std::vector<int> elements() const override {
    std::vector<int> all(static_cast<std::size_t>(embedded_elements - 1));
    std::iota(all.begin(), all.end(), 1);
    return all;
  }
  double cutoff() const override { return cutoff_; }
  bool takes_box() const override { return false; }
  bool gives_virial() const override { return false; }

  void fill(const data::Configuration& atoms, std::span<Tensor> inputs) override {
    if (atoms.cell)
      throw Error(ErrorCode::unsupported, "is a periodic box, and schnet is of atoms in open space", "cell");
    const auto z = inputs[z_input].as<std::int64_t>(), cluster = inputs[cluster_input].as<std::int64_t>();
    std::ranges::fill(cluster, -1);
    for (std::size_t i = 0; i < elements_.size(); ++i) z[i] = atoms.elements[i], cluster[i] = 0;
    const std::vector<data::Cartesian> positions = about_their_middle(atoms.positions);
    const auto places = inputs[positions_input].as<float>();
    for (std::size_t i = 0; i < positions.size(); ++i) {
      places[3 * i] = static_cast<float>(positions[i].x);
      places[3 * i + 1] = static_cast<float>(positions[i].y);
      places[3 * i + 2] = static_cast<float>(positions[i].z);
    }
    const NeighbourGraph graph = nearest_neighbours(positions, cutoff_, neighbours_);
    const auto edges = inputs[edges_input].as<std::int64_t>();
    std::ranges::fill(edges, -1);
    std::ranges::copy(graph.source, edges.begin());
    std::ranges::copy(graph.target, edges.begin() + edges_);
  }

  data::Labels read(std::span<const Tensor> outputs) const override {
    data::Labels found{.energy = outputs[energy_output].at(0), .forces = {}, .virial = {}};
    const auto forces = outputs[forces_output].as<float>();
    for (std::size_t i = 0; i < elements_.size(); ++i)
      found.forces.push_back({forces[3 * i], forces[3 * i + 1], forces[3 * i + 2]});
    return found;
  }

 private:
  // f32 has most digits near zero.
  static std::vector<data::Cartesian> about_their_middle(std::vector<data::Cartesian> positions) {
    data::Cartesian middle;
    for (const data::Cartesian& p : positions) middle += p * (1 / static_cast<double>(positions.size()));
    for (data::Cartesian& p : positions) p -= middle;
    return positions;
  }

  const std::vector<int> elements_;
  const double cutoff_;
  const int neighbours_;
  std::int64_t nodes_ = 0, edges_ = 0;
};

}  // namespace

std::unique_ptr<AtomModel> schnet_atoms(const std::vector<int>& elements, const Options& model) {
  return std::make_unique<SchnetAtoms>(elements, schnet_sizes(model));
}

}  // namespace superstep::workload
