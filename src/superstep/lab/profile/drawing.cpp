#include "superstep/lab/profile/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "superstep/base/text.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

constexpr int colors = 8;
constexpr double width = 1000;  // SVG units, of the whole drawing
constexpr double lane_height = 34, axis_height = 24, lane_label_width = 70;
constexpr double narrowest = 0.35;  // SVG units: what is narrower joins its neighbours

// SVG units that a name within a block takes, in 11 px and bold: measured in fonts without serifs.
double name_width(std::string_view name) {
  constexpr double letter = 6.9, wide_letter = 10.6;
  const auto wide =
      std::ranges::count_if(name, [](char c) { return std::string_view("mwMW@%").contains(c); });
  return letter * static_cast<double>(name.size()) + (wide_letter - letter) * static_cast<double>(wide);
}

std::string first_op(const std::string& op) { return op.substr(0, op.find('+')); }

std::string svg(double height, const std::string& label, const std::string& content) {
  return fmt::format(
      "<figure class=\"timeline\"><svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">{}</svg></figure>\n",
      width, height, page::escape(label), content);
}

std::string text(double x, double y, std::string_view content, const char* anchor = "start",
                 const char* kind = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>", x, y,
                     anchor, kind, page::escape(content));
}

constexpr double least_width = 0.2;   // SVG units: what is there can be seen
constexpr double least_span = 1e-12;  // s: a timeline has a length

std::string box(double x, double y, double w, double h, int color, double opacity, std::string_view title) {
  return fmt::format(
      "<g class=\"s{}\"><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
      "style=\"fill:var(--c);fill-opacity:{}\"><title>{}</title></rect></g>",
      color, x, y, std::max(least_width, w), h, opacity, page::escape(title));
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// Operators of our own domain in words: "superstep.ConvWeightGradient" is "Conv weight gradient".
std::string without_domain(const std::string& op) {
  constexpr std::string_view domain = "superstep.";
  if (!op.starts_with(domain)) return op;
  std::string words;
  for (std::size_t i = domain.size(); i < op.size(); ++i) {
    const bool begins = i > domain.size() && is_capital(op[i]) && !is_capital(op[i - 1]);
    const bool short_form = i + 1 < op.size() && is_capital(op[i + 1]);
    const bool after_short_form = i > domain.size() && is_capital(op[i]) && is_capital(op[i - 1]) &&
                                  i + 1 < op.size() && !is_capital(op[i + 1]);
    if (begins || after_short_form) words += ' ';
    words += (begins || after_short_form) && !short_form ? static_cast<char>(op[i] - 'A' + 'a') : op[i];
  }
  return words;
}

// A round number of seconds near a fifth of the range.
double tick_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 5)));
  for (double factor : {1.0, 2.0, 5.0})
    if (range / 5 <= factor * power) return factor * power;
  return 10 * power;
}

class TimelineDrawing {
 public:
  TimelineDrawing(const Profile& profile, double begin, double end)
      : profile_(profile),
        begin_(begin),
        scale_((width - lane_label_width) / std::max(end - begin, least_span)) {}

  std::string run(std::span<const target::StepEvent> events) {
    std::map<int, std::vector<target::StepEvent>> lanes;
    for (const target::StepEvent& event : events) lanes[event.thread].push_back(event);
    const bool shared = std::ranges::any_of(events, [](const auto& event) { return event.threads > 1; });
    several_ = shared && lanes.size() == 1;
    for (auto& [thread, lane] : lanes) {
      std::ranges::sort(lane, {}, &target::StepEvent::begin);
      draw_lane(thread, lane);
    }
    draw_axis();
    return svg(top_ + axis_height, "timeline of the steps, a lane a thread", content_);
  }

 private:
  double across(double seconds) const { return lane_label_width + (seconds - begin_) * scale_; }

  // Shares of a lane's height at which text sits in its middle; of a colour's opacity.
  static constexpr double label_line = 0.62, name_line = 0.55, block_opacity = 0.85;

  void draw_lane(int thread, const std::vector<target::StepEvent>& lane) {
    content_ +=
        text(0, top_ + lane_height * label_line, several_ ? "all threads" : fmt::format("thread {}", thread));
    for (std::size_t i = 0; i < lane.size();) i = draw_from(lane, i);
    top_ += lane_height;
  }

  // Draws an event, or as many as it takes to be seen; returns the next one.
  std::size_t draw_from(const std::vector<target::StepEvent>& lane, std::size_t first) {
    const double left = across(lane[first].begin);
    std::size_t next = first + 1, longest = first;
    double right = end_of(lane[first]);
    while (right - left < narrowest && next < lane.size() && end_of(lane[next]) - left < 2 * narrowest) {
      if (lane[next].seconds > lane[longest].seconds) longest = next;
      right = end_of(lane[next++]);
    }
    const target::PlanStep& step = profile_.timeline.steps[lane[longest].step];
    const std::string title =
        next - first > 1 ? fmt::format("{} short steps", next - first) : title_of(step, lane[first]);
    content_ +=
        box(left, top_ + 3, right - left, lane_height - 8, color_of(profile_, step.op), block_opacity, title);
    if (next - first == 1) add_name(step, left, right);
    return next;
  }

  // Node and operator, or one of them, or nothing.
  void add_name(const target::PlanStep& step, double left, double right) {
    const std::string op = shown_op(first_op(step.op));
    for (const std::string& name : {step.node.empty() ? op : step.node + " " + op, op})
      if (name_width(name) + 8 < right - left) {
        content_ += text((left + right) / 2, top_ + lane_height * name_line, name, "middle", "block");
        return;
      }
  }

  double end_of(const target::StepEvent& event) const { return across(event.begin + event.seconds); }

  static std::string title_of(const target::PlanStep& step, const target::StepEvent& event) {
    const std::string where =
        event.micro_batch >= 0 ? fmt::format(", micro-batch {}", event.micro_batch) : std::string();
    return fmt::format("{} {}{}: {}, {}", shown_op(step.op), step.node, where, format_seconds(event.seconds),
                       step.kernel);
  }

  void draw_axis() {
    const double range = (width - lane_label_width) / scale_, step = tick_step(range);
    // A tick at the very end survives the rounding of its sum.
    for (double tick = std::ceil(begin_ / step) * step; tick <= begin_ + range * 1.0001; tick += step) {
      const double x = across(tick);
      content_ +=
          fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}v6\" style=\"stroke:var(--soft)\"/>", x, top_);
      const bool near_end = x > width - 40;
      content_ += text(x, top_ + 19, format_seconds(tick), near_end ? "end" : "middle", "note");
    }
  }

  const Profile& profile_;
  double begin_, scale_, top_ = 0;
  bool several_ = false;  // one lane for threads that share every step
  std::string content_;
};

}  // namespace

std::string shown_op(const std::string& op) {
  if (const std::size_t plus = op.find('+'); plus != op.npos)
    return shown_op(op.substr(0, plus)) + "+" + shown_op(op.substr(plus + 1));
  constexpr std::pair<std::string_view, std::string_view> own[] = {
      {"accumulate", "add to sums"},        {"clear", "set sums to zero"},
      {"columns", "lay out windows"},       {"copy", "copy"},
      {"fill", "fill in a constant"},       {"pack", "lay out for a product"},
      {"scalars", "optimizer's constants"}, {"unpack", "lay out as stored"}};
  for (const auto& [name, words] : own)
    if (name == op) return std::string(words);
  return without_domain(op);
}

int color_of(const Profile& profile, const std::string& op) {
  const auto found = std::ranges::find(profile.operators, first_op(op), &OperatorProfile::op);
  return static_cast<int>(std::min<std::ptrdiff_t>(found - profile.operators.begin(), colors - 1));
}

std::vector<page::Bar> operator_bars(const Profile& profile) {
  const double longest = profile.operators.empty() ? 1 : profile.operators.front().seconds;
  std::vector<page::Bar> bars;
  for (const OperatorProfile& entry : profile.operators)
    bars.push_back(
        {.label = shown_op(entry.op),
         .text = fmt::format("{}, {}", format_seconds(entry.seconds),
                             percent(entry.seconds / profile.busy_seconds)),
         .length = entry.seconds / longest,
         .full = entry.floor_seconds / longest,
         .color = color_of(profile, entry.op),
         .title = fmt::format("{} in {} steps; the least they could take: {}", format_seconds(entry.seconds),
                              entry.steps, format_seconds(entry.floor_seconds))});
  return bars;
}

std::string draw_timeline(const Profile& profile, std::span<const target::StepEvent> events, double begin,
                          double end) {
  return TimelineDrawing(profile, begin, end).run(events);
}

std::string draw_legend(const Profile& profile) {
  std::string html = "<div class=\"legend\">";
  for (std::size_t i = 0; i < profile.operators.size() && i < colors; ++i) {
    const bool rest = i + 1 == colors && profile.operators.size() > colors;
    html += fmt::format(
        "<span class=\"s{0}\"><svg viewBox=\"0 0 10 10\" style=\"background:none\"><rect width=\"10\" "
        "height=\"10\" style=\"fill:var(--c)\"/></svg>{1}</span>",
        i, rest ? "others" : page::escape(shown_op(profile.operators[i].op)));
  }
  return html + "</div>\n";
}

}  // namespace superstep::lab
