#include "superstep/target/ipu/lower/planned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/cost_model.h"
#include "superstep/machine/work.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/place/values.h"

namespace superstep::target::ipu {
namespace {

using graph::ValueId;

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(std::llround(std::max(0.0, value))); }

double bytes_of(const graph::ValueType& type) {
  return static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
}

// Values that kernels make, from their kernel to their last reader; views are part of what they show.
class Lives {
 public:
  Lives(const graph::Graph& graph, std::span<const machine::OperatorCost> costs)
      : graph_(graph), kernel_of_(graph.node_count(), none), last_(graph.value_count(), none) {
    for (std::size_t k = 0; k < costs.size(); ++k)
      for (const graph::NodeId id : costs[k].work.nodes) kernel_of_[id.index()] = k;
    for (std::size_t i = 0; i < graph.node_count(); ++i)
      if (kernel_of_[i] != none)
        for (const ValueId input : graph.node(graph::NodeId(i)).inputs) extend(input, kernel_of_[i]);
    for (const graph::Output& output : graph.outputs()) extend(output.value, costs.size());
    for (const graph::Update& update : graph.updates())
      if (update.next.valid()) extend(update.next, costs.size());
  }

  // Bytes that live while kernel k runs, and the largest values.
  bsp::LivenessStep at(std::size_t k, double temporary, double tiles) const {
    bsp::LivenessStep step;
    double total = temporary;
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const graph::Value& value = graph_.value(ValueId(i));
      if (value.kind != graph::ValueKind::computed || last_[i] == none) continue;
      const std::size_t first = kernel_of_[value.producer.index()];
      if (first == none || first > k || last_[i] < k) continue;
      total += bytes_of(value.type);
      const graph::Node& producer = graph_.node(value.producer);
      step.largest.emplace_back(label_of(value, fmt::format("{}/{}", producer.name, producer.op)),
                                whole(bytes_of(value.type)));
    }
    if (temporary > 0) step.largest.emplace_back("(temporary copies)", whole(temporary));
    std::stable_sort(step.largest.begin(), step.largest.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (step.largest.size() > 10) step.largest.resize(10);
    step.not_always_live_bytes = whole(total);
    step.max_tile_bytes = whole(total / tiles);
    return step;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void extend(ValueId id, std::size_t kernel) {
    while (id.valid() && graph_.value(id).kind == graph::ValueKind::computed) {
      std::size_t& last = last_[id.index()];
      last = last == none ? kernel : std::max(last, kernel);
      const graph::Node& producer = graph_.node(graph_.value(id).producer);
      if (kernel_of_[graph_.value(id).producer.index()] != none || producer.inputs.empty()) return;
      id = producer.inputs[0];
    }
  }

  const graph::Graph& graph_;
  std::vector<std::size_t> kernel_of_, last_;
};

bsp::StepProfile step_of(const machine::OperatorCost& cost, const bsp::Device& device) {
  const double clock = device.clock_hz, tiles = device.num_tiles();
  bsp::StepProfile step;
  step.name =
      fmt::format("{}/{}: {}", cost.work.name.empty() ? "node" : cost.work.name, cost.work.op, cost.how);
  step.kind = bsp::ProgramKind::execute;
  step.cost.compute = whole((cost.parts.compute + cost.parts.memory) * clock);
  step.cost.exchange = whole(cost.parts.exchange * clock);
  step.cost.sync = whole(cost.parts.sync * clock);
  step.cost.host_exchange = whole(cost.parts.host * clock);
  step.cost.control = whole(cost.parts.launch * clock);
  step.compute_tiles = device.num_tiles();
  step.vertices = device.num_tiles();
  step.compute_cycles_all = step.compute_cycles_busy = whole(static_cast<double>(step.cost.compute) * tiles);
  step.exchange_cycles_all = whole(static_cast<double>(step.cost.exchange) * tiles);
  step.flops = whole(cost.work.flops);
  step.cycles_by_vertex[cost.work.op] = step.compute_cycles_all;
  return step;
}

void add_run(bsp::Profile& profile) {
  bsp::RunProfile run;
  for (std::size_t i = 0; i < profile.compilation.steps.size(); ++i) {
    const bsp::StepCost& cost = profile.compilation.steps[i].cost;
    run.events.push_back({static_cast<std::uint32_t>(i), run.cycles});
    run.times.push_back(1);
    run.cycles += cost.total();
    run.cost.compute += cost.compute;
    run.cost.exchange += cost.exchange;
    run.cost.sync += cost.sync;
    run.cost.host_exchange += cost.host_exchange;
    run.cost.control += cost.control;
  }
  profile.run_count = 1;
  profile.total = run;
  profile.total.events.clear();
  profile.runs.push_back(std::move(run));
}

void add_memory(bsp::CompilationProfile& compilation, const machine::Memory& memory) {
  const double tiles = compilation.device.num_tiles();
  bsp::TileMemory tile;
  tile.variables = whole((memory.parameters + memory.optimizer) / tiles);
  tile.vertex_code = whole(memory.code / tiles);
  for (const bsp::LivenessStep& step : compilation.liveness)
    tile.not_always_live = std::max(tile.not_always_live, step.max_tile_bytes);
  compilation.tiles.assign(compilation.device.num_tiles(), tile);
  if (tile.including_gaps() <= compilation.device.bytes_per_tile) return;
  const auto worst = std::max_element(
      compilation.liveness.begin(), compilation.liveness.end(),
      [](const auto& a, const auto& b) { return a.not_always_live_bytes < b.not_always_live_bytes; });
  std::string list;
  for (const auto& [name, bytes] : worst->largest)
    list += fmt::format("\n  {:>12} B  {}", format_count(static_cast<double>(bytes)), name);
  compilation.too_full = fmt::format(
      "a tile needs {} B on average, of {} B. Parameters and optimizer take {} B of each; most is live at "
      "'{}', "
      "on all tiles together:{}",
      format_count(static_cast<double>(tile.including_gaps())),
      format_count(static_cast<double>(compilation.device.bytes_per_tile)),
      format_count(static_cast<double>(tile.variables)), worst->name, list);
}

}  // namespace

bsp::Profile planned_profile(const graph::Graph& graph, std::string_view machine, std::string reason) {
  const auto model = machine::cost_model(machine::find_machine(std::string(machine)));
  const machine::Precision precision = machine::precision_from_name("f32");
  std::vector<machine::Work> works = machine::works_of(graph, precision, model->work_options());
  const std::vector<std::string> missing = machine::unsupported_operators(works);
  if (!missing.empty())
    throw Error(ErrorCode::unsupported, reason + "; and there is no plan of " + join(missing, ", "),
                std::string(machine), "take a smaller batch");
  const std::vector<machine::OperatorCost> costs = model->operators(graph, works, precision);
  bsp::Profile profile;
  bsp::CompilationProfile& compilation = profile.compilation;
  compilation.device = device_of(machine);
  compilation.planned = std::move(reason);
  compilation.programs = 1;
  compilation.compute_sets = costs.size();
  const Lives lives(graph, costs);
  std::map<std::string, bsp::VertexKindProfile> kinds;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    compilation.steps.push_back(step_of(costs[k], compilation.device));
    bsp::LivenessStep live = lives.at(k, costs[k].temporary_bytes, compilation.device.num_tiles());
    live.name = compilation.steps.back().name;
    compilation.liveness.push_back(std::move(live));
    bsp::VertexKindProfile& kind = kinds[costs[k].work.op];
    kind.name = costs[k].work.op;
    kind.instances += compilation.device.num_tiles();
    compilation.vertices += compilation.device.num_tiles();
  }
  for (auto& [name, kind] : kinds) compilation.vertex_kinds.push_back(std::move(kind));
  for (const ValueId id : graph.states()) {
    ++compilation.variables;
    compilation.variable_bytes += whole(bytes_of(graph.type(id)));
  }
  add_memory(compilation, model->memory(graph, costs, precision, {}));
  add_run(profile);
  return profile;
}

}  // namespace superstep::target::ipu
