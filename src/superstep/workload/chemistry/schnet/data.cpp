// Clusters of atoms in packs: frames of a file, or generated water.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/baseline/materials/coulomb_ridge.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/streamed_file.h"
#include "superstep/workload/chemistry/schnet/schnet.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/packed_samples.h"

namespace superstep::workload {
namespace {

constexpr std::size_t reference_training =
    1000;  // clusters that kernel ridge regression learns from, at most

std::vector<NeighbourGraph> graphs_of(std::span<const Cluster> clusters, const SchnetSizes& sizes,
                                      ThreadPool& pool) {
  std::vector<NeighbourGraph> graphs(clusters.size());
  pool.parallel_for(static_cast<std::int64_t>(clusters.size()), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    graphs[at] = nearest_neighbours(clusters[at].atoms.positions, sizes.cutoff, sizes.neighbours);
  });
  return graphs;
}

// Clusters of one number of atoms are given the room of the one with the most edges: any of them can take the
// place of any other.
std::vector<GraphSize> sizes_of(std::span<const Cluster> clusters, std::span<const NeighbourGraph> graphs,
                                const PackCapacity& pack) {
  std::map<std::size_t, std::int64_t> most_edges;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const auto atoms = clusters[i].atoms.elements.size(), edges = graphs[i].source.size();
    if (static_cast<std::int64_t>(atoms) > pack.nodes || static_cast<std::int64_t>(edges) > pack.edges)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has {} atoms and {} edges, a pack has room for {} and {}", atoms, edges,
                              pack.nodes, pack.edges),
                  clusters[i].place, "build the model with more --set atoms=N and --set edges=N");
    auto& most = most_edges[atoms];
    most = std::max(most, static_cast<std::int64_t>(edges));
  }
  std::vector<GraphSize> sizes;
  for (const Cluster& cluster : clusters) {
    const auto atoms = cluster.atoms.elements.size();
    sizes.push_back({static_cast<std::int64_t>(atoms), most_edges.at(atoms)});
  }
  return sizes;
}

// One pack of the inputs z, pos, edge_index and batch.
class ClusterPack {
 public:
  ClusterPack(std::span<Tensor> tensors, std::size_t row)
      : z_(row_of<std::int64_t>(tensors[0], row)),
        positions_(row_of<float>(tensors[1], row)),
        edges_(row_of<std::int64_t>(tensors[2], row)),
        batch_(row_of<std::int64_t>(tensors[3], row)) {
    std::ranges::fill(z_, 0);
    std::ranges::fill(positions_, 0.0f);
    std::ranges::fill(edges_, -1);
    std::ranges::fill(batch_, -1);
  }

  void add(const Cluster& cluster, const NeighbourGraph& graph) {
    for (std::size_t e = 0; e < graph.source.size(); ++e, ++placed_) {
      edges_[placed_] = static_cast<std::int64_t>(atoms_) + graph.source[e];
      edges_[edges_.size() / 2 + placed_] = static_cast<std::int64_t>(atoms_) + graph.target[e];
    }
    for (std::size_t i = 0; i < cluster.atoms.elements.size(); ++i, ++atoms_) {
      z_[atoms_] = cluster.atoms.elements[i];
      batch_[atoms_] = clusters_;
      put(positions_, atoms_, cluster.atoms.positions[i]);
    }
    ++clusters_;
  }

  static void put(std::span<float> rows, std::size_t row, const data::Cartesian& v) {
    rows[3 * row] = static_cast<float>(v.x);
    rows[3 * row + 1] = static_cast<float>(v.y);
    rows[3 * row + 2] = static_cast<float>(v.z);
  }

 private:
  std::span<std::int64_t> z_;
  std::span<float> positions_;
  std::span<std::int64_t> edges_, batch_;
  std::size_t atoms_ = 0, placed_ = 0;
  std::int64_t clusters_ = 0;
};

class ClusterTask : public Task {
 public:
  // The first `training` clusters are learnt from.
  ClusterTask(std::vector<Cluster> clusters, std::size_t training, const SchnetSizes& sizes,
              const TaskSettings& settings)
      : clusters_(std::move(clusters)),
        graphs_(graphs_of(clusters_, sizes, *settings.pool)),
        packs_(sizes_of(clusters_, graphs_, sizes.pack), training, sizes.pack, settings.seed),
        forces_(sizes.forces),
        atoms_a_pack_(static_cast<double>(sizes.pack.nodes)),
        source_(settings.data.empty() ? generated_source(settings) : settings.data.string()) {
    for (std::size_t i = 0; i < training; ++i)
      training_atoms_ += static_cast<double>(clusters_[i].atoms.elements.size());
  }

  std::int64_t size() const override { return packs_.size(); }
  std::int64_t training_count() const override { return packs_.training_count(); }
  bool heeds_folds() const override { return true; }
  bool has_labels() const override {
    return std::ranges::all_of(clusters_, [](const Cluster& each) { return each.energy.has_value(); });
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const auto chosen = augment ? packs_.shuffled(indices[row], epoch) : packs_.graphs(indices[row]);
      ClusterPack pack(tensors, row);
      for (const std::size_t i : chosen) pack.add(clusters_[i], graphs_[i]);
      if (tensors.size() > 4) fill_energies(chosen, row, tensors[4], tensors[5]);
      if (tensors.size() > 6) fill_forces(chosen, row, tensors[6], tensors[7]);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const ClusterAnswers all = answers(indices, outputs);
    double whole = 0, each = 0, astray = 0, components = 0;
    for (std::size_t i = 0; i < all.clusters.size(); ++i) {
      const Cluster& cluster = *all.clusters[i];
      const double missed = std::abs(all.energies[i] - cluster.energy.value_or(NAN));
      whole += missed, each += missed / cluster.molecules;
      for (std::size_t k = 0; !all.forces.empty() && k < cluster.forces.size(); ++k) {
        const data::Cartesian apart = all.forces[i][k] - cluster.forces[k];
        astray += std::abs(apart.x) + std::abs(apart.y) + std::abs(apart.z), components += 3;
      }
    }
    const double count = static_cast<double>(all.clusters.size());
    std::vector<Metric> found{quality_metric("mae_per_molecule", 1e3 * each / count, "meV"),
                              quality_metric("mae", 1e3 * whole / count, "meV")};
    if (components > 0) found.push_back(quality_metric("force_mae", 1e3 * astray / components, "meV/A"));
    return found;
  }

  double reference_seconds() const override { return 5; }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    std::vector<baseline::LabelledCluster> known, judged;
    for (std::size_t i = 0; i < std::min(packs_.training_graphs(), reference_training); ++i)
      known.push_back(labelled(clusters_[i]));
    for (const std::int64_t pack : indices)
      for (const std::size_t i : packs_.graphs(pack)) judged.push_back(labelled(clusters_[i]));
    constexpr std::size_t fewest = 8;
    if (judged.empty() || known.size() < fewest || !has_labels() || !is_water()) return {};
    const baseline::CoulombRidge model(known, most_atoms(), pool);
    const auto error = [&](const Eigen::VectorXd& found) {
      return 1e3 * baseline::mean_error_a_molecule(judged, found);
    };
    References found;
    found.floor = Reference{"a line in the number of molecules", error(model.line(judged))};
    found.conventional =
        Reference{"kernel ridge on sorted Coulomb matrices", error(model.predict(judged, pool))};
    if (generated()) found.limit = Reference{"the potential that made the labels", 0};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    return present_clusters(answers(found.indices, found.outputs), page);
  }

  bool has_table() const override { return true; }
  bool writes_table(const std::filesystem::path& path) const override {
    return Task::writes_table(path) || is_xyz(path);
  }
  void write_table(const std::filesystem::path& path, std::span<const Tensor> outputs) const override {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const ClusterAnswers found = answers(all, outputs);
    std::vector<std::size_t> order(clusters_.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[place_[static_cast<std::size_t>(found.samples[i])]] = i;
    is_xyz(path) ? write_frames(path, found, order) : write_rows(path, found, order);
  }

  bool knows_domain() const override { return true; }
  std::vector<std::string> outside(const Task& training) const override {
    const auto* other = dynamic_cast<const ClusterTask*>(&training);
    if (!other) return {};
    const ClusterDomain domain(std::span(other->clusters_).first(other->packs_.training_graphs()));
    std::vector<std::string> notes;
    for (const Cluster& cluster : clusters_)
      if (const std::string words = domain.outside(cluster); !words.empty())
        notes.push_back(fmt::format("{} is unlike what was learnt from: {}", cluster.place, words));
    return notes;
  }

  nlohmann::json describe() const override {
    return {{"source", source_},
            {"samples", size()},
            {"training", training_count()},
            {"clusters", clusters_.size()},
            {"training_clusters", packs_.training_graphs()},
            {"packing", packs_.describe("clusters", "atoms", "edges")}};
  }

  // The clusters in the order of the file: where each of ours stood.
  void set_places(std::vector<std::size_t> places) { place_ = std::move(places); }

 private:
  static bool is_xyz(const std::filesystem::path& path) { return data::is_text(path, {".xyz", ".extxyz"}); }
  static baseline::LabelledCluster labelled(const Cluster& cluster) {
    return {cluster.atoms, cluster.energy.value_or(NAN), cluster.place};
  }
  bool generated() const { return source_.starts_with("generated"); }
  bool is_water() const {
    return std::ranges::all_of(clusters_, [](const Cluster& each) {
      return static_cast<std::size_t>(3 * each.molecules) == each.atoms.elements.size();
    });
  }
  int most_atoms() const {
    std::size_t most = 0;
    for (const Cluster& cluster : clusters_) most = std::max(most, cluster.atoms.elements.size());
    return static_cast<int>(most);
  }

  // An error grows as the root of the number of molecules: clusters count by their number's inverse.
  void fill_energies(const std::vector<std::size_t>& chosen, std::size_t row, Tensor& energy,
                     Tensor& weight) const {
    const auto energies = row_of<float>(energy, row), weights = row_of<float>(weight, row);
    std::ranges::fill(energies, 0.0f);
    std::ranges::fill(weights, 0.0f);
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const Cluster& cluster = clusters_[chosen[k]];
      energies[k] = static_cast<float>(cluster.energy.value_or(0));
      weights[k] = static_cast<float>(packs_.places_a_graph() / cluster.molecules);
    }
  }

  // A mean over atoms: what padding takes away from the mean is given back.
  void fill_forces(const std::vector<std::size_t>& chosen, std::size_t row, Tensor& force,
                   Tensor& weight) const {
    const auto forces = row_of<float>(force, row), weights = row_of<float>(weight, row);
    std::ranges::fill(forces, 0.0f);
    std::ranges::fill(weights, 0.0f);
    const double places_an_atom =
        static_cast<double>(packs_.training_count()) * atoms_a_pack_ / std::max(1.0, training_atoms_);
    std::size_t atom = 0;
    for (const std::size_t i : chosen) {
      for (std::size_t k = 0; k < clusters_[i].forces.size(); ++k) {
        ClusterPack::put(forces, atom + k, clusters_[i].forces[k]);
        std::fill_n(weights.begin() + static_cast<std::ptrdiff_t>(3 * (atom + k)), 3,
                    static_cast<float>(forces_ * places_an_atom));
      }
      atom += clusters_[i].atoms.elements.size();
    }
  }

  // `outputs`: energies, and forces where the model gives them.
  ClusterAnswers answers(std::span<const std::int64_t> indices, std::span<const Tensor> outputs) const {
    ClusterAnswers all;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      auto place = static_cast<std::int64_t>(row) * outputs[0].shape()[1];
      auto atom = outputs.size() > 1 ? static_cast<std::int64_t>(row) * outputs[1].shape()[1] : 0;
      for (const std::size_t i : packs_.graphs(indices[row])) {
        all.clusters.push_back(&clusters_[i]);
        all.samples.push_back(static_cast<std::int64_t>(i));
        all.energies.push_back(outputs[0].at(place++));
        if (outputs.size() < 2) continue;
        auto& forces = all.forces.emplace_back();
        for (std::size_t k = 0; k < clusters_[i].atoms.elements.size(); ++k, ++atom)
          forces.push_back(
              {outputs[1].at(3 * atom), outputs[1].at(3 * atom + 1), outputs[1].at(3 * atom + 2)});
      }
    }
    return all;
  }

  static void write_frames(const std::filesystem::path& path, const ClusterAnswers& found,
                           std::span<const std::size_t> order) {
    data::StreamedFile file(path);
    for (const std::size_t i : order) {
      data::XyzFrame frame{.configuration = found.clusters[i]->atoms, .labels = {}, .info = {}};
      frame.labels.energy = found.energies[i];
      if (!found.forces.empty()) frame.labels.forces = found.forces[i];
      file.write(data::format_xyz(frame));
    }
    file.close();
  }

  void write_rows(const std::filesystem::path& path, const ClusterAnswers& found,
                  std::span<const std::size_t> order) const {
    std::vector<std::string> header{"frame", "atoms", "molecules", "energy_eV"};
    if (has_labels()) header.push_back("known_eV");
    data::CsvWriter table(path, header);
    double frame = 1;
    for (const std::size_t i : order) {
      const Cluster& cluster = *found.clusters[i];
      table.cell(frame++).cell(static_cast<double>(cluster.atoms.elements.size()));
      table.cell(static_cast<double>(cluster.molecules)).cell(found.energies[i]);
      if (has_labels()) table.cell(*cluster.energy);
      table.end_row();
    }
    table.close();
  }

  std::vector<Cluster> clusters_;
  std::vector<NeighbourGraph> graphs_;
  PackedSamples packs_;
  double forces_, atoms_a_pack_, training_atoms_ = 0;
  std::string source_;
  std::vector<std::size_t> place_;
};

}  // namespace

std::unique_ptr<Task> open_clusters(const TaskSettings& settings, const Options& model) {
  std::vector<Cluster> read = read_clusters(settings, model);
  const SchnetSizes sizes = schnet_sizes(model);
  const bool learns = std::ranges::all_of(read, [](const Cluster& each) { return each.energy.has_value(); });
  if (settings.labels_required && sizes.forces > 0 &&
      std::ranges::all_of(read, [](const Cluster& each) { return each.forces.empty(); }))
    throw Error(ErrorCode::bad_file, "has no forces to learn from", settings.data.string(),
                "--set forces=0 learns from energies alone");
  // Clusters that are learnt from first; every fifth, by a hash of its number, is held out.
  std::vector<Cluster> clusters;
  std::vector<std::size_t> places;
  std::size_t training = 0;
  const int parts = settings.folds > 0 ? settings.folds : 5, part = std::max(0, settings.fold - 1);
  for (const bool held_out : {false, true}) {
    for (std::size_t i = 0; i < read.size(); ++i)
      if ((!learns || baseline::fold_of(std::to_string(i), parts) == part) == held_out)
        clusters.push_back(std::move(read[i])), places.push_back(i);
    if (!held_out) training = clusters.size();
  }
  auto task = std::make_unique<ClusterTask>(std::move(clusters), training, sizes, settings);
  task->set_places(std::move(places));
  return task;
}

std::map<std::string, Tensor> fitted_atom_energy(const Task& task, const Options& model, ThreadPool&) {
  const PackCapacity pack = schnet_sizes(model).pack;
  std::vector<Tensor> tensors{
      Tensor(ElementType::i64, {1, pack.nodes}),    Tensor(ElementType::f32, {1, pack.nodes, 3}),
      Tensor(ElementType::i64, {1, 2, pack.edges}), Tensor(ElementType::i64, {1, pack.nodes}),
      Tensor(ElementType::f32, {1, pack.graphs}),   Tensor(ElementType::f32, {1, pack.graphs})};
  double energy = 0, atoms = 0;
  for (std::int64_t sample = 0; sample < task.training_count(); ++sample) {
    task.fill(std::span(&sample, 1), 0, false, tensors);
    for (std::int64_t i = 0; i < pack.graphs; ++i) energy += tensors[4].at(i);
    for (std::int64_t i = 0; i < pack.nodes; ++i) atoms += tensors[3].at(i) >= 0 ? 1 : 0;
  }
  return {
      {schnet_last_bias, Tensor::full(ElementType::f32, {1}, energy / std::max(1.0, atoms) / energy_unit)}};
}

}  // namespace superstep::workload
