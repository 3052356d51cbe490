// The profile as one page: time, memory by tile, liveness, steps, vertices.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/bsp/profile/profile_page.h"
#include "superstep/bsp/profile/profile_sums.h"

namespace superstep::bsp {
namespace {

std::string count(std::uint64_t value) { return count_text(value); }

constexpr std::size_t listed_steps = 60;

class ProfilePage {
 public:
  ProfilePage(const Profile& profile, const std::string& what)
      : profile_(profile),
        compilation_(profile.compilation),
        page_(fmt::format("Profile of {} on {}", what.empty() ? "a program" : what,
                          profile.compilation.device.name)) {}

  std::string html() {
    overview();
    if (profile_.run_count > 0) add_timeline(page_, profile_);
    add_memory(page_, compilation_);
    add_liveness(page_, compilation_);
    if (profile_.run_count > 0) {
      page_.begin_row().begin_column();
      steps();
      page_.end_column().begin_column();
      vertices();
      page_.end_column().end_row();
    }
    constants();
    return page_.to_html();
  }

 private:
  void overview() {
    const Device& device = compilation_.device;
    const MemorySums sums = sum_memory(compilation_);
    std::vector<std::vector<std::string>> rows{
        {"machine",
         fmt::format("{}: {} x {} tiles, {:.3f} GHz", device.name, device.ipus * compilation_.replicas,
                     count(device.tiles_per_ipu), device.clock_hz / 1e9)},
        {"graph", fmt::format("{} variables, {} vertices in {} compute sets, {} edges",
                              count(compilation_.variables), count(compilation_.vertices),
                              count(compilation_.compute_sets), count(compilation_.edges))},
        {"fullest tile", fmt::format("tile {}: {} B of {} B ({:.1f} %)", sums.fullest_tile,
                                     count(sums.max_including_gaps), count(device.bytes_per_tile),
                                     100.0 * static_cast<double>(sums.max_including_gaps) /
                                         static_cast<double>(device.bytes_per_tile))}};
    if (compilation_.replicas > 1)
      rows.insert(rows.begin() + 1,
                  {"replicas", fmt::format("{} copies of the model", compilation_.replicas)});
    if (profile_.run_count > 0)
      rows.push_back(
          {"time", fmt::format("{} in {} {}, {} cycles",
                               format_seconds(device.seconds(static_cast<double>(profile_.total.cycles))),
                               count(profile_.run_count), profile_.run_count == 1 ? "run" : "runs",
                               count(profile_.total.cycles))});
    if (!compilation_.planned.empty())
      page_.paragraph("Planned, not executed: " + compilation_.planned +
                      ". These are the plans of the machine model, a step a kernel; parts are not placed, so "
                      "every tile shows the mean.");
    page_.paragraph(
        "Cycles and bytes on this page are modeled, not measured on hardware; the constants that nobody has "
        "published stand at its end with their ranges.");
    if (!compilation_.too_full.empty())
      page_.paragraph(
          "It does not fit: tiles are too full, so this program could not run as it is. The tables "
          "of memory show where.");
    page_.begin_row().begin_column().facts(rows);
    if (profile_.run_count > 0) {
      add_phases(page_, profile_);
      page_.end_column();
      add_operators(page_, profile_);
    } else {
      page_.end_column();
    }
    page_.end_row();
  }

  void vertices() {
    page_.heading("Cycles by kind of vertex");
    page_.paragraph("Of worker threads, summed over all tiles.");
    const ExecutionSums sums = sum_execution(profile_);
    std::vector<std::pair<std::string, VertexCycles>> sorted(sums.vertices.begin(), sums.vertices.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.cycles > b.second.cycles; });
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, vertex] : sorted) {
      const char* from = "cost function";
      for (const VertexKindProfile& kind : compilation_.vertex_kinds)
        if (kind.name == name && kind.default_estimate) from = kind.counted ? "its instructions" : "stand-in";
      rows.push_back({name, count(vertex.instances), count(vertex.cycles), from});
    }
    page_.table({"vertex class", "instances", "worker cycles", "from"}, rows);
    if (std::ranges::any_of(rows, [](const auto& row) { return row.back() != "cost function"; }))
      page_.paragraph(
          "A vertex without a cost function of its own has an estimate: from the instructions of its code, "
          "or a "
          "stand-in of 20 cycles and 6 an element.");
  }

  // Those that together take half of all cycles stand out.
  void steps() {
    page_.heading("Steps");
    page_.paragraph(
        "The steps that take longest, over all runs; half of all cycles is in those that stand out. Bytes in "
        "and out are those of the tile with most, pieces those of the tile that sends or receives most.");
    std::vector<std::size_t> order(compilation_.steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto cycles = [&](std::size_t i) {
      return profile_.total.times[i] * compilation_.steps[i].cost.total();
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return cycles(a) > cycles(b); });
    std::vector<std::vector<std::string>> rows;
    std::vector<std::size_t> main;
    std::uint64_t so_far = 0;
    for (const std::size_t i : order) {
      if (cycles(i) == 0 || rows.size() == listed_steps) break;
      const StepProfile& step = compilation_.steps[i];
      if (2 * so_far < profile_.total.cycles) main.push_back(rows.size());
      so_far += cycles(i);
      rows.push_back({shown_name(step), count(profile_.total.times[i]), count(cycles(i)),
                      count(step.cost.compute),
                      count(step.cost.exchange + step.cost.global_exchange + step.cost.host_exchange),
                      count(step.cost.sync), count(step.max_bytes_in), count(step.max_bytes_out),
                      count(step.max_fragments)});
    }
    page_.table({"step", "times", "cycles in all", "compute", "exchange", "sync", "B in", "B out", "pieces"},
                rows, main);
  }

  void constants() {
    page_.heading("Open constants");
    std::vector<std::vector<std::string>> rows;
    for (const OpenConstantInfo& info : open_constants()) {
      const OpenConstant& constant = compilation_.device.constants.*info.member;
      rows.push_back({std::string(info.name), fmt::format("{:g}", constant.value),
                      fmt::format("{:g}", constant.low), fmt::format("{:g}", constant.high),
                      std::string(info.unit), std::string(info.kind), std::string(info.source)});
    }
    page_.table({"constant", "value", "low", "high", "unit", "kind", "source"}, rows);
  }

  const Profile& profile_;
  const CompilationProfile& compilation_;
  page::Page page_;
};

}  // namespace

std::string profile_to_html(const Profile& profile, const std::string& what) {
  return ProfilePage(profile, what).html();
}

}  // namespace superstep::bsp
