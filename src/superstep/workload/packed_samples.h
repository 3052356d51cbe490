// The samples of a task whose things are graphs: packs (workload/graph_packs.h) of those that training learns
// from, then packs of the others.
#pragma once

#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/workload/graph_packs.h"

namespace superstep::workload {

class PackedSamples {
 public:
  // The first `training` graphs are learnt from. Throws as GraphPacks does.
  PackedSamples(std::span<const GraphSize> sizes, std::size_t training, const PackCapacity& capacity,
                std::uint64_t seed);

  std::int64_t size() const { return known_.count() + others_.count(); }
  std::int64_t training_count() const { return known_.count(); }
  std::size_t training_graphs() const { return training_; }

  // The numbers of a sample's graphs, in the order of their places.
  std::vector<std::size_t> graphs(std::int64_t sample) const;
  // The same after graphs of equal size have changed places for this epoch.
  std::vector<std::size_t> shuffled(std::int64_t sample, std::uint64_t epoch) const;

  // How many places of the training packs there are for each graph in them: the weight of a graph in a loss
  // that is a mean over places.
  double places_a_graph() const;

  // How full the packs are, a line each; the names are those of the field, in the plural.
  std::vector<std::string> describe(const char* graphs, const char* nodes, const char* edges) const;

 private:
  std::vector<std::size_t> numbered(std::int64_t sample, std::span<const std::int32_t> graphs) const;

  std::size_t training_;
  std::uint64_t seed_;
  GraphPacks known_, others_;
};

// Row `row` of a batch of packs.
template <class T>
std::span<T> row_of(Tensor& tensor, std::size_t row) {
  const std::int64_t rows = tensor.shape()[0];
  const auto length = static_cast<std::size_t>(rows > 0 ? tensor.element_count() / rows : 0);
  return tensor.as<T>().subspan(row * length, length);
}

}  // namespace superstep::workload
