#include "superstep/workload/graph_packs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/physics/index_permutation.h"

namespace superstep::workload {

GraphPacks::GraphPacks(std::span<const GraphSize> sizes, const PackCapacity& capacity)
    : capacity_(capacity), with_room_(static_cast<std::size_t>(capacity.nodes + 1)) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i].nodes > capacity.nodes || sizes[i].edges > capacity.edges || capacity.graphs < 1)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has {} nodes and {} edges, a pack has room for {} and {}", sizes[i].nodes,
                              sizes[i].edges, capacity.nodes, capacity.edges),
                  fmt::format("graph {}", i));
  std::vector<std::int32_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size_of = [&](std::int32_t graph) { return sizes[static_cast<std::size_t>(graph)]; };
  std::ranges::stable_sort(order, std::greater<>(), size_of);
  for (const std::int32_t graph : order) place(graph, size_of(graph));
  with_room_.clear();
  find_classes(sizes);
}

bool GraphPacks::fits(std::size_t pack, const GraphSize& size) const {
  return used_[pack].edges + size.edges <= capacity_.edges && used_[pack].graphs < capacity_.graphs;
}

// Packs that have no place for a graph, or no room for an edge, are closed: they leave the lists.
void GraphPacks::place(std::int32_t graph, const GraphSize& size) {
  std::size_t pack = packs_.size();
  for (auto room = static_cast<std::size_t>(size.nodes); room < with_room_.size() && pack == packs_.size();
       ++room) {
    const auto found = std::ranges::find_if(with_room_[room], [&](std::size_t p) { return fits(p, size); });
    if (found == with_room_[room].end()) continue;
    pack = *found;
    with_room_[room].erase(found);
  }
  if (pack == packs_.size()) packs_.emplace_back(), used_.emplace_back();
  packs_[pack].push_back(graph);
  Used& used = used_[pack];
  used.nodes += size.nodes, used.edges += size.edges, ++used.graphs;
  if (used.graphs < capacity_.graphs)
    with_room_[static_cast<std::size_t>(capacity_.nodes - used.nodes)].push_back(pack);
}

void GraphPacks::find_classes(std::span<const GraphSize> sizes) {
  std::map<GraphSize, std::int32_t> class_of_size;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto [found, added] =
        class_of_size.emplace(sizes[i], static_cast<std::int32_t>(class_of_size.size()));
    if (added) classes_.emplace_back();
    auto& members = classes_[static_cast<std::size_t>(found->second)];
    class_of_.push_back(found->second);
    place_in_class_.push_back(static_cast<std::int32_t>(members.size()));
    members.push_back(static_cast<std::int32_t>(i));
  }
}

std::vector<std::int32_t> GraphPacks::shuffled(std::int64_t pack, std::uint64_t seed,
                                               std::uint64_t epoch) const {
  // A stream a class: the seed's other bits are the epoch's.
  constexpr std::uint64_t epochs_of_a_seed = std::uint64_t{1} << 20;
  std::vector<std::int32_t> result;
  for (const std::int32_t graph : graphs(pack)) {
    const auto i = static_cast<std::size_t>(graph);
    const auto& members = classes_[static_cast<std::size_t>(class_of_[i])];
    const data::IndexPermutation order(seed * epochs_of_a_seed + epoch, members.size(),
                                       static_cast<std::uint32_t>(class_of_[i]));
    result.push_back(members[order(static_cast<std::uint64_t>(place_in_class_[i]))]);
  }
  return result;
}

GraphPacks::Fill GraphPacks::fill() const {
  Fill fill;
  if (packs_.empty()) return fill;
  const auto share = [&](std::int64_t Used::*used, std::int64_t room) {
    std::int64_t sum = 0;
    for (const Used& each : used_) sum += each.*used;
    return static_cast<double>(sum) / static_cast<double>(count() * std::max<std::int64_t>(1, room));
  };
  fill.nodes = share(&Used::nodes, capacity_.nodes);
  fill.edges = share(&Used::edges, capacity_.edges);
  fill.graphs = share(&Used::graphs, capacity_.graphs);
  return fill;
}

std::string GraphPacks::describe(const std::string& graphs, const std::string& nodes,
                                 const std::string& edges) const {
  const Fill used = fill();
  return fmt::format("{} {} in {} packs of {} {}, {} {} and {} {}: {:.1f} %, {:.1f} % and {:.1f} % used",
                     format_count(static_cast<double>(class_of_.size())), graphs,
                     format_count(static_cast<double>(count())), capacity_.nodes, nodes, capacity_.edges,
                     edges, capacity_.graphs, graphs, 100 * used.nodes, 100 * used.edges, 100 * used.graphs);
}

}  // namespace superstep::workload
