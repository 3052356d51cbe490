#include "superstep/machine/stream/stream_model.h"

#include <algorithm>
#include <cmath>

#include "superstep/machine/value_memory.h"

namespace superstep::machine {

Bounds StreamModel::bounds(const Precision&) const { return {value("peak_f16"), value("stream_rate")}; }

std::vector<OperatorCost> StreamModel::operators(const graph::Graph&, const std::vector<Work>& works,
                                                 const Precision& precision) const {
  const double width = value("plane_width"), clock = value("clock");
  const double element = static_cast<double>(size_in_bytes(precision.data));
  std::vector<OperatorCost> costs;
  for (const Work& work : works) {
    OperatorCost cost{.work = work};
    const bool product = work.kind == WorkKind::product || work.kind == WorkKind::recurrent ||
                         work.kind == WorkKind::attention;
    double cycles = 0;
    if (product) {
      // Planes full of weights, and the rows that pass each: arithmetic over the plane, at least one row.
      const double weights =
          std::max(1.0, (work.weight_bytes > 0 ? work.weight_bytes : work.read_bytes / 2) / element);
      const double planes = std::ceil(weights / (width * width));
      const double rows = std::max(1.0, work.flops / 2 / weights);
      cycles = planes * (rows + value("weight_load_cycles"));
      cost.how = "matrix planes";
    } else {
      cycles = std::max(work.flops / value("vector_lanes"),
                        (work.read_bytes + work.write_bytes) / value("stream_rate") * clock);
      cost.how = "vector units";
    }
    cost.parts.compute = cycles / clock;
    cost.parts.fill = value("operator_cycles") / clock;
    costs.push_back(cost);
  }
  return costs;
}

Memory StreamModel::memory(const graph::Graph& graph, std::span<const OperatorCost> costs,
                           const Precision& precision, const MemoryOptions& options) const {
  return memory_of_values(graph, costs, precision, options, capacity());
}

namespace {

// To a neighbouring chip: links that work together, and the seconds until the first byte is there. No source
// for either: guesses.
constexpr double neighbour_links = 4, neighbour_latency = 1e-6;

}  // namespace

double StreamModel::all_reduce_seconds(double bytes, int units) const {
  return ring_all_reduce(bytes, units, neighbour_links * value("link_rate"), neighbour_latency);
}

double StreamModel::link_seconds(double bytes) const {
  return neighbour_latency + bytes / (neighbour_links * value("link_rate"));
}

// In and out, each with its latency; the bytes of the result are few.
double StreamModel::host_seconds(double bytes) const {
  return 2 * value("host_latency") + bytes / value("host_rate");
}

}  // namespace superstep::machine
