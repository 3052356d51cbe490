// Orders of elements in which a tensor is simple.
#include <limits>
#include <poplar/Graph.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/regions.h"

namespace poplar {
namespace {

using core::MemoryRun;

// Runs that a reordering which need not be the simplest takes on, at most.
constexpr std::size_t most_runs = std::size_t{1} << 20;

std::vector<Interval> places_of(const std::vector<MemoryRun>& runs) {
  std::vector<Interval> order;
  for (const MemoryRun& run : runs) {
    const auto begin = static_cast<std::size_t>(run.place),
               end = begin + static_cast<std::size_t>(run.length);
    if (!order.empty() && order.back().end() == begin)
      order.back() = Interval(order.back().begin(), end);
    else
      order.emplace_back(begin, end);
  }
  return order;
}

Tensor in_order(const Tensor& tensor, const std::vector<Interval>& order) {
  if (order.size() <= 1) return tensor;
  return concat(tensor.slices(ArrayRef<Interval>(order)));
}

// A region that is a nest of loops, as the dimensions that put what lies together in memory innermost.
struct Nest {
  std::vector<std::size_t> extents;
  std::vector<unsigned> order;
  std::vector<unsigned> reversed;  // of the extents
};

// Of a view that is one such region; empty extents: it is not, or it is in order already.
Nest nest_of(const core::bsp::View& view) {
  Nest nest;
  if (view.regions().size() != 1) return nest;
  const std::vector<core::bsp::Loop>& loops = view.regions()[0].loops;
  std::int64_t inner = view.count();
  for (const core::bsp::Loop& loop : loops) {  // row-major, without gaps
    if (loop.view_stride * loop.extent != inner) return nest;
    inner = loop.view_stride;
  }
  for (unsigned i = 0; i < loops.size(); ++i) {
    nest.order.push_back(i);
    if (loops[i].element_stride < 0) nest.reversed.push_back(i);
  }
  // Repetitions outermost: what is repeated stays in one piece.
  const auto stride = [&](unsigned i) {
    return loops[i].element_stride == 0 ? std::numeric_limits<std::int64_t>::max()
                                        : std::abs(loops[i].element_stride);
  };
  std::stable_sort(nest.order.begin(), nest.order.end(),
                   [&](unsigned a, unsigned b) { return stride(a) > stride(b); });
  if (std::is_sorted(nest.order.begin(), nest.order.end()) && nest.reversed.empty()) return nest;
  for (const core::bsp::Loop& loop : loops) nest.extents.push_back(static_cast<std::size_t>(loop.extent));
  return nest;
}

Tensor in_order(const Tensor& tensor, const Nest& nest) {
  Tensor result = tensor.reshape(nest.extents);
  for (const unsigned dimension : nest.reversed) result = result.reverse(dimension);
  return result.dimShuffle(nest.order).flatten();
}

void check_sizes(const Tensor& tensor, const Tensor& other) {
  if (other.numElements() != tensor.numElements() || other.rank() != 1)
    throw poplar_error("reorderToSimplify: " + core::describe(other) + " has not the shape of " +
                       core::describe(tensor));
}

// Smallest first.
std::vector<std::size_t> divisors(std::size_t number) {
  std::vector<std::size_t> result;
  for (std::size_t i = 1; i <= number / 2; ++i)
    if (number % i == 0) result.push_back(i);
  return result;
}

bool is_broadcast_of(const Tensor& whole, const Tensor& part, unsigned dimension) {
  return part.broadcast(static_cast<unsigned>(whole.dim(dimension) / part.dim(dimension)), dimension) ==
         whole;
}

}  // namespace

TensorRearranger::TensorRearranger(const std::vector<Interval>& order) : forward_(order), backward_() {
  std::vector<std::pair<std::size_t, Interval>> back;  // where it was, where it is now
  std::size_t now = 0;
  for (const Interval& interval : order) {
    back.emplace_back(interval.begin(), Interval(now, now + interval.size()));
    now += interval.size();
  }
  std::sort(back.begin(), back.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [was, interval] : back) backward_.push_back(interval);
}

Tensor TensorRearranger::ordered(const Tensor& tensor, const std::vector<Interval>& order) {
  std::size_t count = 0;
  for (const Interval& interval : order) count += interval.size();
  if (tensor.numElements() != count)
    throw poplar_error(fmt::format("a rearranger of {} elements: tensor {}", count, core::describe(tensor)));
  return in_order(tensor.flatten(), order);
}

TensorRearranger Graph::getSimplifyingRearranger(const Tensor& tensor) const {
  const core::bsp::Tensor flat = core::machine_tensor(tensor).flatten();
  std::vector<MemoryRun> runs;
  core::append_runs(flat, 0, flat.num_elements(), runs);
  core::sort_by_memory(runs);
  return TensorRearranger(places_of(runs));
}

void Graph::reorderToSimplify(Tensor* tensor, ArrayRef<Tensor*> others, bool require_simplest) const {
  core::guarded([&] {
    check_sizes(*tensor, *tensor);
    for (const Tensor* other : others) check_sizes(*tensor, *other);
    const core::bsp::Tensor& view = core::machine_tensor(*tensor);
    if (const Nest nest = nest_of(view.view()); !nest.extents.empty()) {
      for (Tensor* other : others) *other = in_order(*other, nest);
      *tensor = in_order(*tensor, nest);
      return;
    }
    if (!require_simplest && view.view().runs().size() > most_runs) return;
    std::vector<MemoryRun> runs;
    core::append_runs(view, 0, view.num_elements(), runs);
    core::sort_by_memory(runs);
    const std::vector<Interval> order = places_of(runs);
    for (Tensor* other : others) *other = in_order(*other, order);
    *tensor = in_order(*tensor, order);
  });
}

Tensor Graph::findUnbroadcastTensor(const Tensor& tensor) const {
  Tensor result = tensor;
  for (unsigned dimension = 0; dimension < tensor.rank(); ++dimension) {
    // One line of the dimension says what it may be a broadcast of; the whole, whether it is.
    Tensor line = result;
    for (unsigned other = 0; other < tensor.rank(); ++other)
      if (other != dimension && line.dim(other) > 1) line = line.slice(0, 1, other);
    for (const std::size_t part : divisors(result.dim(dimension))) {
      if (line.numElements() == 0 || !is_broadcast_of(line, line.slice(0, part, dimension), dimension))
        continue;
      const Tensor candidate = result.slice(0, part, dimension);
      if (!is_broadcast_of(result, candidate, dimension)) continue;
      result = candidate;
      break;
    }
  }
  return result;
}

}  // namespace poplar
