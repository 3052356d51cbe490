#include "superstep/bsp/compile/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "superstep/base/text.h"

namespace superstep::bsp {
namespace {

constexpr std::uint64_t alignment = 8;  // of a variable on a tile: one data path

std::uint64_t padding(std::uint64_t bytes) { return (alignment - bytes % alignment) % alignment; }

// Calls f(tile, bytes) for the share of every tile.
template <class F>
void for_each_share(Placement& placement, VariableId id, F&& f) {
  std::map<std::uint32_t, std::uint64_t> split;  // only for tiles that hold several pieces
  const auto intervals = placement[id].intervals();
  const std::uint64_t size = placement.element_bytes(id);
  std::uint32_t last = 0xffffffffu;
  bool ascending = true;
  for (const MappedInterval& interval : intervals) {
    ascending = ascending && (last == 0xffffffffu || interval.tile > last);
    last = interval.tile;
  }
  for (const MappedInterval& interval : intervals) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(interval.end - interval.begin) * size;
    if (ascending)
      f(interval.tile, bytes);
    else
      split[interval.tile] += bytes;
  }
  for (const auto& [tile, bytes] : split) f(tile, bytes);
}

class Planner {
 public:
  explicit Planner(const MemoryInput& input) : in_(input) {
    plan_.tiles.resize(input.graph.device.num_tiles());
    plan_.worst_step.resize(plan_.tiles.size());
  }

  MemoryPlan run() {
    fixed();
    always_live();
    code();
    over_time();
    return std::move(plan_);
  }

 private:
  void fixed() {
    const OpenConstants& constants = in_.graph.device.constants;
    for (TileMemory& tile : plan_.tiles) {
      tile.runtime = static_cast<std::uint64_t>(constants.runtime_bytes.value);
      tile.control_code = static_cast<std::uint64_t>(constants.control_code_bytes.value) * in_.steps.size();
    }
  }

  // A constant that is one number over and over; of others nothing is known to be equal.
  static bool is_one_number(const Variable& variable) {
    return variable.constant && !variable.replica_index && variable.initial && !variable.initial->values;
  }

  // Of constants that are the same number only what the largest has more than those before takes room.
  void merged_constant(VariableId id) {
    const Variable& variable = in_.graph.variable(id);
    std::map<std::uint32_t, std::uint64_t>& largest = merged_[{variable.type, variable.initial->splat}];
    for_each_share(in_.placement, id, [&](std::uint32_t tile, std::uint64_t bytes) {
      std::uint64_t& so_far = largest[tile];
      if (bytes <= so_far) return;
      plan_.tiles[tile].constants += bytes - so_far;
      plan_.tiles[tile].gaps += padding(bytes) - padding(so_far);  // unsigned: the sum stays what it is
      so_far = bytes;
    });
  }

  void always_live() {
    for (const VariableId id : in_.liveness.always) {
      const bool constant = in_.graph.variable(id).constant;
      if (in_.merge_equal_constants && is_one_number(in_.graph.variable(id))) {
        merged_constant(id);
        continue;
      }
      for_each_share(in_.placement, id, [&](std::uint32_t tile, std::uint64_t bytes) {
        (constant ? plan_.tiles[tile].constants : plan_.tiles[tile].variables) += bytes;
        plan_.tiles[tile].gaps += padding(bytes);
      });
    }
  }

  void code() {
    for (const auto& [tile, bytes] : in_.vertices.state_bytes) plan_.tiles[tile].vertex_state = bytes;
    for (const auto& [tile, classes] : in_.vertices.code)
      for (const auto& [name, bytes] : classes) plan_.tiles[tile].vertex_code += bytes;
    const double bytes_each = in_.graph.device.constants.exchange_code_bytes.value;
    for (const LoweredStep& step : in_.steps)
      for (const StepTile& use : step.tiles) {
        TileMemory& tile = plan_.tiles[use.tile];
        tile.exchange_code += static_cast<std::uint64_t>(bytes_each * static_cast<double>(use.fragments));
        tile.host_buffers = std::max(tile.host_buffers, use.host_bytes);
      }
  }

  void over_time() {
    std::vector<std::uint64_t> now(plan_.tiles.size()), during(plan_.tiles.size());
    std::vector<VariableId> live;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < in_.steps.size(); ++i) {
      const std::vector<VariableId>& next = in_.liveness.steps[i];
      for (const VariableId id : difference(live, next)) total -= change(id, now, false);
      for (const VariableId id : difference(next, live)) total += change(id, now, true);
      live = next;
      during = now;
      std::uint64_t temporary = 0;
      for (const StepTile& use : in_.steps[i].tiles) {
        during[use.tile] += use.temporary_bytes;
        temporary += use.temporary_bytes;
      }
      record(i, during, total + temporary, live, temporary);
    }
  }

  static std::vector<VariableId> difference(const std::vector<VariableId>& a,
                                            const std::vector<VariableId>& b) {
    std::vector<VariableId> result;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
    return result;
  }

  std::uint64_t change(VariableId id, std::vector<std::uint64_t>& now, bool enters) {
    std::uint64_t total = 0;
    for_each_share(in_.placement, id, [&](std::uint32_t tile, std::uint64_t bytes) {
      now[tile] = enters ? now[tile] + bytes : now[tile] - bytes;
      total += bytes;
    });
    return total;
  }

  void record(std::size_t step, const std::vector<std::uint64_t>& during, std::uint64_t total,
              const std::vector<VariableId>& live, std::uint64_t temporary) {
    LivenessStep entry;
    entry.name = in_.steps[step].profile.name;
    entry.kind = in_.steps[step].profile.kind;
    entry.not_always_live_bytes = total;
    for (std::size_t tile = 0; tile < during.size(); ++tile) {
      entry.max_tile_bytes = std::max(entry.max_tile_bytes, during[tile]);
      if (during[tile] > plan_.tiles[tile].not_always_live) {
        plan_.tiles[tile].not_always_live = during[tile];
        plan_.worst_step[tile] = static_cast<std::uint32_t>(step);
      }
    }
    note_largest(live, temporary, entry);
    plan_.liveness.push_back(std::move(entry));
  }

  // The ten largest of what is live: of thousands only these get a name.
  void note_largest(const std::vector<VariableId>& live, std::uint64_t temporary, LivenessStep& entry) const {
    std::vector<std::pair<std::uint64_t, std::size_t>> sizes;  // and the place among the live
    for (std::size_t i = 0; i < live.size(); ++i) sizes.emplace_back(in_.graph.variable(live[i]).bytes(), i);
    if (temporary > 0) sizes.emplace_back(temporary, live.size());
    const std::size_t count = std::min<std::size_t>(sizes.size(), 10);
    std::partial_sort(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(count), sizes.end(),
                      [](const auto& a, const auto& b) {
                        return a.first != b.first ? a.first > b.first : a.second < b.second;
                      });
    for (const auto& [bytes, i] : std::span(sizes).first(count))
      entry.largest.emplace_back(i < live.size() ? in_.graph.variable(live[i]).name : "(temporary copies)",
                                 bytes);
  }

  const MemoryInput& in_;
  MemoryPlan plan_;
  std::map<std::pair<Type, double>, std::map<std::uint32_t, std::uint64_t>> merged_;
};

using Tenants = std::vector<std::pair<std::string, std::uint64_t>>;

// Everything on one tile at its fullest step, largest first.
Tenants tenants_of(const MemoryInput& input, const MemoryPlan& plan, std::uint32_t tile) {
  Tenants tenants;
  const auto add = [&](std::string name, std::uint64_t bytes) {
    if (bytes > 0) tenants.emplace_back(std::move(name), bytes);
  };
  const auto add_variable = [&](VariableId id, const char* life) {
    std::uint64_t bytes = 0;
    const TileIndex& index = input.placement[id];
    for (const std::uint32_t i : index.on_tile(tile))
      bytes += static_cast<std::uint64_t>(index.intervals()[i].end - index.intervals()[i].begin) *
               input.placement.element_bytes(id);
    add(fmt::format("variable '{}'{}", input.graph.variable(id).name, life), bytes);
  };
  for (const VariableId id : input.liveness.always) add_variable(id, "");
  const std::uint32_t step = plan.worst_step[tile];
  if (step < input.steps.size()) {
    const std::string life = fmt::format(" (live at '{}')", input.steps[step].profile.name);
    for (const VariableId id : input.liveness.steps[step]) add_variable(id, life.c_str());
    std::uint64_t temporary = 0;
    for (const StepTile& use : input.steps[step].tiles)
      if (use.tile == tile) temporary += use.temporary_bytes;
    add("temporary copies" + life, temporary);
  }
  const TileMemory& memory = plan.tiles[tile];
  add("vertex state", memory.vertex_state);
  add("vertex code", memory.vertex_code);
  add("exchange code", memory.exchange_code);
  add("control code", memory.control_code);
  add("run-time library and stacks", memory.runtime);
  add("host buffers", memory.host_buffers);
  std::stable_sort(tenants.begin(), tenants.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (tenants.size() > 10) tenants.resize(10);
  return tenants;
}

}  // namespace

MemoryPlan plan_memory(const MemoryInput& input) { return Planner(input).run(); }

std::optional<Error> misfit(const MemoryInput& input, const MemoryPlan& plan) {
  const std::uint64_t capacity = input.graph.device.bytes_per_tile;
  std::uint32_t worst = 0, too_full = 0;
  for (std::uint32_t tile = 0; tile < plan.tiles.size(); ++tile) {
    too_full += plan.tiles[tile].including_gaps() > capacity;
    if (plan.tiles[tile].including_gaps() > plan.tiles[worst].including_gaps()) worst = tile;
  }
  if (too_full == 0) return std::nullopt;
  std::string list;
  for (const auto& [name, bytes] : tenants_of(input, plan, worst))
    list += fmt::format("\n  {:>12} B  {}", format_count(static_cast<double>(bytes)), name);
  return Error(ErrorCode::out_of_memory,
               fmt::format("{} of {} tiles are too full; tile {} needs {} B of {} B. Its largest tenants:{}",
                           too_full, plan.tiles.size(), worst,
                           format_count(static_cast<double>(plan.tiles[worst].including_gaps())),
                           format_count(static_cast<double>(capacity)), list),
               "device " + input.graph.device.name, "spread the largest over more tiles, or use more chips");
}

}  // namespace superstep::bsp
