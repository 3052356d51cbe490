// Copies, transfers and decisions: what the engine does and what it costs.
#include <algorithm>
#include <cmath>
#include <set>

#include "superstep/bsp/compile/step_lowering.h"

namespace superstep::bsp {
namespace {

// Does any element stand on both sides?
bool overlap(const View& a, const View& b) {
  std::map<VariableId, std::vector<Interval>> lists[2];
  const View* views[] = {&a, &b};
  std::set<VariableId> shared;
  for (const Region& region : a.regions()) shared.insert(region.variable);
  bool any = false;
  for (const Region& region : b.regions()) any = any || shared.contains(region.variable);
  if (!any) return false;
  for (int side = 0; side < 2; ++side)
    views[side]->for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
      if (shared.contains(variable)) lists[side][variable].push_back({begin, end});
    });
  for (auto& [variable, list] : lists[0]) {
    const auto other = lists[1].find(variable);
    if (other != lists[1].end() && !IntervalSet(list).intersection(IntervalSet(other->second)).empty())
      return true;
  }
  return false;
}

// On-tile moves of a copy, tile by tile.
struct LocalMoves {
  std::uint64_t bytes = 0, runs = 0;
};

// Splits the segments of a copy by the tiles at both ends.
class CopyCounter {
 public:
  CopyCounter(Placement& placement, bool aliases)
      : placement_(placement), exchange_(placement), aliases_(aliases) {}

  void add(const Segment& segment) {
    placement_[segment.destination].for_each_owned(
        segment.destination_element, segment.destination_stride, segment.length,
        [&](std::int64_t first, std::int64_t count, std::uint32_t tile) {
          part(segment, first, count, tile);
        });
  }

  ExchangeCounter& exchange() { return exchange_; }
  const std::map<std::uint32_t, LocalMoves>& local() const { return local_; }

 private:
  void part(const Segment& segment, std::int64_t first, std::int64_t count, std::uint32_t tile) {
    const std::int64_t element = segment.source_element + first * segment.source_stride;
    const bool joined = segment.source_stride == 1 && segment.destination_stride == 1;
    placement_[segment.source].for_each_owned(
        element, segment.source_stride, count,
        [&](std::int64_t begin, std::int64_t size, std::uint32_t owner) {
          const std::int64_t start = element + begin * segment.source_stride;
          if (owner == tile) {
            LocalMoves& moves = local_[tile];
            moves.bytes += static_cast<std::uint64_t>(size) * placement_.element_bytes(segment.source);
            moves.runs += joined ? 1 : static_cast<std::uint64_t>(size);
          } else if (!aliases_) {
            exchange_.move(segment.source, start, joined ? 1 : segment.source_stride, size, tile);
          } else {
            for (std::int64_t i = 0; i < (joined ? 1 : size); ++i) {
              const std::int64_t one = start + i * segment.source_stride;
              exchange_.request(segment.source, one, joined ? one + size : one + 1, tile);
            }
          }
        });
  }

  Placement& placement_;
  ExchangeCounter exchange_;
  std::map<std::uint32_t, LocalMoves> local_;
  bool aliases_;
};

}  // namespace

std::vector<Segment> segments(const View& source, const View& destination) {
  const std::vector<Run> from = source.runs(), to = destination.runs();
  std::vector<Segment> result;
  std::size_t i = 0, j = 0;
  std::int64_t done_i = 0, done_j = 0;
  while (i < from.size() && j < to.size()) {
    const std::int64_t length = std::min(from[i].length - done_i, to[j].length - done_j);
    const auto stride = [&](const Run& run) { return length == 1 ? 1 : run.stride; };
    result.push_back({from[i].variable, to[j].variable, from[i].element + done_i * from[i].stride,
                      stride(from[i]), to[j].element + done_j * to[j].stride, stride(to[j]), length});
    done_i += length;
    done_j += length;
    if (done_i == from[i].length) ++i, done_i = 0;
    if (done_j == to[j].length) ++j, done_j = 0;
  }
  return result;
}

LoweredStep StepLowering::copy(const ProgramNode& node, LoweredNode& lowered) {
  const Tensor &source = node.tensors[0], &destination = node.tensors[1];
  LoweredStep step;
  lowered.segments = segments(source.view(), destination.view());
  lowered.staged = overlap(source.view(), destination.view());
  CopyCounter counter(placement_, source.contains_aliases());
  for (const Segment& segment : lowered.segments) counter.add(segment);
  const ExchangeCost cost = counter.exchange().finish(graph_.device);
  StepProfile& profile = step.profile;
  profile.cost.exchange = cost.cycles;
  profile.cost.global_exchange = cost.link_cycles;
  profile.cost.sync = cost.cycles > 0 ? sync_cycles(graph_.device, cost.ipus) : 0;
  profile.exchange_cycles_all = cost.tile_cycles;
  profile.exchanged_bytes = cost.bytes;
  profile.link_bytes = cost.link_bytes;
  profile.max_bytes_in = cost.max_in;
  profile.max_bytes_out = cost.max_out;
  profile.max_fragments = cost.max_fragments;
  for (const TileTraffic& tile : cost.tiles)
    step.tiles.push_back({tile.tile, 0, tile.fragments_in + tile.fragments_out, 0});
  const std::uint64_t element = size_in_bytes(source.element_type());
  for (const auto& [tile, moves] : counter.local()) {
    const std::uint64_t cycles = local_copy_cycles(graph_.device, moves.bytes, moves.runs, element);
    profile.cost.compute = std::max(profile.cost.compute, cycles);
    profile.compute_cycles_all += cycles;
    profile.compute_cycles_busy += cycles;
    ++profile.compute_tiles;
    step.tiles.push_back({tile, lowered.staged ? moves.bytes : 0, 0, 0});
  }
  if (timing_only_) lowered.segments = {};
  return step;
}

// Every replica receives the tensor from another: the chips of all of them share the links.
LoweredStep StepLowering::cross_replica(const ProgramNode& node, LoweredNode& lowered) {
  LoweredStep step;
  lowered.segments = segments(node.tensors[0].view(), node.tensors[1].view());
  lowered.replica_map = node.replica_map;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>
      bytes;  // chip to chip within a replica's graph
  std::map<std::uint32_t, TileTraffic> tiles;
  const std::uint64_t element = size_in_bytes(node.tensors[0].element_type());
  for (const Segment& segment : lowered.segments)
    placement_[segment.destination].for_each_owned(
        segment.destination_element, segment.destination_stride, segment.length,
        [&](std::int64_t first, std::int64_t count, std::uint32_t tile) {
          placement_[segment.source].for_each_owned(
              segment.source_element + first * segment.source_stride, segment.source_stride, count,
              [&](std::int64_t, std::int64_t size, std::uint32_t owner) {
                const std::uint64_t moved = static_cast<std::uint64_t>(size) * element;
                bytes[{graph_.device.ipu_of(owner), graph_.device.ipu_of(tile)}] += moved;
                tiles[tile].bytes_in += moved;
                ++tiles[tile].fragments_in;
                tiles[owner].bytes_out += moved;
                ++tiles[owner].fragments_out;
              });
        });
  Device whole = graph_.device;
  whole.ipus *= graph_.replicas;
  std::vector<ChipFlow> flows;
  for (std::uint32_t replica = 0; replica < graph_.replicas; ++replica)
    for (const auto& [pair, count] : bytes) {
      const ChipFlow flow{node.replica_map[replica] * graph_.device.ipus + pair.first,
                          replica * graph_.device.ipus + pair.second, count};
      if (flow.from == flow.to) continue;
      flows.push_back(flow);
      if (replica == 0) step.profile.link_bytes += count;
    }
  std::uint64_t slowest = 0;
  for (const auto& [tile, traffic] : tiles) {
    slowest =
        std::max(slowest, std::max(traffic.bytes_in, traffic.bytes_out) / whole.exchange_bytes_per_cycle);
    step.profile.exchanged_bytes += traffic.bytes_in;
    step.tiles.push_back({tile, 0, traffic.fragments_in + traffic.fragments_out, 0});
  }
  step.profile.cost.exchange =
      static_cast<std::uint64_t>(whole.constants.exchange_setup_cycles.value) + slowest;
  step.profile.cost.global_exchange =
      static_cast<std::uint64_t>(std::ceil(link_seconds(whole, flows) * whole.clock_hz));
  step.profile.cost.sync = sync_cycles(whole, whole.ipus);
  if (timing_only_) lowered.segments = {};
  return step;
}

// Streams and remote buffers: latency, then every chip's share over its own link; the tiles' exchange hides
// behind it unless one tile holds so much that it takes longer.
LoweredStep StepLowering::host(const ProgramNode& node, double bytes_per_second) {
  LoweredStep step;
  const Device& device = graph_.device;
  std::map<std::uint32_t, std::uint64_t> by_tile, pieces;
  node.tensors[0].view().for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
    placement_[variable].for_each_owned(
        begin, 1, end - begin, [&](std::int64_t, std::int64_t count, std::uint32_t tile) {
          by_tile[tile] += static_cast<std::uint64_t>(count) * placement_.element_bytes(variable);
          ++pieces[tile];
        });
  });
  std::map<std::uint32_t, std::uint64_t> by_chip;
  std::uint64_t fullest = 0;
  for (const auto& [tile, bytes] : by_tile) {
    by_chip[device.ipu_of(tile)] += bytes;
    fullest = std::max(fullest, bytes);
    step.profile.host_bytes += bytes;
    // Pieces that are not one are put together in a buffer.
    step.tiles.push_back({tile, 0, pieces[tile], pieces[tile] > 1 ? bytes : 0});
  }
  std::uint64_t chip = 0;
  for (const auto& [ipu, bytes] : by_chip) chip = std::max(chip, bytes);
  const double seconds = device.constants.host_latency_seconds.value +
                         (bytes_per_second > 0 ? static_cast<double>(chip) / bytes_per_second : 0);
  step.profile.cost.host_exchange = std::max(static_cast<std::uint64_t>(std::ceil(seconds * device.clock_hz)),
                                             fullest / device.exchange_bytes_per_cycle);
  step.profile.cost.sync = sync_cycles(device, device.ipus);
  step.profile.max_bytes_in = fullest;
  return step;
}

LoweredStep StepLowering::decision(const ProgramNode& node) {
  LoweredStep step;
  step.profile.cost.control = static_cast<std::uint64_t>(graph_.device.constants.control_cycles.value);
  if (!node.tensors.empty()) step.profile.cost.sync = sync_cycles(graph_.device, graph_.device.ipus);
  return step;
}

LoweredStep StepLowering::leaf(const ProgramNode& node, LoweredNode& lowered) {
  if (!node.tensors.empty() && !timing_only_) {
    lowered.type = node.tensors[0].element_type();
    lowered.shape = node.tensors[0].shape();
    if (node.kind != ProgramKind::copy && node.kind != ProgramKind::cross_replica_copy)
      lowered.runs = node.tensors[0].view().runs();
  }
  if ((node.kind == ProgramKind::remote_read || node.kind == ProgramKind::remote_write) &&
      node.tensors.size() > 1) {
    lowered.offsets = node.tensors[1].view().runs();
    lowered.offset_type = node.tensors[1].element_type();
  }
  LoweredStep step;
  switch (node.kind) {
    case ProgramKind::copy: step = copy(node, lowered); break;
    case ProgramKind::cross_replica_copy: step = cross_replica(node, lowered); break;
    case ProgramKind::stream_in:
    case ProgramKind::stream_out:
    case ProgramKind::print_tensor: step = host(node, graph_.device.host_bytes_per_second); break;
    case ProgramKind::remote_read:
    case ProgramKind::remote_write: step = host(node, graph_.device.streaming_bytes_per_second); break;
    case ProgramKind::sync:
      step.profile.cost.sync = sync_cycles(
          graph_.device, node.sync == SyncType::external ? graph_.device.ipus * graph_.replicas : 1);
      break;
    case ProgramKind::repeat_while:
    case ProgramKind::branch:
    case ProgramKind::switch_case:
    case ProgramKind::abort_on_condition: step = decision(node); break;
    case ProgramKind::count_cycles:  // a few instructions of one tile
      step.profile.cost.control = static_cast<std::uint64_t>(graph_.device.constants.control_cycles.value);
      break;
    default: break;
  }
  if (node.kind == ProgramKind::print_tensor && node.name.empty()) lowered.name = node.tensors[0].name();
  step.profile.kind = node.kind;
  step.profile.name = node.name;
  if (step.profile.name.empty() && !node.tensors.empty())
    step.profile.name = node.kind == ProgramKind::copy
                            ? node.tensors[0].name() + " -> " + node.tensors[1].name()
                            : node.tensors[0].name();
  if (step.profile.name.empty()) step.profile.name = name_of(node.kind);
  return step;
}

}  // namespace superstep::bsp
