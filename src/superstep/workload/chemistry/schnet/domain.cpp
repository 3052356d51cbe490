// What lies outside of what a network of clusters can have learnt.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/file/atoms/element.h"
#include "superstep/workload/chemistry/schnet/schnet.h"

namespace superstep::workload {
namespace {

// A tenth of an Angstrom nearer than anything that was learnt from; chosen.
constexpr double tolerance = 0.1;

// The least distance of every pair of elements in a cluster, A.
std::map<std::pair<int, int>, double> nearest_of(const data::Configuration& atoms) {
  std::map<std::pair<int, int>, double> nearest;
  for (std::size_t i = 0; i < atoms.elements.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double distance = data::norm(atoms.positions[i] - atoms.positions[j]);
      const auto [found, added] =
          nearest.emplace(std::minmax(atoms.elements[i], atoms.elements[j]), distance);
      if (!added) found->second = std::min(found->second, distance);
    }
  return nearest;
}

}  // namespace

ClusterDomain::ClusterDomain(std::span<const Cluster> known) {
  for (const Cluster& cluster : known) {
    most_atoms_ = std::max(most_atoms_, cluster.atoms.elements.size());
    elements_.insert(cluster.atoms.elements.begin(), cluster.atoms.elements.end());
    for (const auto& [pair, distance] : nearest_of(cluster.atoms)) {
      const auto [found, added] = nearest_.emplace(pair, distance);
      if (!added) found->second = std::min(found->second, distance);
    }
  }
}

std::string ClusterDomain::outside(const Cluster& cluster) const {
  std::vector<std::string> words;
  for (const int element : std::set<int>(cluster.atoms.elements.begin(), cluster.atoms.elements.end()))
    if (!elements_.contains(element))
      words.push_back(fmt::format("{} is no element of the training", data::element_symbol(element)));
  for (const auto& [pair, distance] : nearest_of(cluster.atoms))
    if (const auto known = nearest_.find(pair);
        known != nearest_.end() && distance < known->second - tolerance)
      words.push_back(fmt::format("{} and {} are {:.2f} A apart, in training {:.2f} at least",
                                  data::element_symbol(pair.first), data::element_symbol(pair.second),
                                  distance, known->second));
  if (cluster.atoms.elements.size() > most_atoms_)
    words.push_back(
        fmt::format("{} atoms, in training {} at most", cluster.atoms.elements.size(), most_atoms_));
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace superstep::workload
