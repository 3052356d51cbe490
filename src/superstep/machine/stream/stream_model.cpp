#include "superstep/machine/stream/stream_model.h"

#include <algorithm>
#include <cmath>

#include "superstep/machine/value_memory.h"
#include "superstep/op/product/convolution.h"

namespace superstep::machine {

Bounds StreamModel::bounds(const Precision&) const { return {value("peak_f16"), value("stream_rate")}; }

namespace {

// Weights enter a plane by superlanes of so many (TSP); those of an output stand in one column.
constexpr double superlane = 16;

double rounded_up(double value, double grain) { return std::ceil(value / grain) * grain; }

// Channels of a convolution's result, columns of a matrix product's.
double outputs_of(const graph::Graph& graph, const Work& work) {
  const graph::Node& node = graph.node(work.nodes[0]);
  const Shape& y = graph.type(node.outputs[0]).shape;
  if (y.rank() == 0) return 1;
  const op::ProductKind kind = op::traits_of(node.op).product_kind;
  const bool by_channel = kind != op::ProductKind::none && !op::is_matrix_product(kind) && y.rank() > 2;
  return static_cast<double>(std::max<std::int64_t>(1, y[by_channel ? 1 : y.rank() - 1]));
}

}  // namespace

// Columns fill whole planes, rows of weights whole superlanes, and every plane is passed by all rows.
double StreamModel::product_cycles(const graph::Graph& graph, const Work& work, double element) const {
  const double width = value("plane_width");
  const double weights =
      std::max(1.0, (work.weight_bytes > 0 ? work.weight_bytes : work.read_bytes / 2) / element);
  const double outputs = std::min(weights, outputs_of(graph, work)), inputs = weights / outputs;
  const double planes = std::ceil(outputs / width) * std::max(1.0, rounded_up(inputs, superlane) / width);
  const double rows = std::max(1.0, work.flops / 2 / weights);
  const double share = machine().stack() ? machine().stack()->value("matrix_share") : 1;
  return planes * (rows + value("weight_load_cycles")) / share;
}

std::vector<OperatorCost> StreamModel::operators(const graph::Graph& graph, const std::vector<Work>& works,
                                                 const Precision& precision) const {
  const double clock = value("clock"), element = static_cast<double>(size_in_bytes(precision.data));
  std::vector<OperatorCost> costs;
  for (const Work& work : works) {
    OperatorCost cost{.work = work};
    const bool product = work.kind == WorkKind::product || work.kind == WorkKind::recurrent ||
                         work.kind == WorkKind::attention;
    const double cycles = product
                              ? product_cycles(graph, work, element)
                              : std::max(work.flops / value("vector_lanes"),
                                         (work.read_bytes + work.write_bytes) / value("stream_rate") * clock);
    cost.how = product ? "matrix planes" : "vector units";
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

Fabric StreamModel::fabric(int) const {
  return fabric_of(neighbour_links * value("link_rate"), neighbour_latency);
}

double StreamModel::link_seconds(double bytes) const {
  return neighbour_latency + bytes / (neighbour_links * value("link_rate"));
}

// In and out, each with its latency; the bytes of the result are few. Of calls that are queued one behind the
// other only the bytes count.
double StreamModel::host_seconds(double bytes) const {
  return (overlaps_transfers() ? 0 : 2 * value("host_latency")) + bytes / value("host_rate");
}

}  // namespace superstep::machine
