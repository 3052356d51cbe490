#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "superstep/base/text.h"
#include "superstep/bsp/profile/profile_sums.h"

namespace superstep::bsp {
namespace {

std::string count(std::uint64_t value) { return format_count(static_cast<double>(value)); }

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? std::string("0.0%")
                    : fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

class Printer {
 public:
  Printer(std::ostream& out, const Profile& profile, const SummaryOptions& options)
      : out_(out), profile_(profile), options_(options) {}

  void run() {
    if (!profile_.compilation.planned.empty())
      line("Planned, not executed: {}\n", profile_.compilation.planned);
    device();
    graph();
    memory();
    if (!profile_.compilation.too_full.empty()) line("\nIt does not fit: {}", profile_.compilation.too_full);
    if (profile_.run_count > 0) execution();
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    out_ << fmt::format(text, std::forward<Args>(args)...) << '\n';
  }

  void device() {
    const Device& device = profile_.compilation.device;
    const std::uint32_t replicas = profile_.compilation.replicas;
    line("Target:");
    line("  Name:                 {}", device.name);
    line("  Number of IPUs:       {}", device.ipus * replicas);
    line("  Tiles per IPU:        {}", count(device.tiles_per_ipu));
    line("  Total Tiles:          {}", count(std::uint64_t{device.num_tiles()} * replicas));
    line("  Number of Replicas:   {}", replicas);
    line("  Memory Per-Tile:      {} B", count(device.bytes_per_tile));
    line("  Total Memory:         {} B", count(device.bytes_per_tile * device.num_tiles() * replicas));
    line("  Clock Speed:          {:.1f} MHz", device.clock_hz / 1e6);
  }

  void graph() {
    const CompilationProfile& compilation = profile_.compilation;
    line("\nGraph:");
    line("  Number of vertices:     {}", count(compilation.vertices));
    line("  Number of edges:        {}", count(compilation.edges));
    line("  Number of variables:    {}", count(compilation.variables));
    line("  Number of constants:    {}", count(compilation.constants));
    line("  Number of compute sets: {}", count(compilation.compute_sets));
    line("  Number of programs:     {}", count(compilation.programs));
  }

  void memory() {
    const CompilationProfile& compilation = profile_.compilation;
    const MemorySums sums = sum_memory(compilation);
    line("\nMemory Usage:{}", compilation.replicas > 1 ? " (of one replica)" : "");
    line("  Total:");
    line("    Including Gaps: {:>15} B", count(sums.including_gaps));
    line("    Excluding Gaps: {:>15} B", count(sums.excluding_gaps));
    line("    Always-live:    {:>15} B", count(sums.always_live));
    line("    By category:");
    for (const MemoryCategory& category : memory_categories)
      line("      {:<26} {:>15} B", category.name, count(sums.by_category.*category.bytes));
    line("  Maximum Per-Tile ({}):", sums.fullest_tile);
    line("    Including Gaps: {:>15} B ({} of its memory)", count(sums.max_including_gaps),
         percent(sums.max_including_gaps, compilation.device.bytes_per_tile));
    line("    Excluding Gaps: {:>15} B", count(sums.max_excluding_gaps));
    largest_live();
  }

  void largest_live() {
    const std::vector<LivenessStep>& steps = profile_.compilation.liveness;
    const auto worst =
        std::max_element(steps.begin(), steps.end(), [](const LivenessStep& a, const LivenessStep& b) {
          return a.not_always_live_bytes < b.not_always_live_bytes;
        });
    if (worst == steps.end() || worst->not_always_live_bytes == 0) return;
    line("  Most not-always-live memory: {} B, at '{}'", count(worst->not_always_live_bytes), worst->name);
    if (options_.show_variables)
      for (const auto& [name, bytes] : worst->largest) line("    {:>15} B  {}", count(bytes), name);
  }

  void share(const char* what, std::uint64_t cycles) {
    line("  {:<55} {:>15} ({})", what, count(cycles), percent(cycles, profile_.total.cycles));
  }

  void execution() {
    const CompilationProfile& compilation = profile_.compilation;
    const RunProfile& total = profile_.total;
    const ExecutionSums sums = sum_execution(profile_);
    const std::uint64_t tiles = compilation.device.num_tiles();
    line("\nExecution: (modeled{})", total.assumed ? "; a branch that depends on data was assumed" : "");
    line("  Runs:                       {}", count(profile_.run_count));
    line("  Total cycles:               {} (approx {:.1f} microseconds)", count(total.cycles),
         1e6 * compilation.device.seconds(static_cast<double>(total.cycles)));
    share("Tile average compute cycles (including idle threads):", sums.compute_all / tiles);
    share("Tile average compute cycles (excluding idle threads):", sums.compute_busy / tiles);
    share("Tile average IPU exchange cycles:", sums.exchange / tiles);
    share("Tile average global exchange cycles:", total.cost.global_exchange);
    share("Tile average host exchange cycles:", total.cost.host_exchange);
    share("Tile average sync cycles:", total.cost.sync + waiting(sums));
    share("  of them waiting for slower tiles:", waiting(sums));
    share("Cycles by phase: compute (slowest tile)", total.cost.compute);
    share("Cycles by phase: exchange", total.cost.exchange);
    share("Cycles by phase: global exchange", total.cost.global_exchange);
    share("Cycles by phase: host exchange", total.cost.host_exchange);
    share("Cycles by phase: sync", total.cost.sync);
    share("Cycles by phase: control", total.cost.control);
    chips();
    line("  Exchanged between tiles:    {} B; between chips {} B; with the host {} B",
         count(sums.exchanged_bytes), count(sums.link_bytes), count(sums.host_bytes));
    if (sums.flops > 0) line("  Floating-point operations:  {}", count(sums.flops));
    vertices(sums);
    if (options_.show_execution_steps) steps();
  }

  // Chips work at the same time where no step joins them: phases then add up to more than the run.
  void chips() {
    const RunProfile& total = profile_.total;
    if (total.active.size() < 2) return;
    for (std::size_t chip = 0; chip < total.active.size(); ++chip)
      share(fmt::format("Cycles of steps of chip {}", chip).c_str(), total.active[chip]);
  }

  // What tiles spend at barriers because another tile computes or exchanges longer.
  std::uint64_t waiting(const ExecutionSums& sums) const {
    const std::uint64_t tiles = profile_.compilation.device.num_tiles();
    const StepCost& cost = profile_.total.cost;
    const std::uint64_t others = cost.sync + cost.global_exchange + cost.host_exchange + cost.control;
    const std::uint64_t phases = std::min(cost.compute + cost.exchange,
                                          profile_.total.cycles - std::min(others, profile_.total.cycles));
    const std::uint64_t working = (sums.compute_all + sums.exchange) / tiles;
    return phases > working ? phases - working : 0;
  }

  void vertices(const ExecutionSums& sums) {
    std::vector<std::pair<std::string, VertexCycles>> sorted(sums.vertices.begin(), sums.vertices.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.cycles > b.second.cycles; });
    line("  Cycles by vertex type:");
    bool counted = false, stand_in = false;
    for (const auto& [name, vertex] : sorted) {
      const VertexKindProfile* guessed = without_cost_function(name);
      counted = counted || (guessed && guessed->counted);
      stand_in = stand_in || (guessed && !guessed->counted);
      line("    {} ({} instances): {}{}", name, count(vertex.instances), count(vertex.cycles),
           !guessed           ? ""
           : guessed->counted ? " *"
                              : " **");
    }
    if (counted) line("    * no cost function: an estimate from the instructions of its code");
    if (stand_in) line("    ** no cost function: a stand-in of 20 cycles and 6 an element");
  }

  const VertexKindProfile* without_cost_function(const std::string& name) const {
    for (const VertexKindProfile& kind : profile_.compilation.vertex_kinds)
      if (kind.name == name) return kind.default_estimate ? &kind : nullptr;
    return nullptr;
  }

  void steps() {
    line("  Steps:");
    for (std::size_t i = 0; i < profile_.total.times.size(); ++i) {
      const StepProfile& step = profile_.compilation.steps[i];
      const StepCost& cost = step.cost;
      if (profile_.total.times[i] == 0) continue;
      line("    {} x {} {}: {} cycles (sync {}, exchange {}, links {}, host {}, compute {}, control {})",
           count(profile_.total.times[i]), name_of(step.kind), step.name, count(cost.total()),
           count(cost.sync), count(cost.exchange), count(cost.global_exchange), count(cost.host_exchange),
           count(cost.compute), count(cost.control));
    }
  }

  std::ostream& out_;
  const Profile& profile_;
  const SummaryOptions& options_;
};

}  // namespace

void print_profile_summary(std::ostream& out, const Profile& profile, const SummaryOptions& options) {
  Printer(out, profile, options).run();
}

}  // namespace superstep::bsp
