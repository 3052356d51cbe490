// What the files of schnet share: sizes, the loss, clusters of atoms as they are read, the samples.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/atoms/configuration.h"
#include "superstep/transform/training/loss.h"
#include "superstep/workload/atom_model.h"
#include "superstep/workload/graph_packs.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

inline constexpr int embedded_elements = 100;  // atomic numbers 1 to 99, and 0 of padding
// eV: what the last layer gives is in this unit. A molecule's share of a cluster's energy varies by about as
// much.
inline constexpr double energy_unit = 0.1;
inline constexpr const char* schnet_last_bias = "out.bias";  // an atom's mean energy, in that unit

struct SchnetSizes {
  PackCapacity pack;
  std::int64_t blocks = 4, width = 100, gaussians = 25;
  double cutoff = 6;  // A
  int neighbours = 28;
  double forces = 100;  // weight of their errors in the loss; 0: the model gives energies alone
};
std::vector<OptionSpec> schnet_options();
SchnetSizes schnet_sizes(const Options& options);

// Mean squares of the errors of energies (eV; each cluster's counts by its target `weight`) and, where the
// model gives them, of forces (eV/A).
op::Var loss_of_clusters(transform::LossPorts& ports);

// A cluster with what is known of it.
struct Cluster {
  data::Configuration atoms;
  std::optional<double> energy;         // eV
  std::vector<data::Cartesian> forces;  // eV/A; empty where they are not known
  std::string place;                    // where it was read: "frames.xyz, frame 3"
  int molecules = 1;                    // of (H2O)n, n; of anything else 1
};

// Generated, or from the file of the settings (.xyz, .extxyz, HDF5). Throws Error that names file and frame:
// two atoms at one place, coordinates that are not finite, an element outside of the embedding, a periodic
// box, labels that are missing where they are wanted.
std::vector<Cluster> read_clusters(const TaskSettings& settings, const Options& model);

// Edges i <- j to the nearest neighbours j of every atom i, at most `most` within `cutoff` A; of equal
// distances those of lower numbers. Sources, then targets, in the order of the targets.
struct NeighbourGraph {
  std::vector<std::int32_t> source, target;
};
NeighbourGraph nearest_neighbours(std::span<const data::Cartesian> positions, double cutoff, int most);

std::unique_ptr<AtomModel> schnet_atoms(const std::vector<int>& elements, const Options& model);
std::unique_ptr<Task> open_clusters(const TaskSettings& settings, const Options& model);
std::map<std::string, Tensor> fitted_atom_energy(const Task& task, const Options& model, ThreadPool& pool);

// What the network says of some clusters.
struct ClusterAnswers {
  std::vector<const Cluster*> clusters;
  std::vector<std::int64_t> samples;                 // their numbers
  std::vector<double> energies;                      // eV
  std::vector<std::vector<data::Cartesian>> forces;  // eV/A; none where the model gives none
};
std::string present_clusters(const ClusterAnswers& answers, page::Page& page);

// Which elements stood how near to each other, and how many atoms there were at most.
class ClusterDomain {
 public:
  explicit ClusterDomain(std::span<const Cluster> known);
  // In words, what of a cluster lies outside; empty where nothing does.
  std::string outside(const Cluster& cluster) const;

 private:
  using Pair = std::pair<int, int>;
  std::map<Pair, double> nearest_;  // A
  std::set<int> elements_;
  std::size_t most_atoms_ = 0;
};

}  // namespace superstep::workload
