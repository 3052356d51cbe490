#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "superstep/base/text.h"
#include "superstep/lab/validate/validate.h"
#include "superstep/study/known.h"
#include "superstep/study/report.h"

namespace superstep::study {
namespace {

std::string counted(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string factor_words(double ratio) {
  const bool more = ratio >= 1;
  return fmt::format("{:.2f} times too {}", more ? ratio : 1 / ratio, more ? "high" : "low");
}

// How many published values their predictions hold, and which they do not.
void of_predictions(const Report& report, const std::vector<std::string>& varying,
                    std::vector<std::string>& said) {
  std::size_t both = 0, inside = 0;
  std::vector<std::pair<double, std::string>> outside;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    const Figure& predicted = report.predicted[i];
    if (!cell.published || !predicted.value || *cell.published <= 0) continue;
    ++both;
    if (predicted.inside(*cell.published)) {
      ++inside;
      continue;
    }
    const double ratio = *predicted.value / *cell.published;
    outside.emplace_back(
        -std::abs(std::log(ratio)),
        fmt::format("{} is predicted {} ({} against {} {})", label_of(report.cells, cell, varying),
                    factor_words(ratio), number_words(*predicted.value), number_words(*cell.published),
                    report.cells.text(cell, "unit")));
  }
  if (both == 0) return;
  if (both == 1)
    said.push_back(fmt::format(
        "The one published value lies {} the interval of its prediction, which is meant to hold 80 %.",
        inside == 1 ? "inside" : "outside"));
  else
    said.push_back(fmt::format(
        "Of {} published values, {} inside the intervals of the predictions, which are meant to hold "
        "80 %.",
        both, inside == both ? "all lie" : fmt::format("{} {}", inside, inside == 1 ? "lies" : "lie")));
  std::ranges::sort(outside);
  for (const auto& [error, words] : outside) said.push_back("Outside: " + words + ".");
}

lab::RowResult row_result(const Report& report, std::size_t i, const std::vector<std::string>& varying) {
  const Cell& cell = report.cells.list[i];
  const auto text = [&](const char* column) { return report.cells.text(cell, column); };
  return {.name = label_of(report.cells, cell, varying),
          .family = text("machine"),
          .quantity = text("metric"),
          .unit = text("unit"),
          .subject = fmt::format("{} {} {} {}", text("workload"), text("mode"), text("metric"), text("unit")),
          .published = cell.published.value_or(0),
          .predicted = report.predicted[i].value,
          .reason = {}};
}

void of_order(const Report& report, const std::vector<std::string>& varying, std::vector<std::string>& said) {
  std::vector<lab::RowResult> rows;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i)
    if (report.cells.list[i].published) rows.push_back(row_result(report, i, varying));
  const lab::Rankings rankings = lab::rankings_of(rows);
  if (rankings.pairs == 0) return;
  said.push_back(fmt::format(
      "Of {} that are published more than 1.3 times apart, the predictions have {} in the published order.",
      counted(rankings.pairs, "pair of machines", "pairs of machines"),
      rankings.right == rankings.pairs ? "all" : fmt::format("{}", rankings.right)));
  for (const std::string& wrong : rankings.wrong) said.push_back("Not in this order: " + wrong + ".");
}

// From the first to the last point of a line: by which factor a figure moves.
struct Ends {
  double x_first = 0, x_last = 0, first = 0, last = 0;
  double ratio() const { return last / first; }
};

using Value = std::optional<double> (*)(const Report&, std::size_t);

std::optional<double> published_value(const Report& report, std::size_t i) {
  return report.cells.list[i].published;
}
std::optional<double> predicted_value(const Report& report, std::size_t i) {
  return report.predicted[i].value;
}
std::optional<double> measured_value(const Report& report, std::size_t i) { return report.measured[i].value; }

std::optional<Ends> ends_of(const Report& report, const std::vector<std::size_t>& line, Value value) {
  std::optional<Ends> ends;
  for (const std::size_t i : line) {
    const std::optional<double> y = value(report, i);
    const auto x = static_cast<double>(report.cells.position(report.cells.list[i], report.study.drawing.x));
    if (!y || *y <= 0 || x <= 0) continue;
    if (!ends) ends = Ends{x, x, *y, *y};
    if (x < ends->x_first) ends->x_first = x, ends->first = *y;
    if (x > ends->x_last) ends->x_last = x, ends->last = *y;
  }
  return ends && ends->x_first < ends->x_last ? ends : std::nullopt;
}

std::string moved(const char* who, const Ends& ends) {
  const double change = 100 * (ends.ratio() - 1);
  if (std::abs(change) < 2) return fmt::format("{} it stays within 2 %", who);
  if (ends.ratio() >= 2) return fmt::format("{} it grows {:.2f} times", who, ends.ratio());
  return fmt::format("{} it {} by {:.0f} %", who, change > 0 ? "rises" : "falls", std::abs(change));
}

// Cells that a line of the drawing joins, by what else they say.
std::map<std::string, std::vector<std::size_t>> lines_of(const Report& report) {
  std::map<std::string, std::vector<std::size_t>> lines;
  if (report.study.drawing.x.empty()) return lines;
  std::vector<std::string> others = varying_columns(report.cells);
  std::erase_if(others, [&](const std::string& column) {
    if (column == report.study.drawing.series) return false;
    return column == report.study.drawing.x || column == "note" || column == "framework" ||
           column == "replicas" || column == "global_batch" ||
           (column == "units" && report.study.drawing.x == "replicas");
  });
  for (std::size_t i = 0; i < report.cells.list.size(); ++i)
    if (report.cells.position(report.cells.list[i], report.study.drawing.x) > 0)
      lines[label_of(report.cells, report.cells.list[i], others)].push_back(i);
  return lines;
}

// Whether the prediction moves as what is published does; a move within 2 % is none, as above.
std::string disagreement(double published, double predicted) {
  constexpr double still = 0.02;
  const auto direction = [](double ratio) { return std::abs(ratio - 1) < still ? 0 : ratio > 1 ? 1 : -1; };
  const int of_published = direction(published), of_predicted = direction(predicted);
  if (of_published == of_predicted) return "";
  if (of_predicted == 0) return " The prediction does not move with what is published.";
  return of_published == 0 ? " The prediction moves, and what is published does not."
                           : " The prediction moves the other way than what is published.";
}

void of_lines(const Report& report, std::vector<std::string>& said) {
  const std::map<std::string, std::vector<std::size_t>> lines = lines_of(report);
  for (const auto& [label, line] : lines) {
    std::vector<std::string> words;
    std::optional<Ends> shown;
    const std::pair<const char*, Value> figures[] = {
        {"published", published_value}, {"predicted", predicted_value}, {"measured here", measured_value}};
    std::vector<double> ratios;
    for (const auto& [who, value] : figures)
      if (const std::optional<Ends> ends = ends_of(report, line, value)) {
        if (!shown) shown = ends;
        words.push_back(moved(who, *ends) +
                        (ends->x_first != shown->x_first || ends->x_last != shown->x_last
                             ? fmt::format(" (from {:.0f} to {:.0f})", ends->x_first, ends->x_last)
                             : ""));
        if (value != measured_value) ratios.push_back(ends->ratio());
      }
    if (words.empty()) continue;
    std::string sentence =
        fmt::format("{}{} from {:.0f} to {:.0f}: {}.", lines.size() > 1 ? label + ", " : "",
                    axis_words(report), shown->x_first, shown->x_last, join(words, "; "));
    if (ratios.size() == 2) sentence += disagreement(ratios[0], ratios[1]);
    said.push_back(sentence);
  }
}

// Where a line ends because the next point does not fit; the cells of which that is said.
std::set<std::size_t> of_memory(const Report& report, std::vector<std::string>& said) {
  std::set<std::size_t> told;
  const std::map<std::string, std::vector<std::size_t>> lines = lines_of(report);
  for (const auto& [label, line] : lines) {
    const Figure* first = nullptr;
    std::int64_t last = 0, beyond = 0;
    for (const std::size_t i : line) {
      const Figure& figure = report.predicted[i];
      const std::int64_t x = report.cells.position(report.cells.list[i], report.study.drawing.x);
      if (figure.value) last = std::max(last, x);
      if (figure.memory_ends && (!first || x < beyond)) first = &figure, beyond = x;
    }
    if (!first || last >= beyond) continue;
    said.push_back(fmt::format("{}memory ends {}: {} {} {}.", lines.size() > 1 ? label + ": " : "",
                               last > 0 ? fmt::format("behind {} {}", axis_words(report), last) : "at once",
                               axis_words(report), beyond, first->words));
    for (const std::size_t i : line)
      if (report.predicted[i].memory_ends) told.insert(i);
  }
  return told;
}

// "reverse and forward, 4 directions": of neighbors in the order whose seeds lie among one another.
std::string overlaps_of(const std::vector<std::pair<const Figure*, std::string>>& ordered) {
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i + 1 < ordered.size(); ++i) {
    const Figure &a = *ordered[i].first, &b = *ordered[i + 1].first;
    if (a.high > 0 && b.high > 0 && a.high >= b.low)
      pairs.push_back(ordered[i].second + " and " + ordered[i + 1].second);
  }
  return join(pairs, "; ");
}

// What trainings here came to beside one another, where nothing is published and no axis joins them.
void of_qualities(const Report& report, const std::vector<std::string>& varying,
                  std::vector<std::string>& said) {
  if (!report.study.drawing.x.empty()) return;
  std::map<std::string, std::vector<std::pair<const Figure*, std::string>>> by_metric;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    const std::string& metric = report.cells.text(cell, "metric");
    if (is_quality(metric) && !cell.published && report.measured[i].value && *report.measured[i].value > 0)
      by_metric[metric].emplace_back(&report.measured[i], label_of(report.cells, cell, varying));
  }
  for (auto& [metric, ordered] : by_metric) {
    if (ordered.size() < 2) continue;
    std::ranges::stable_sort(ordered, {}, [](const auto& one) { return *one.first->value; });
    std::vector<std::string> words;
    for (std::size_t i = 1; i < ordered.size(); ++i)
      words.push_back(fmt::format("{} has {:.3g} times as much", ordered[i].second,
                                  *ordered[i].first->value / *ordered[0].first->value));
    said.push_back(fmt::format("Measured here, {} is least for {} ({}); {}.", metric, ordered[0].second,
                               number_words(*ordered[0].first->value), join(words, "; ")));
    if (const std::string pairs = overlaps_of(ordered); !pairs.empty())
      said.push_back("The seeds do not tell apart: " + pairs + ".");
    else if (std::ranges::all_of(ordered, [](const auto& one) { return one.first->high > 0; }))
      said.push_back("The seeds of each lie apart from those of the others.");
  }
}

void of_this_computer(const Report& report, const std::vector<std::string>& varying,
                      std::vector<std::string>& said) {
  std::vector<std::pair<double, std::size_t>> ratios;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i)
    if (const Cell& cell = report.cells.list[i];
        cell.published && *cell.published > 0 && report.measured[i].value)
      ratios.emplace_back(*report.measured[i].value / *cell.published, i);
  if (ratios.empty()) return;
  const auto words = [&](const std::pair<double, std::size_t>& of) {
    return fmt::format("{:.3g} of what is published of {}", of.first,
                       label_of(report.cells, report.cells.list[of.second], varying));
  };
  const auto [least, most] = std::ranges::minmax(ratios);
  said.push_back(ratios.size() == 1
                     ? fmt::format("Measured here is {}.", words(least))
                     : fmt::format("Measured here is from {} to {}.", words(least), words(most)));
}

void of_the_model(const Report& report, const std::vector<std::string>& varying,
                  std::vector<std::string>& said) {
  std::set<std::size_t> told;  // cells share what is executed
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Figure &executed = report.executed[i], &predicted = report.predicted[i];
    if (!executed.value || !told.insert(report.plan.executed[i].jobs.front()).second) continue;
    std::string sentence =
        fmt::format("Executed on the machine model ({}), {} has {} {}", executed.words,
                    label_of(report.cells, report.cells.list[i], varying), number_words(*executed.value),
                    report.cells.text(report.cells.list[i], "unit"));
    if (predicted.value)
      sentence += fmt::format(", {:.2f} times what is predicted of it in its own precision",
                              *executed.value / *predicted.value);
    said.push_back(sentence + ".");
  }
}

// Where a predicted step goes, of cells that tell its parts: "compute 55 %, data 28 %, ...".
void of_parts(const Report& report, const std::vector<std::string>& varying, std::vector<std::string>& said) {
  constexpr std::array parts{"compute_time", "data_time", "launch_time", "host_time"};
  std::vector<std::string> others = varying;
  std::erase(others, "metric");
  if (others.empty()) others = {"workload", "machine"};
  std::map<std::string, std::map<std::string, double>> steps;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const std::string& metric = report.cells.text(report.cells.list[i], "metric");
    if (std::ranges::find(parts, metric) == parts.end() || !report.predicted[i].value) continue;
    const std::string label = label_of(report.cells, report.cells.list[i], others);
    if (!steps.contains(label)) order.push_back(label);
    steps[label][metric] = *report.predicted[i].value;
  }
  for (const std::string& label : order) {
    const std::map<std::string, double>& step = steps.at(label);
    double whole = 0;
    for (const auto& [metric, value] : step) whole += value;
    if (step.size() != parts.size() || whole <= 0) continue;
    std::vector<std::string> words;
    for (const std::string& metric : std::vector<std::string>(parts.begin(), parts.end()))
      words.push_back(
          fmt::format("{} {:.0f} %", metric.substr(0, metric.find('_')), 100 * step.at(metric) / whole));
    said.push_back(fmt::format("Where a step of {} is predicted to go: {}.", label, join(words, ", ")));
  }
}

// Reasons why figures are missing, each with how many cells it is of, but of those that are `told`.
void of_what_is_missing(const char* what, const std::vector<Figure>& figures,
                        const std::set<std::size_t>& told, std::vector<std::string>& said) {
  std::map<std::string, std::size_t> reasons;
  for (std::size_t i = 0; i < figures.size(); ++i)
    if (!figures[i].value && !figures[i].words.empty() && !told.contains(i)) ++reasons[figures[i].words];
  for (const auto& [reason, count] : reasons)
    said.push_back(
        fmt::format("{}, {} of {}: {}.", what, count, counted(figures.size(), "cell", "cells"), reason));
}

}  // namespace

std::vector<std::string> findings_of(const Report& report) {
  const std::vector<std::string> varying = varying_columns(report.cells);
  std::vector<std::string> said;
  of_predictions(report, varying, said);
  of_order(report, varying, said);
  of_lines(report, said);
  const std::set<std::size_t> told = of_memory(report, said);
  of_parts(report, varying, said);
  of_qualities(report, varying, said);
  of_this_computer(report, varying, said);
  of_the_model(report, varying, said);
  const bool published =
      std::ranges::any_of(report.cells.list, [](const Cell& cell) { return cell.published.has_value(); });
  if (!report.study.unpublished.empty())
    said.push_back(fmt::format(
        "{}: {}.", published ? "Not all is published in numbers" : "Nothing is published in numbers",
        report.study.unpublished));
  of_what_is_missing("Not predicted", report.predicted, told, said);
  of_what_is_missing("Not measured here", report.measured, {}, said);
  return said;
}

}  // namespace superstep::study
