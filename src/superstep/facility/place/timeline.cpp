#include "superstep/facility/place/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/facility/place/place.h"
#include "superstep/page/page.h"

namespace superstep::facility {
namespace {

// SVG units of the drawing.
constexpr double width = 1000, label_width = 170, row_height = 26, axis_height = 24;
constexpr double narrowest = 0.4;      // spans nearer than this are drawn as one
constexpr std::size_t most_rows = 60;  // of a drawing: more are told, and stand in the trace
constexpr int colors = 8;              // of the stylesheet
constexpr int link_color = 4;          // its gray

std::string name_of_channel(const Problem& problem, std::size_t channel) {
  const auto& links = problem.facility.links;
  if (channel >= 2 * links.size())
    return "network of " + problem.facility.sites[channel - 2 * links.size()].name;
  const Link& link = links[channel / 2];
  const std::string& to =
      problem.facility.sites[static_cast<std::size_t>(channel % 2 == 0 ? link.to : link.from)].name;
  return fmt::format("{} to {}", link.name, to);
}

// Spans that follow each other at less than `gap` seconds as one.
std::vector<Span> joined(std::vector<Span> spans, double gap) {
  std::ranges::sort(spans, {}, &Span::begin);
  std::vector<Span> all;
  for (const Span& span : spans) {
    if (!all.empty() && span.begin - all.back().end < gap)
      all.back().end = std::max(all.back().end, span.end);
    else
      all.push_back(span);
  }
  return all;
}

// A round number of seconds, a fifth of the whole or less.
double tick_step(double seconds) {
  for (const double step : {60.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0})
    if (seconds > 120 && seconds / step <= 6) return step;
  const double power = std::pow(10, std::floor(std::log10(std::max(seconds, 1e-12) / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (seconds / 5 <= factor * power) return factor * power;
  return 10 * power;
}

std::string text_at(double x, double y, const char* anchor, std::string_view content) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor,
                     page::escape(content));
}

}  // namespace

std::vector<TimelineRow> timeline_rows(const Problem& problem, const Assessed& assessed) {
  const std::size_t tasks = problem.workflow.tasks.size();
  const Plan plan = problem.plan_of(assessed.candidate.chosen);
  std::vector<TimelineRow> rows;
  for (std::size_t t = 0; t < tasks; ++t)
    rows.push_back({.name = problem.workflow.tasks[t].name, .partition = plan.places[t].partition});
  std::vector<TimelineRow> links(2 * problem.facility.links.size() + problem.facility.sites.size());
  for (const Span& span : assessed.usual.timeline)
    (span.link ? links : rows)[static_cast<std::size_t>(span.what)].spans.push_back(span);
  for (std::size_t c = 0; c < links.size(); ++c) {
    if (links[c].spans.empty()) continue;
    links[c].name = name_of_channel(problem, c);
    links[c].link = true;
    rows.push_back(std::move(links[c]));
  }
  for (TimelineRow& row : rows) row.whole = row.spans.size() < most_spans;
  return rows;
}

std::string draw_timeline(const Problem& problem, const Assessed& assessed) {
  std::vector<TimelineRow> rows = timeline_rows(problem, assessed);
  const double end = std::max(assessed.usual.end, 1e-12), scale = (width - label_width) / end;
  std::string drawn;
  double top = 0;
  std::size_t shown = 0;
  bool cut = rows.size() > most_rows;
  for (const TimelineRow& row : rows) {
    if (shown++ == most_rows) break;
    cut |= !row.whole;
    const std::string where =
        row.link ? "" : " on " + problem.facility.partitions[static_cast<std::size_t>(row.partition)].name;
    drawn += text_at(0, top + row_height * 0.62, "start", row.name + where);
    for (const Span& span : joined(row.spans, narrowest / scale))
      drawn += fmt::format(
          "<g class=\"s{}\"><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
          "style=\"fill:var(--c);fill-opacity:.85\"><title>{}</title></rect></g>",
          row.link ? link_color : row.partition % colors, label_width + span.begin * scale, top + 4,
          std::max(narrowest, (span.end - span.begin) * scale), row_height - 8,
          page::escape(fmt::format("{}{}: {} to {}", row.name, where, format_seconds(span.begin),
                                   format_seconds(span.end))));
    top += row_height;
  }
  for (double tick = 0; tick <= end * 1.0001; tick += tick_step(end))
    drawn +=
        fmt::format("<path class=\"grid\" d=\"M{0:.1f} 0v{1:.1f}\"/>", label_width + tick * scale, top) +
        text_at(std::min(label_width + tick * scale, width - 20), top + 16, "middle", format_seconds(tick));
  return fmt::format(
      "<figure class=\"timeline\"><svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"when each task was at work and each link carried data\">{}</svg></figure>\n{}",
      width, top + axis_height, drawn,
      cut ? fmt::format("<p>At most {} rows are drawn, and of each its first {} spans.</p>\n", most_rows,
                        most_spans)
          : "");
}

std::string trace_of(const Problem& problem, const Assessed& assessed) {
  using Json = nlohmann::json;
  Json events = Json::array();
  const auto named = [&](const char* what, std::size_t process, std::size_t thread, const std::string& name) {
    events.push_back(
        {{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}});
  };
  const std::size_t of_links = problem.facility.partitions.size();
  for (std::size_t p = 0; p < of_links; ++p) named("process_name", p, 0, problem.facility.partitions[p].name);
  named("process_name", of_links, 0, "links");
  const std::vector<TimelineRow> rows = timeline_rows(problem, assessed);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::size_t process = rows[r].link ? of_links : static_cast<std::size_t>(rows[r].partition);
    named("thread_name", process, r + 1, rows[r].name);
    for (const Span& span : rows[r].spans)
      events.push_back({{"ph", "X"},
                        {"pid", process},
                        {"tid", r + 1},
                        {"ts", 1e6 * span.begin},
                        {"dur", 1e6 * (span.end - span.begin)},
                        {"name", rows[r].name},
                        {"cat", rows[r].link ? "link" : "task"}});
  }
  const Json trace{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace superstep::facility
