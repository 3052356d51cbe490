#include "superstep/study/quality/tables.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/base/text.h"
#include "superstep/study/report.h"

namespace superstep::study {
namespace {

std::string steps_words(const Reached& each) {
  if (each.reached == 0 && each.diverged > 0) return fmt::format("{} diverged", each.diverged);
  if (each.reached == 0) return "not reached";
  return fmt::format("{} [{}, {}]", number_words(each.steps), number_words(each.steps_low),
                     number_words(each.steps_high));
}

std::vector<std::vector<std::string>> reached_rows(const QualityReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Reached& each : report.reached)
    rows.push_back({each.precision, fmt::format("{}", each.batch),
                    fmt::format("{} of {}", each.reached, each.seeds), steps_words(each),
                    each.reached > 0 ? number_words(each.samples()) : "-",
                    each.reached > 0 ? format_seconds(each.seconds) : "-"});
  return rows;
}
std::vector<std::string> cost_header(const QualityReport& report) {
  std::vector<std::string> header{"machine",         "precision",         "batch",
                                  "time [interval]", "energy [interval]", "best"};
  if (!report.settings.prices.empty()) header.insert(header.end() - 1, "price");
  return header;
}

std::vector<std::vector<std::string>> cost_rows(const QualityReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const QualityCost& cost : report.costs) {
    std::vector<std::string> row{
        cost.units > 1 ? fmt::format("{} x {}", cost.machine, cost.units) : cost.machine,
        cost.precision,
        fmt::format("{}", cost.batch),
        cost.seconds.value ? seconds_words(cost.seconds) : cost.seconds.words,
        energy_words(cost.joules),
        cost.best ? "yes" : ""};
    if (!report.settings.prices.empty())
      row.insert(row.end() - 1, cost.money.value ? fmt::format("{:.3g}", *cost.money.value) : "-");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string seconds_words(const Figure& figure) {
  if (!figure.value) return "-";
  return fmt::format("{} [{}, {}]", format_seconds(*figure.value), format_seconds(figure.low),
                     format_seconds(figure.high));
}

std::string energy_words(const Figure& figure) {
  if (!figure.value) return "-";
  return fmt::format("{} [{}, {}]", format_si(*figure.value, "J"), format_si(figure.low, "J"),
                     format_si(figure.high, "J"));
}

ReportTable reached_table(const QualityReport& report) {
  return {{"precision", "batch", "seeds that reached it", "steps [min, max]", "samples",
           "seconds on this computer"},
          reached_rows(report)};
}

std::string noise_words(const NoiseScale& scale) {
  const auto number = [](double value) { return std::isfinite(value) ? number_words(value) : "more"; };
  return fmt::format("{} [{}, {}]", number(scale.batch), number(scale.low), number(scale.high));
}

ReportTable noise_table(const QualityReport& report) {
  ReportTable table{{"precision", "batch", "at step", "noise scale [two errors]", "samples"}, {}};
  for (const MeasuredNoise& each : report.noises)
    table.rows.push_back({each.precision, fmt::format("{}", each.batch), fmt::format("{}", each.step),
                          each.scale ? noise_words(*each.scale) : each.words,
                          each.scale ? fmt::format("{}", each.scale->samples) : "-"});
  return table;
}

ReportTable cost_table(const QualityReport& report) { return {cost_header(report), cost_rows(report)}; }

}  // namespace superstep::study
