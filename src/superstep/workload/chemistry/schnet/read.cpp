// Clusters of files, and generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/file/atoms/ase_database.h"
#include "superstep/file/atoms/clusters.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/workload/chemistry/schnet/schnet.h"
#include "superstep/workload/generated.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t default_clusters = 4000;

[[noreturn]] void refuse(const Cluster& cluster, const std::string& message) {
  throw Error(ErrorCode::bad_file, message, cluster.place);
}

void check_atoms(const Cluster& cluster) {
  const auto& elements = cluster.atoms.elements;
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i] < 1 || elements[i] >= embedded_elements)
      refuse(cluster, fmt::format("atom {} is of element {}: there is room for 1 to {}", i + 1, elements[i],
                                  embedded_elements - 1));
  data::require_cluster(cluster.atoms, cluster.place);
}

void check_labels(const Cluster& cluster, bool required) {
  if (required || cluster.energy) data::require_energy(cluster.energy, cluster.place);
  for (std::size_t i = 0; i < cluster.forces.size(); ++i)
    if (!std::isfinite(data::norm(cluster.forces[i])))
      refuse(cluster, fmt::format("the force on atom {} is not finite", data::atom_name(cluster.atoms, i)));
}

// n where the atoms are those of n molecules of water; else 1.
int molecules_of(const std::vector<int>& elements) {
  const auto oxygens = std::ranges::count(elements, 8), hydrogens = std::ranges::count(elements, 1);
  const bool water = oxygens > 0 && hydrogens == 2 * oxygens &&
                     oxygens + hydrogens == static_cast<std::ptrdiff_t>(elements.size());
  return water ? static_cast<int>(oxygens) : 1;
}

std::vector<Cluster> read_frames(const std::filesystem::path& path, std::int64_t limit) {
  std::vector<Cluster> clusters;
  data::XyzReader reader(path);
  for (data::XyzFrame frame;
       (limit <= 0 || static_cast<std::int64_t>(clusters.size()) < limit) && reader.next(frame);)
    clusters.push_back({.atoms = std::move(frame.configuration),
                        .energy = frame.labels.energy,
                        .forces = std::move(frame.labels.forces),
                        .place = fmt::format("{}, frame {}", path.string(), clusters.size() + 1)});
  return clusters;
}

std::vector<Cluster> read_rows(const std::filesystem::path& path, std::int64_t limit) {
  std::vector<Cluster> clusters;
  data::for_ase_frames(path, [&](data::AseFrame frame) {
    clusters.push_back({.atoms = std::move(frame.configuration),
                        .energy = frame.labels.energy,
                        .forces = std::move(frame.labels.forces),
                        .place = fmt::format("{}: row {}", path.string(), frame.id)});
    return limit <= 0 || static_cast<std::int64_t>(clusters.size()) < limit;
  });
  return clusters;
}

data::Cartesian vector_at(const Tensor& tensor, std::int64_t row) {
  return {tensor.at(3 * row), tensor.at(3 * row + 1), tensor.at(3 * row + 2)};
}

// Of the fields z [n, atoms], pos [n, atoms, 3], and where they are there energy [n], forces [n, atoms, 3].
std::vector<Cluster> clusters_of(const Fields& fields, const std::string& where) {
  const Tensor &z = fields.at("z"), &pos = fields.at("pos");
  const auto energy = fields.find("energy"), forces = fields.find("forces");
  const std::int64_t atoms = z.shape()[1];
  std::vector<Cluster> clusters(static_cast<std::size_t>(z.shape()[0]));
  for (std::int64_t i = 0; i < z.shape()[0]; ++i) {
    Cluster& cluster = clusters[static_cast<std::size_t>(i)];
    cluster.place = fmt::format("{}, cluster {}", where, i + 1);
    if (energy != fields.end()) cluster.energy = energy->second.at(i);
    for (std::int64_t a = i * atoms; a < (i + 1) * atoms && z.at(a) != 0; ++a) {
      cluster.atoms.elements.push_back(static_cast<int>(z.at(a)));
      cluster.atoms.positions.push_back(vector_at(pos, a));
      if (forces != fields.end()) cluster.forces.push_back(vector_at(forces->second, a));
    }
  }
  return clusters;
}

std::vector<Cluster> read_hdf5_clusters(const std::filesystem::path& path, std::int64_t limit) {
  const data::ArrayFile file(path);
  Fields fields;
  const std::int64_t any[] = {-1, -1};
  const Tensor z = file.read("z", ElementType::i32, any);
  const std::int64_t count = z.shape()[0], atoms = z.shape()[1];
  const std::int64_t one[] = {count}, vectors[] = {count, atoms, 3};
  fields.emplace("z", z);
  fields.emplace("pos", file.read("pos", ElementType::f64, vectors));
  if (file.contains("energy")) fields.emplace("energy", file.read("energy", ElementType::f64, one));
  if (file.contains("forces")) fields.emplace("forces", file.read("forces", ElementType::f64, vectors));
  std::vector<Cluster> clusters = clusters_of(fields, path.string());
  if (limit > 0 && limit < count) clusters.resize(static_cast<std::size_t>(limit));
  return clusters;
}

std::vector<Cluster> generated_clusters(const TaskSettings& settings, const Options& model) {
  const std::int64_t most = model.integer("most", 3, 1000);
  const std::vector<std::string> size{fmt::format("most={}", most)};
  return clusters_of(generated_fields(*make_generator("schnet", size), settings, default_clusters),
                     generated_source(settings));
}

}  // namespace

std::vector<Cluster> read_clusters(const TaskSettings& settings, const Options& model) {
  std::vector<Cluster> clusters =
      settings.data.empty()                               ? generated_clusters(settings, model)
      : data::is_text(settings.data, {".xyz", ".extxyz"}) ? read_frames(settings.data, settings.samples)
      : data::holds_ase_rows(settings.data)               ? read_rows(settings.data, settings.samples)
                                            : read_hdf5_clusters(settings.data, settings.samples);
  if (clusters.empty()) throw Error(ErrorCode::bad_file, "has no clusters", settings.data.string());
  for (Cluster& cluster : clusters) {
    check_atoms(cluster);
    check_labels(cluster, settings.labels_required);
    cluster.molecules = molecules_of(cluster.atoms.elements);
  }
  return clusters;
}

NeighbourGraph nearest_neighbours(std::span<const data::Cartesian> positions, double cutoff, int most) {
  NeighbourGraph graph;
  std::vector<std::pair<double, std::int32_t>> near;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    near.clear();
    for (std::size_t j = 0; j < positions.size(); ++j)
      if (const double distance = data::norm(positions[j] - positions[i]); j != i && distance < cutoff)
        near.emplace_back(distance, static_cast<std::int32_t>(j));
    const std::size_t count = std::min(near.size(), static_cast<std::size_t>(most));
    std::ranges::partial_sort(near, near.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t k = 0; k < count; ++k) {
      graph.source.push_back(near[k].second);
      graph.target.push_back(static_cast<std::int32_t>(i));
    }
  }
  return graph;
}

}  // namespace superstep::workload
