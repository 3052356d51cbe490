// A request for computing time in words: for the terminal, as a page, as PDF and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/page/page.h"
#include "superstep/page/pdf.h"
#include "superstep/study/allocation/allocation.h"

namespace superstep::study {
namespace {

using Rows = std::vector<std::vector<std::string>>;
constexpr double seconds_an_hour = 3600;

// A training's time is its samples over the throughput; intervals of both are joined.
struct Range {
  double value = 0, low = 0, high = 0;
  Range times(double factor) const { return {value * factor, low * factor, high * factor}; }
};

Range training_seconds(const AllocationSubject& subject, const ScalingPoint& point) {
  const double low = subject.samples_low > 0 ? subject.samples_low : subject.samples,
               high = subject.samples_high > 0 ? subject.samples_high : subject.samples;
  return {subject.samples / point.samples * *point.step.value, low / point.samples * point.step.low,
          high / point.samples * point.step.high};
}

Range unit_hours(const AllocationSubject& subject, const ScalingPoint& point) {
  return training_seconds(subject, point).times(point.units / seconds_an_hour);
}

std::string range_words(const Range& range) {
  return fmt::format("{:.3g} [{:.3g}, {:.3g}]", range.value, range.low, range.high);
}

std::string name_of(const AllocationSubject& subject) {
  return fmt::format("{} on {}{}", subject.workload, subject.machine,
                     subject.precision.empty() ? "" : ", " + subject.precision);
}

const std::vector<std::string>& scaling_header() {
  static const std::vector<std::string> header{"units",      "batch",  "step [80 %]", "throughput",
                                               "efficiency", "memory", "of"};
  return header;
}

Rows scaling_rows(const std::vector<ScalingPoint>& points) {
  Rows rows;
  for (const ScalingPoint& point : points) {
    std::vector<std::string> row{fmt::format("{}", point.units), fmt::format("{}", point.batch)};
    if (!point.step.value) {
      row.insert(row.end(), {point.step.words, "-", "-", "-", "-"});
    } else {
      row.push_back(fmt::format("{} [{}, {}]", format_seconds(*point.step.value),
                                format_seconds(point.step.low), format_seconds(point.step.high)));
      row.push_back(format_si(point.throughput, "samples/s"));
      row.push_back(point.efficiency > 0 ? fmt::format("{:.0f} %", 100 * point.efficiency) : "-");
      row.push_back(format_bytes(point.memory));
      row.push_back(point.memory_limit > 0 ? format_bytes(point.memory_limit) : "-");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

const std::vector<std::string>& request_header() {
  static const std::vector<std::string> header{
      "units", "time of a training, h", "unit hours a training", "unit hours in all", "energy in all",
      "read"};
  return header;
}

// What is asked for at each number of units, trainings of the same batch.
Rows request_rows(const AllocationSubject& subject, int trainings) {
  Rows rows;
  for (const ScalingPoint& point : subject.strong) {
    if (!point.step.value) continue;
    const Range hours = unit_hours(subject, point), all = hours.times(trainings);
    const double joules_an_hour = subject.unit_power * seconds_an_hour;
    rows.push_back({fmt::format("{}", point.units),
                    range_words(training_seconds(subject, point).times(1 / seconds_an_hour)),
                    range_words(hours), range_words(all),
                    subject.unit_power > 0 ? format_si(all.value * joules_an_hour, "J") : "not known",
                    format_si(point.throughput * subject.sample_bytes, "B/s")});
  }
  return rows;
}

Rows facts_of(const AllocationSubject& subject, int trainings) {
  return {
      {"trainings", fmt::format("{}", trainings)},
      {"samples of a training", fmt::format("{} ({})", format_count(subject.samples), subject.samples_from)},
      {"samples of an update", fmt::format("{}", subject.batch)},
      {"read in a training", format_bytes(subject.samples * subject.sample_bytes)},
      {"a checkpoint", fmt::format("{}; a run keeps three", format_bytes(subject.checkpoint_bytes))},
      {"power of a unit", subject.unit_power > 0
                              ? fmt::format("{:g} W, the data sheet's, all the time", subject.unit_power)
                              : "not known"}};
}

std::vector<std::string> how_sure(const Allocation& allocation) {
  std::vector<std::string> said{
      "Steps, throughputs and efficiencies are predicted by cost models; their intervals are meant to hold "
      "80 % "
      "(superstep validate holds them against published measurements).",
      "Memory is that of the fullest unit of the predicted plan. Samples are counted as they are fed, in the "
      "model's types; files may be larger or smaller.",
      "Energy is the data sheet's power all the time: an upper bound of the units' own, without hosts and "
      "cooling."};
  for (const AllocationSubject& subject : allocation.subjects) {
    if (subject.samples_high > 0)
      said.push_back(name_of(subject) +
                     ": samples were measured on this computer, and intervals join the seeds' "
                     "first and last with the prediction's 80 %.");
    for (const std::string& doubt : subject.doubts) said.push_back(name_of(subject) + ": " + doubt + ".");
  }
  for (const std::string& missing : allocation.missing) said.push_back("Left out: " + missing + ".");
  if (allocation.measured.empty())
    said.emplace_back(
        "No scaling was measured here: superstep scale measures it on the machine that is asked for.");
  return said;
}

page::Plot efficiency_plot(const AllocationSubject& subject) {
  page::Plot plot{.title = name_of(subject),
                  .x_label = "units",
                  .y_label = "efficiency",
                  .log_x = true,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  const auto add = [&](const char* label, const std::vector<ScalingPoint>& points) {
    page::Series line{.label = label, .x = {}, .y = {}, .low = {}, .high = {}};
    for (const ScalingPoint& point : points)
      if (point.efficiency > 0) line.x.push_back(point.units), line.y.push_back(point.efficiency);
    if (line.x.size() > 1) plot.series.push_back(std::move(line));
  };
  add("strong: the same batch, shared", subject.strong);
  add("weak: as many samples per unit", subject.weak);
  return plot;
}

// The page and the PDF say the same, through the same calls.
template <class Document>
void add_subject(Document& document, const AllocationSubject& subject, int trainings) {
  document.heading(name_of(subject));
  document.table({"quantity", "value"}, facts_of(subject, trainings));
  document.heading("Request");
  document.table(request_header(), request_rows(subject, trainings));
  document.heading("Strong scaling: the batch of an update is shared");
  document.table(scaling_header(), scaling_rows(subject.strong));
  document.heading("Weak scaling: as many samples per unit");
  document.table(scaling_header(), scaling_rows(subject.weak));
  if (const page::Plot plot = efficiency_plot(subject); !plot.series.empty()) document.plot(plot);
}

void add_list(page::Page& page, const std::vector<std::string>& items) {
  std::string list = "<ul>";
  for (const std::string& item : items) list += "<li>" + page::escape(item) + "</li>";
  page.raw(list + "</ul>");
}
void add_list(page::Pdf& pdf, const std::vector<std::string>& items) { pdf.list(items); }

template <class Document>
void fill(Document& document, const Allocation& allocation) {
  document.paragraph(
      "Scaling, unit hours, memory, input and output, and energy of trainings, for a request for "
      "computing time.");
  for (const AllocationSubject& subject : allocation.subjects)
    add_subject(document, subject, allocation.settings.trainings);
  if (!allocation.measured.empty()) {
    document.heading("Measured on this computer");
    document.table({"model", "ranks", "throughput", "efficiency"}, allocation.measured);
  }
  document.heading("How sure this is");
  add_list(document, how_sure(allocation));
  if (!allocation.commands.empty()) {
    document.heading("Commands");
    document.preformatted(join(allocation.commands, "\n"));
  }
  if (!allocation.versions.empty()) {
    document.heading("Versions");
    document.table({"what", "version"}, allocation.versions);
  }
}

nlohmann::json json_of(const std::vector<ScalingPoint>& points) {
  nlohmann::json all = nlohmann::json::array();
  for (const ScalingPoint& point : points) {
    nlohmann::json step{{"value", nullptr}, {"words", point.step.words}};
    if (point.step.value)
      step = {{"value", *point.step.value}, {"low", point.step.low}, {"high", point.step.high}};
    all.push_back({{"units", point.units},
                   {"batch", point.batch},
                   {"step_seconds", std::move(step)},
                   {"throughput", point.throughput},
                   {"efficiency", point.efficiency},
                   {"memory_bytes", point.memory},
                   {"memory_limit", point.memory_limit}});
  }
  return all;
}

}  // namespace

void write_allocation(const Allocation& allocation, const std::filesystem::path& folder) {
  page::Page page(allocation.title);
  page::Pdf pdf(allocation.title);
  fill(page, allocation);
  fill(pdf, allocation);
  const HoldEnd hold;
  write_file_atomically(folder / "allocation.html", page.to_html());
  write_file_atomically(folder / "allocation.pdf", pdf.to_bytes());
  write_file_atomically(folder / "allocation.json", json_of(allocation).dump(1) + "\n");
}

std::string text_of(const Allocation& allocation) {
  std::string text;
  for (const AllocationSubject& subject : allocation.subjects) {
    TextTable table(request_header());
    for (const auto& row : request_rows(subject, allocation.settings.trainings)) table.add_row(row);
    text += fmt::format("{}: {} trainings of {} samples\n{}\n", name_of(subject),
                        allocation.settings.trainings, format_count(subject.samples), table.to_string());
  }
  return text;
}

nlohmann::json json_of(const Allocation& allocation) {
  nlohmann::json subjects = nlohmann::json::array();
  for (const AllocationSubject& subject : allocation.subjects) {
    nlohmann::json hours = nlohmann::json::array();
    for (const ScalingPoint& point : subject.strong)
      if (point.step.value) {
        const Range range = unit_hours(subject, point);
        hours.push_back(
            {{"units", point.units}, {"value", range.value}, {"low", range.low}, {"high", range.high}});
      }
    subjects.push_back({{"workload", subject.workload},
                        {"machine", subject.machine},
                        {"precision", subject.precision},
                        {"batch", subject.batch},
                        {"samples", subject.samples},
                        {"samples_from", subject.samples_from},
                        {"sample_bytes", subject.sample_bytes},
                        {"checkpoint_bytes", subject.checkpoint_bytes},
                        {"unit_power", subject.unit_power},
                        {"unit_hours", std::move(hours)},
                        {"strong", json_of(subject.strong)},
                        {"weak", json_of(subject.weak)}});
  }
  return {{"schema", "superstep-allocation/1"},         {"title", allocation.title},
          {"trainings", allocation.settings.trainings}, {"subjects", std::move(subjects)},
          {"how_sure", how_sure(allocation)},           {"commands", allocation.commands}};
}

}  // namespace superstep::study
