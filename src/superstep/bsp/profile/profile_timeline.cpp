// The timeline of a profile's page: a lane of operators by their names, and a lane for each phase there is.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "superstep/bsp/profile/profile_page.h"

namespace superstep::bsp {
namespace {

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

constexpr std::size_t drawn_events = 1500;             // chosen: more are too many for a page
constexpr double left = 110, width = 880, lane = 26;   // SVG units: the labels, what is drawn, one lane
constexpr double edge_width = 0.8, least_width = 0.4;  // SVG units: of a block; what is there can be seen
constexpr double letter = 6.6;                         // of a name within a block
constexpr std::size_t listed_operators = 8;

// Phases in the order in which a superstep goes through them: sync, exchanges, compute, control.
std::uint64_t before(const StepCost& cost, const Phase& phase) {
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

class TimelineDrawing {
 public:
  TimelineDrawing(const CompilationProfile& compilation, const RunProfile& run)
      : compilation_(compilation), run_(run), shown_(std::min(run.events.size(), drawn_events)) {
    if (shown_ == 0) return;
    const Event& last = run_.events[shown_ - 1];
    end_ = static_cast<double>(last.begin + step_of(last).cost.total());
  }

  bool empty() const { return end_ <= 0; }

  std::string figure() {
    lane_name("operator");
    operators();
    for (const Phase& phase : phases)
      if (any(phase)) {
        lane_name(phase.name);
        phase_blocks(phase);
      }
    ticks();
    return fmt::format(
        "<figure class=\"timeline\"><svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" "
        "aria-label=\"timeline\">{}</svg><figcaption>{}</figcaption></figure>\n",
        left + width + 10, top_ + 26, svg_, caption());
  }

 private:
  const StepProfile& step_of(const Event& event) const { return compilation_.steps[event.step]; }
  double across(double cycles) const { return left + width * cycles / end_; }

  bool any(const Phase& phase) const {
    return std::ranges::any_of(std::span(run_.events).first(shown_),
                               [&](const Event& event) { return step_of(event).cost.*phase.cycles > 0; });
  }

  void lane_name(const char* name) {
    svg_ += fmt::format("<text x=\"0\" y=\"{}\">{}</text><path class=\"grid\" d=\"M{} {}H{}\"/>", top_ + 17,
                        name, left, top_ + lane - 1, left + width);
  }

  void block(double begin, double cycles, int color, const std::string& title) {
    svg_ += fmt::format(
        "<rect class=\"s{}\" style=\"fill:var(--c);stroke:var(--paper);stroke-width:{}\" x=\"{:.2f}\" "
        "y=\"{}\" width=\"{:.2f}\" "
        "height=\"18\"><title>{}</title></rect>",
        color, width * cycles / end_ > 3 ? edge_width : 0, across(begin), top_ + 3,
        std::max(least_width, width * cycles / end_), page::escape(title));
  }

  void phase_blocks(const Phase& phase) {
    for (const Event& event : std::span(run_.events).first(shown_)) {
      const StepProfile& step = step_of(event);
      const std::uint64_t cycles = step.cost.*phase.cycles;
      if (cycles > 0)
        block(static_cast<double>(event.begin + before(step.cost, phase)), static_cast<double>(cycles),
              phase.color, fmt::format("{}: {} cycles", shown_name(step), count_text(cycles)));
    }
    top_ += lane;
  }

  // Neighbouring steps of one operator are one block, in the colour of its kind.
  void operators() {
    for (std::size_t i = 0; i < shown_;) {
      const StepProfile& first = step_of(run_.events[i]);
      std::size_t next = i + 1;
      while (next < shown_ && operator_of(step_of(run_.events[next])) == operator_of(first)) ++next;
      const Event& last = run_.events[next - 1];
      const std::uint64_t cycles = last.begin + step_of(last).cost.total() - run_.events[i].begin;
      operator_block(first, static_cast<double>(run_.events[i].begin), cycles);
      i = next;
    }
    top_ += lane;
  }

  void operator_block(const StepProfile& step, double begin, std::uint64_t cycles) {
    const std::string name = shown_operator(step);
    const double length = width * static_cast<double>(cycles) / end_;
    block(begin, static_cast<double>(cycles), color_of(name),
          fmt::format("{}: {} cycles", name, count_text(cycles)));
    // The whole name where there is room for it, or the kind of operator alone.
    for (const std::string& text : {name, name.substr(name.rfind(' ') + 1)})
      if (letter * static_cast<double>(text.size()) + 8 < length) {
        svg_ += fmt::format("<text class=\"block\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                            across(begin) + length / 2, top_ + 16, page::escape(text));
        return;
      }
  }

  // A colour a kind of operator, in the order they come.
  int color_of(const std::string& name) {
    const std::string kind = name.substr(name.rfind(' ') + 1);
    return colors_.try_emplace(kind, static_cast<int>(colors_.size() % 8)).first->second;
  }

  void ticks() {
    for (int tick = 0; tick <= 4; ++tick) {
      const double cycles = end_ * tick / 4;
      svg_ += fmt::format("<text class=\"note\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
                          across(cycles), top_ + 18,
                          tick == 0   ? "start"
                          : tick == 4 ? "end"
                                      : "middle",
                          page::escape(format_seconds(compilation_.device.seconds(cycles))));
    }
  }

  std::string caption() const {
    const std::uint64_t all = std::accumulate(run_.times.begin(), run_.times.end(), std::uint64_t{0});
    return fmt::format("{} of the first run{}. The pointer on a block tells its name and cycles.",
                       shown_ == all
                           ? fmt::format("All {} steps", count_text(all))
                           : fmt::format("The first {} of {} steps", count_text(shown_), count_text(all)),
                       run_.assumed ? "; branches that depend on data are assumed" : "");
  }

  const CompilationProfile& compilation_;
  const RunProfile& run_;
  std::size_t shown_;
  double end_ = 0, top_ = 0;
  std::map<std::string, int> colors_;
  std::string svg_;
};

}  // namespace

void add_timeline(page::Page& page, const Profile& profile) {
  TimelineDrawing drawing(profile.compilation, profile.runs.front());
  if (drawing.empty()) return;
  page.heading("Timeline of supersteps").raw(drawing.figure());
}

void add_operators(page::Page& page, const Profile& profile) {
  std::map<std::string, std::uint64_t> cycles;  // by operator
  std::map<std::string, std::string> names;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < profile.compilation.steps.size(); ++i) {
    const StepProfile& step = profile.compilation.steps[i];
    const std::uint64_t taken = profile.total.times[i] * step.cost.total();
    cycles[operator_of(step)] += taken;
    names[operator_of(step)] = shown_operator(step);
    all += taken;
  }
  std::vector<std::pair<std::string, std::uint64_t>> sorted(cycles.begin(), cycles.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& entry) { return entry.second; });
  if (sorted.size() > listed_operators) sorted.resize(listed_operators);
  std::vector<page::Bar> bars;
  for (const auto& [name, taken] : sorted) {
    if (taken == 0) break;
    const double length = static_cast<double>(taken) / static_cast<double>(sorted.front().second);
    bars.push_back({.label = names[name],
                    .text = fmt::format("{}, {:.0f} %", count_text(taken),
                                        100.0 * static_cast<double>(taken) / static_cast<double>(all)),
                    .length = length,
                    .full = length,
                    .title = count_text(taken) + " cycles"});
  }
  page.begin_column().heading("Operators that take most cycles", 3).bars(bars).end_column();
}

void add_phases(page::Page& page, const Profile& profile) {
  std::vector<std::vector<std::string>> rows;
  std::uint64_t most = 0;
  std::size_t main = 0;
  const double all = static_cast<double>(std::max<std::uint64_t>(profile.total.cost.total(), 1));
  for (const Phase& phase : phases) {
    const std::uint64_t cycles = profile.total.cost.*phase.cycles;
    if (cycles == 0) continue;
    if (cycles > most) most = cycles, main = rows.size();
    rows.push_back(
        {phase.name, count_text(cycles), fmt::format("{:.1f} %", 100.0 * static_cast<double>(cycles) / all)});
  }
  page.table({"phase", "cycles", "of all"}, rows, {&main, 1});
}

}  // namespace superstep::bsp
