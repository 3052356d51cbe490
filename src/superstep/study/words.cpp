#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "superstep/base/text.h"
#include "superstep/study/report.h"

namespace superstep::study {

namespace {

bool are_told_apart(const Cells& cells, const std::vector<std::string>& columns) {
  std::set<std::string> labels;
  for (const Cell& cell : cells.list) {
    std::string label;
    for (const std::string& column : columns) label += cells.text(cell, column) + "|";
    labels.insert(std::move(label));
  }
  return labels.size() == cells.list.size();
}

}  // namespace

const char* count_words(std::string_view column) {
  constexpr std::array<std::pair<std::string_view, const char*>, 7> names{{{"replicas", "replicas"},
                                                                           {"pipeline_stages", "stages"},
                                                                           {"grad_accum", "accumulated"},
                                                                           {"loaders", "loaders"},
                                                                           {"sample_us", "us per sample"},
                                                                           {"tokens_in", "tokens in"},
                                                                           {"tokens_out", "tokens out"}}};
  for (const auto& [name, words] : names)
    if (name == column) return words;
  return nullptr;
}

std::string metric_words(std::string metric) {
  std::ranges::replace(metric, '_', ' ');
  return metric;
}

std::vector<std::string> varying_columns(const Cells& cells) {
  std::vector<std::string> varying;
  for (const Column& column : columns()) {
    std::set<std::string> said;
    for (const Cell& cell : cells.list) said.insert(cells.text(cell, column.name));
    if (said.size() > 1) varying.emplace_back(column.name);
  }
  // What follows from the others is left out, sentences first.
  for (const char* name :
       {"note", "unit", "framework", "replicas", "global_batch", "pipeline_stages", "grad_accum"}) {
    std::vector<std::string> fewer = varying;
    std::erase(fewer, name);
    if (are_told_apart(cells, fewer) || std::string_view(name) == "unit") varying = std::move(fewer);
  }
  return varying;
}

std::string axis_words(const Report& report) {
  if (report.study.drawing.x == "workload") return "extent";
  std::string words = report.study.drawing.x;
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string label_of(const Cells& cells, const Cell& cell, const std::vector<std::string>& varying) {
  std::vector<std::string> words;
  for (const std::string& column : varying) {
    const std::string& text = cells.text(cell, column);
    if (text.empty() || column == "unit") continue;
    if (column == "micro_batch" || column == "global_batch")
      words.push_back((column == "micro_batch" ? "batch " : "global batch ") + text);
    else if (column == "units")
      words.push_back("x" + text);
    else if (const char* name = count_words(column))
      words.push_back(fmt::format("{} {}", name, text));
    else
      words.push_back(column == "metric" ? metric_words(text) : text);
  }
  return words.empty() ? cell.key : join(words, ", ");
}

std::string number_words(double value) {
  const double size = std::abs(value);
  constexpr double whole = 1000, tiny = 1e-4;
  if (size >= whole) return format_count(std::round(value));
  if (value != 0 && size < tiny) return fmt::format("{:.2e}", value);
  return fmt::format("{:.4g}", value);
}

std::string figure_words(const Figure& figure) {
  if (!figure.value) return "-";
  if (figure.high <= 0) return number_words(*figure.value);
  return fmt::format("{} [{}, {}]", number_words(*figure.value), number_words(figure.low),
                     number_words(figure.high));
}

std::string text_of(const Report& report) {
  TextTable table(
      {"cell", "unit", "published", "predicted (80 %)", "measured here", "executed on the model"});
  const std::vector<std::string> varying = varying_columns(report.cells);
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    table.add_row({label_of(report.cells, cell, varying), report.cells.text(cell, "unit"),
                   cell.published ? number_words(*cell.published) : "-", figure_words(report.predicted[i]),
                   figure_words(report.measured[i]), figure_words(report.executed[i])});
  }
  std::string text = fmt::format("{} ({}, {})\n{}\n", report.study.title, report.study.paper,
                                 report.study.place, table.to_string());
  for (const std::string& finding : findings_of(report)) text += "- " + finding + "\n";
  return text;
}

}  // namespace superstep::study
