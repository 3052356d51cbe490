// The profile as one page: memory by tile, liveness, timeline, vertices, exchange.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/text.h"
#include "superstep/bsp/profile/profile_sums.h"
#include "superstep/page/page.h"

namespace superstep::bsp {
namespace {

std::string count(std::uint64_t value) { return format_count(static_cast<double>(value)); }

struct Phase {
  const char* name;
  int color;  // class s0, s1, ... of the page's stylesheet
  std::uint64_t StepCost::*cycles;
};
constexpr Phase phases[] = {{"compute", 0, &StepCost::compute},
                            {"exchange", 1, &StepCost::exchange},
                            {"between chips", 3, &StepCost::global_exchange},
                            {"host", 2, &StepCost::host_exchange},
                            {"sync", 4, &StepCost::sync},
                            {"control", 5, &StepCost::control}};

// Most steps that a picture or a table can show.
constexpr std::size_t drawn_events = 1500, listed_steps = 60;

class ProfilePage {
 public:
  explicit ProfilePage(const Profile& profile)
      : profile_(profile),
        compilation_(profile.compilation),
        page_("Profile on " + profile.compilation.target.name) {}

  std::string html() {
    overview();
    memory();
    liveness();
    if (profile_.run_count > 0) {
      timeline();
      vertices();
      exchange();
    }
    constants();
    return page_.to_html();
  }

 private:
  void overview() {
    const Target& target = compilation_.target;
    const MemorySums sums = sum_memory(compilation_);
    std::vector<std::vector<std::string>> rows{
        {"machine",
         fmt::format("{}: {} x {} tiles, {:.3f} GHz", target.name, target.ipus * compilation_.replicas,
                     count(target.tiles_per_ipu), target.clock_hz / 1e9)},
        {"graph", fmt::format("{} variables, {} vertices in {} compute sets, {} edges",
                              count(compilation_.variables), count(compilation_.vertices),
                              count(compilation_.compute_sets), count(compilation_.edges))},
        {"fullest tile", fmt::format("tile {}: {} B of {} B ({:.1f} %)", sums.fullest_tile,
                                     count(sums.max_including_gaps), count(target.bytes_per_tile),
                                     100.0 * static_cast<double>(sums.max_including_gaps) /
                                         static_cast<double>(target.bytes_per_tile))}};
    if (compilation_.replicas > 1)
      rows.insert(rows.begin() + 1,
                  {"replicas", fmt::format("{} copies of the model", compilation_.replicas)});
    if (profile_.run_count > 0)
      rows.push_back(
          {"time", fmt::format("{} in {} {}, {} cycles",
                               format_seconds(target.seconds(static_cast<double>(profile_.total.cycles))),
                               count(profile_.run_count), profile_.run_count == 1 ? "run" : "runs",
                               count(profile_.total.cycles))});
    if (!compilation_.planned.empty())
      page_.paragraph("Planned, not executed: " + compilation_.planned +
                      ". These are the plans of the machine model, a step a kernel; parts are not placed, so "
                      "every tile shows the mean.");
    page_.paragraph(
        "Cycles and bytes on this page are modelled, not measured on hardware; the constants that nobody has "
        "published stand at its end with their ranges.");
    if (!compilation_.too_full.empty())
      page_.paragraph(
          "It does not fit: tiles are too full, so this program could not run as it is. The tables "
          "of memory show where.");
    page_.table({"", ""}, rows);
  }

  void memory() {
    page_.heading("Memory by tile");
    const auto tiles = compilation_.tiles.size();
    std::vector<double> x(tiles);
    std::iota(x.begin(), x.end(), 0.0);
    page::Plot plot;
    plot.title = "Bytes on every tile";
    plot.x_label = "tile";
    plot.y_label = "kB";
    page::Series always{"always live", x, {}, {}, {}, page::Series::Style::steps};
    page::Series total{"with not always live and gaps", x, {}, {}, {}, page::Series::Style::steps};
    for (const TileMemory& tile : compilation_.tiles) {
      always.y.push_back(static_cast<double>(tile.always_live()) / 1e3);
      total.y.push_back(static_cast<double>(tile.including_gaps()) / 1e3);
    }
    plot.series = {total, always};
    plot.horizontal = {{static_cast<double>(compilation_.target.bytes_per_tile) / 1e3, "a tile's memory"}};
    page_.plot(plot);
    too_full();
    const MemorySums sums = sum_memory(compilation_);
    std::vector<std::vector<std::string>> rows;
    const TileMemory& fullest = compilation_.tiles[sums.fullest_tile];
    for (const MemoryCategory& category : memory_categories)
      rows.push_back(
          {category.name, count(sums.by_category.*category.bytes), count(fullest.*category.bytes)});
    rows.push_back({"in all", count(sums.including_gaps), count(fullest.including_gaps())});
    page_.table({"what", "all tiles, B", fmt::format("fullest tile ({}), B", sums.fullest_tile)}, rows);
  }

  // The message of the compiler: a line of what, then a tenant a line.
  void too_full() {
    const std::string& message = compilation_.too_full;
    if (message.empty()) return;
    std::vector<std::vector<std::string>> rows;
    std::size_t at = message.find('\n');
    page_.paragraph("Too full: " + message.substr(0, at));
    while (at != std::string::npos) {
      const std::size_t next = message.find('\n', at + 1);
      const std::string line = message.substr(at + 1, next == std::string::npos ? next : next - at - 1);
      const std::size_t unit = line.find(" B  ");
      if (unit != std::string::npos)
        rows.push_back({line.substr(unit + 4),
                        line.substr(line.find_first_not_of(' '), unit - line.find_first_not_of(' '))});
      at = next;
    }
    page_.table({"tenant", "B"}, rows);
  }

  void liveness() {
    const std::vector<LivenessStep>& steps = compilation_.liveness;
    if (steps.empty()) return;
    page_.heading("Liveness over the program");
    page::Plot all, fullest;
    all.title = "Not always live, all tiles";
    fullest.title = "Not always live, fullest tile";
    all.x_label = fullest.x_label = "program step";
    all.y_label = "MB";
    fullest.y_label = "kB";
    page::Series a{"all tiles", {}, {}, {}, {}, page::Series::Style::steps};
    page::Series f{"fullest tile", {}, {}, {}, {}, page::Series::Style::steps};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      a.x.push_back(static_cast<double>(i));
      f.x.push_back(static_cast<double>(i));
      a.y.push_back(static_cast<double>(steps[i].not_always_live_bytes) / 1e6);
      f.y.push_back(static_cast<double>(steps[i].max_tile_bytes) / 1e3);
    }
    all.series = {a};
    fullest.series = {f};
    page_.plot(all).plot(fullest);
    const auto worst =
        std::max_element(steps.begin(), steps.end(), [](const LivenessStep& p, const LivenessStep& q) {
          return p.not_always_live_bytes < q.not_always_live_bytes;
        });
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, bytes] : worst->largest) rows.push_back({name, count(bytes)});
    if (rows.empty()) return;
    page_.paragraph(fmt::format("Most is live at step {}, {} '{}':", worst - steps.begin(),
                                name_of(worst->kind), worst->name));
    page_.table({"variable", "B"}, rows);
  }

  // A bar for every phase of every step of the first run, a lane for each kind of phase.
  void timeline() {
    page_.heading("Timeline of supersteps");
    const RunProfile& run = profile_.runs.front();
    const std::size_t shown = std::min(run.events.size(), drawn_events);
    if (shown == 0) return;
    const Event& last = run.events[shown - 1];
    const double end = static_cast<double>(last.begin + compilation_.steps[last.step].cost.total());
    if (end <= 0) return;
    constexpr double left = 110, width = 880, lane = 26;
    const double height = lane * std::size(phases) + 30;
    std::string svg = fmt::format(
        "<figure class=\"timeline\"><svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" "
        "aria-label=\"timeline\">",
        left + width + 10, height);
    for (std::size_t p = 0; p < std::size(phases); ++p) {
      const double y = lane * static_cast<double>(p);
      svg += fmt::format("<text x=\"0\" y=\"{}\">{}</text><path class=\"grid\" d=\"M{} {}H{}\"/>", y + 17,
                         phases[p].name, left, y + lane - 1, left + width);
      svg += lane_bars(run, shown, phases[p], p, end, left, width, y);
    }
    for (int tick = 0; tick <= 4; ++tick) {
      const double cycles = end * tick / 4;
      svg += fmt::format("<text class=\"note\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
                         left + width * tick / 4, height - 8,
                         tick == 0   ? "start"
                         : tick == 4 ? "end"
                                     : "middle",
                         page::escape(format_seconds(compilation_.target.seconds(cycles))));
    }
    svg += fmt::format("</svg><figcaption>The first {} of {} steps of the first run{}.</figcaption></figure>",
                       count(shown),
                       count(std::accumulate(run.times.begin(), run.times.end(), std::uint64_t{0})),
                       run.assumed ? "; branches that depend on data are assumed" : "");
    page_.raw(svg);
    phase_table();
  }

  std::string lane_bars(const RunProfile& run, std::size_t shown, const Phase& phase, std::size_t, double end,
                        double left, double width, double y) const {
    std::string bars;
    for (std::size_t i = 0; i < shown; ++i) {
      const StepProfile& step = compilation_.steps[run.events[i].step];
      const std::uint64_t cycles = step.cost.*phase.cycles;
      if (cycles == 0) continue;
      const double begin = static_cast<double>(run.events[i].begin + before(step.cost, phase));
      bars += fmt::format(
          "<rect class=\"s{}\" style=\"fill:var(--c)\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" "
          "height=\"18\"><title>{}: {} "
          "cycles</title></rect>",
          phase.color, left + width * begin / end, y + 3,
          std::max(0.4, width * static_cast<double>(cycles) / end), page::escape(step.name), count(cycles));
    }
    return bars;
  }

  // Phases in the order in which a superstep goes through them: sync, exchanges, compute, control.
  static std::uint64_t before(const StepCost& cost, const Phase& phase) {
    static constexpr std::uint64_t StepCost::*order[] = {
        &StepCost::sync,          &StepCost::exchange, &StepCost::global_exchange,
        &StepCost::host_exchange, &StepCost::compute,  &StepCost::control};
    std::uint64_t cycles = 0;
    for (const auto member : order) {
      if (member == phase.cycles) break;
      cycles += cost.*member;
    }
    return cycles;
  }

  void phase_table() {
    std::vector<std::vector<std::string>> rows;
    for (const Phase& phase : phases) {
      const std::uint64_t cycles = profile_.total.cost.*phase.cycles;
      rows.push_back({phase.name, count(cycles),
                      fmt::format("{:.1f}", 100.0 * static_cast<double>(cycles) /
                                                static_cast<double>(std::max<std::uint64_t>(
                                                    profile_.total.cost.total(), 1)))});
    }
    page_.table({"phase", "cycles", "%"}, rows);
  }

  void vertices() {
    page_.heading("Cycles by kind of vertex");
    const ExecutionSums sums = sum_execution(profile_);
    std::vector<std::pair<std::string, VertexCycles>> sorted(sums.vertices.begin(), sums.vertices.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.cycles > b.second.cycles; });
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, vertex] : sorted) {
      bool stand_in = false;
      for (const VertexKindProfile& kind : compilation_.vertex_kinds)
        stand_in = stand_in || (kind.name == name && kind.default_estimate);
      rows.push_back(
          {name, count(vertex.instances), count(vertex.cycles), stand_in ? "stand-in" : "cost function"});
    }
    page_.table({"vertex class", "instances", "worker cycles, all tiles", "from"}, rows);
  }

  void exchange() {
    page_.heading("Steps");
    page_.paragraph(
        "The steps that take longest, over all runs. Bytes in and out are those of the tile with most.");
    std::vector<std::size_t> order(compilation_.steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto cycles = [&](std::size_t i) {
      return profile_.total.times[i] * compilation_.steps[i].cost.total();
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return cycles(a) > cycles(b); });
    std::vector<std::vector<std::string>> rows;
    for (const std::size_t i : order) {
      if (cycles(i) == 0 || rows.size() == listed_steps) break;
      const StepProfile& step = compilation_.steps[i];
      rows.push_back({step.name, name_of(step.kind), count(profile_.total.times[i]), count(cycles(i)),
                      count(step.cost.compute),
                      count(step.cost.exchange + step.cost.global_exchange + step.cost.host_exchange),
                      count(step.cost.sync), count(step.max_bytes_in), count(step.max_bytes_out),
                      count(step.max_fragments)});
    }
    page_.table(
        {"step", "kind", "times", "cycles in all", "compute", "exchange", "sync", "B in", "B out", "pieces"},
        rows);
  }

  void constants() {
    page_.heading("Open constants");
    std::vector<std::vector<std::string>> rows;
    for (const OpenConstantInfo& info : open_constants()) {
      const OpenConstant& constant = compilation_.target.constants.*info.member;
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

std::string profile_to_html(const Profile& profile) { return ProfilePage(profile).html(); }

}  // namespace superstep::bsp
