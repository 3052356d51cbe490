#include "superstep/workload/packed_samples.h"

#include <algorithm>

namespace superstep::workload {

PackedSamples::PackedSamples(std::span<const GraphSize> sizes, std::size_t training,
                             const PackCapacity& capacity, std::uint64_t seed)
    : training_(training),
      seed_(seed),
      known_(sizes.first(training), capacity),
      others_(sizes.subspan(training), capacity) {}

std::vector<std::size_t> PackedSamples::numbered(std::int64_t sample,
                                                 std::span<const std::int32_t> graphs) const {
  std::vector<std::size_t> result;
  for (const std::int32_t graph : graphs)
    result.push_back(static_cast<std::size_t>(graph) + (sample < known_.count() ? 0 : training_));
  return result;
}

std::vector<std::size_t> PackedSamples::graphs(std::int64_t sample) const {
  const bool known = sample < known_.count();
  return numbered(sample, known ? known_.graphs(sample) : others_.graphs(sample - known_.count()));
}

std::vector<std::size_t> PackedSamples::shuffled(std::int64_t sample, std::uint64_t epoch) const {
  if (sample >= known_.count()) return graphs(sample);
  return numbered(sample, known_.shuffled(sample, seed_, epoch));
}

double PackedSamples::places_a_graph() const { return 1 / std::max(1e-6, known_.fill().graphs); }

std::vector<std::string> PackedSamples::describe(const char* graphs, const char* nodes,
                                                 const char* edges) const {
  std::vector<std::string> lines;
  if (known_.count() > 0) lines.push_back("training: " + known_.describe(graphs, nodes, edges));
  if (others_.count() > 0) lines.push_back("validation: " + others_.describe(graphs, nodes, edges));
  return lines;
}

}  // namespace superstep::workload
