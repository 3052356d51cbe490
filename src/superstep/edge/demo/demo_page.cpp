#include <fmt/format.h>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/edge/demo/demo.h"
#include "superstep/page/page.h"

namespace superstep::edge {
namespace {

constexpr std::size_t points_of_a_mean = 25;  // frames

// Means of so many frames, one after another over all scans.
page::Series means_of(const DemoReport& report, const char* label, std::vector<double> DemoScan::*errors) {
  page::Series series{.label = label};
  std::size_t before = 0;
  for (const DemoScan& scan : report.scans) {
    const std::vector<double>& values = scan.*errors;
    for (std::size_t first = 0; first + points_of_a_mean <= values.size(); first += points_of_a_mean) {
      series.x.push_back(static_cast<double>(before + first + points_of_a_mean / 2));
      series.y.push_back(mean(std::span(values).subspan(first, points_of_a_mean)));
    }
    before += values.size();
  }
  return series;
}

page::Plot errors_over_time(const DemoReport& report) {
  page::Plot plot{.title = "Error of the phase, over the frames of all scans",
                  .x_label = "frame",
                  .y_label = "mean distance from the true phase (rad)"};
  plot.series = {means_of(report, "learning while it serves", &DemoScan::errors),
                 means_of(report, "without learning", &DemoScan::without)};
  double at = 0;
  for (const DemoScan& scan : report.scans) {
    plot.vertical.push_back({at, scan.name});
    at += static_cast<double>(scan.errors.size());
  }
  return plot;
}

std::vector<std::vector<std::string>> rows_of(const DemoReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const DemoScan& scan : report.scans)
    rows.push_back({scan.name, fmt::format("{:.0f} nm", scan.width), fmt::format("{:.1f}", scan.defocus),
                    scan.version, fmt::format("{:.3f}", mean(scan.errors)),
                    fmt::format("{:.3f}", mean(scan.without)), fmt::format("{:.3f}", scan.correlation),
                    fmt::format("{:.3f}", scan.correlation_without), format_seconds(scan.learnt_seconds)});
  return rows;
}

page::Picture picture_of(const StitchedPicture& shape, const std::vector<float>& values, std::string caption,
                         float low) {
  return {.image = page::colored(values, shape.width, shape.height, page::Colormap::viridis, low, 0.0f,
                                 page::no_value_color),
          .caption = std::move(caption),
          .scale = 2,
          .bar = page::ColorBar{.low = fmt::format("{:.1f}", low), .high = "0", .label = "phase, rad"}};
}

void add_pictures(page::Page& page, const DemoScan& scan) {
  float low = -0.1f;
  for (const float value : scan.truth) low = std::min(low, value);
  page.heading(scan.name, 3);
  if (scan.picture.width == 0) return;
  page.pictures({picture_of(scan.picture, scan.picture.mean, "stitched, learning", low),
                 picture_of(scan.picture_without, scan.picture_without.mean, "stitched, without", low),
                 picture_of(scan.picture, scan.truth, "the true phase", low)});
}

std::string word(const nlohmann::json& event, const char* name) {
  if (!event.contains(name)) return "";
  return event[name].is_number_float() ? fmt::format("{:.4g}", event[name].get<double>())
                                       : event[name].dump();
}

void add_events(page::Page& page, const DemoReport& report) {
  page.heading("What the learner did");
  std::vector<std::vector<std::string>> rows;
  for (const nlohmann::json& event : report.events) {
    std::string more;
    for (const auto& [name, value] : event.items())
      if (name != "event" && name != "scan" && name != "seconds" && !value.is_object())
        more += (more.empty() ? "" : ", ") + name + " " + word(event, name.c_str());
    rows.push_back({fmt::format("{:.1f} s", event.value("seconds", 0.0)), event.value("scan", ""),
                    event.value("event", ""), more});
  }
  page.table({"", "scan", "what", "in numbers"}, rows);
}

}  // namespace

void write_demo_page(const std::filesystem::path& path, const DemoReport& report) {
  page::Page page("An experiment that learns while it measures");
  page.paragraph(fmt::format(
      "A simulated detector sent {} {} of a sample, with a probe that becomes wider and goes out of focus "
      "from scan "
      "to scan. A server answered each pattern with the phase under the probe, stitched the answers, and "
      "after each "
      "scan learnt from it: labels by iterative reconstruction (rPIE), training in a process of its own, a "
      "gate, a "
      "swap. All of it took {}, {} of it the training before the scans.",
      report.scans.size(), report.scans.size() == 1 ? "scan" : "scans", format_seconds(report.seconds),
      format_seconds(report.training_seconds)));
  page.plot(errors_over_time(report));
  page.heading("Scan by scan");
  page.paragraph(
      "(One constant phase of each whole scan, which no measurement can tell, is left out of the errors.) "
      "Error: mean distance of phases in the middle 12 x 12 pixels of each window from the true ones (rad). "
      "Correlation: of the stitched picture with the true phase where it is covered (elsewhere it is gray). "
      "'Without': what the "
      "first version "
      "says of the same frames. The sample moves by 8 pixels a scan: much of it has been seen before.");
  page.table(
      {"scan", "probe", "defocus", "version", "error", "without", "correlation", "without", "learnt in"},
      rows_of(report));
  for (const DemoScan& scan : report.scans) add_pictures(page, scan);
  page.heading("Account");
  const StreamAccount& account = report.served.stream;
  page.table({"received", "served", "duplicate", "corrupt", "missing"},
             {{format_count(static_cast<double>(account.received)),
               format_count(static_cast<double>(account.of(Outcome::served))),
               format_count(static_cast<double>(account.duplicate)),
               format_count(static_cast<double>(account.corrupt)),
               format_count(static_cast<double>(account.missing))}});
  add_events(page, report);
  page.write(path);
}

}  // namespace superstep::edge
