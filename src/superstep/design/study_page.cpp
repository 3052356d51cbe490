#include "superstep/design/study_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/page/raster.h"

namespace superstep::design {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

page::Series line(const Problem& problem, std::string label, std::span<const double> values) {
  return {std::move(label), problem.positions, {values.begin(), values.end()}, {}, {}};
}

page::Series target_in_box(const Problem& problem) {
  page::Series series =
      line(problem, fmt::format("target, within {:g} %", 100 * problem.tolerance), problem.target);
  for (std::size_t k = 0; k < problem.points(); ++k) {
    series.low.push_back(problem.target[k] - problem.half_width[k]);
    series.high.push_back(problem.target[k] + problem.half_width[k]);
  }
  return series;
}

page::Series prediction_of(const Problem& problem, const Iteration& iteration) {
  page::Series series = line(problem, "predicted, 95 %", iteration.predicted);
  for (std::size_t k = 0; k < problem.points(); ++k) {
    series.low.push_back(iteration.predicted[k] - deviations_inside * iteration.deviation[k]);
    series.high.push_back(iteration.predicted[k] + deviations_inside * iteration.deviation[k]);
  }
  return series;
}

page::Plot measured_plot(const Problem& problem, const Study& study, int iteration) {
  page::Plot plot{.title = iteration ? fmt::format("trials of iteration {}", iteration) : "initial trials",
                  .x_label = problem.x_label,
                  .y_label = problem.y_label};
  plot.series.push_back(target_in_box(problem));
  // Without names: a legend of ten lines helps nobody.
  for (const Trial& trial : study.trials)
    if (trial.iteration == iteration && trial.role != Role::target)
      plot.series.push_back(line(problem, "", trial.curve));
  if (const Trial* trial = study.target_trial(iteration))
    plot.series.push_back(line(problem, "measured at the target's settings", trial->curve));
  return plot;
}

std::vector<std::string> trial_header(const Problem& problem) {
  std::vector<std::string> header{"trial", "iteration", "made for"};
  for (const Unknown& unknown : problem.unknowns)
    header.push_back(unknown.unit.empty() ? unknown.name : fmt::format("{}, {}", unknown.name, unknown.unit));
  header.emplace_back("largest deviation");
  header.emplace_back("inside");
  return header;
}

void add_trials(page::Page& page, const Problem& problem, std::span<const Trial> trials) {
  Rows rows;
  std::vector<std::size_t> inside;
  for (std::size_t k = 0; k < trials.size(); ++k) {
    const Trial& trial = trials[k];
    std::vector<std::string> row{fmt::format("{}", k), fmt::format("{}", trial.iteration),
                                 std::string(name_of(trial.role))};
    for (double setting : trial.settings) row.push_back(fmt::format("{:.4g}", setting));
    const bool is_inside = problem.distance(trial.curve) <= 1;
    row.push_back(percent(problem.deviation(trial.curve)));
    row.emplace_back(is_inside ? "yes" : "no");
    if (is_inside) inside.push_back(k);
    rows.push_back(std::move(row));
  }
  page.heading("Trials").table(trial_header(problem), rows, inside);
}

void add_iterations(page::Page& page, const Problem& problem, const Study& study) {
  Rows rows;
  for (const Iteration& iteration : study.iterations) {
    const Trial* trial = study.target_trial(iteration.number);
    const auto trials = std::ranges::count_if(
        study.trials, [&](const Trial& each) { return each.iteration <= iteration.number; });
    rows.push_back({fmt::format("{}", iteration.number), fmt::format("{}", trials),
                    percent(problem.deviation(iteration.predicted)), iteration.expected_inside ? "yes" : "no",
                    trial ? percent(problem.deviation(trial->curve)) : "-",
                    iteration.measured_inside ? "yes" : "no", fmt::format("{}", iteration.rank),
                    fmt::format("{:.4g}", iteration.acquisition),
                    fmt::format("{:.4g}", iteration.log_marginal)});
  }
  page.heading("Iterations")
      .table({"iteration", "trials", "predicted deviation", "expected inside", "measured deviation", "met",
              "shapes beyond noise", "acquisition", "log likelihood"},
             rows);
}

void add_references(page::Page& page, const Problem& problem, const Study& study,
                    const References& references) {
  page.heading("Beside it")
      .table({"method", "trials", "largest deviation"},
             {{"targeted adaptive design, its answer without noise", fmt::format("{}", study.trials.size()),
               percent(problem.deviation(problem.simulate(study.answer(problem).settings)))},
              {"floor: as many trials of a Latin hypercube, the best", fmt::format("{}", study.trials.size()),
               percent(references.floor)},
              {"ceiling: direct optimization on the model without noise",
               fmt::format("{} simulations", references.ceiling_simulations), percent(references.ceiling)}});
  page.paragraph(fmt::format("{} of the hypercube's trials lie inside the tolerance.",
                             percent(references.floor_inside)));
}

std::string outcome_text(const Problem& problem, const Study& study) {
  const Trial& answer = study.answer(problem);
  return study.converged()
             ? fmt::format("The target was met in iteration {}, with {} trials: {}.", study.iterations.size(),
                           study.trials.size(), settings_text(problem, answer.settings))
             : fmt::format("The target was not met in {} iterations and {} trials; the nearest trial: {}.",
                           study.iterations.size(), study.trials.size(),
                           settings_text(problem, answer.settings));
}

}  // namespace

std::string settings_text(const Problem& problem, std::span<const double> settings) {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < settings.size(); ++d) {
    const Unknown& unknown = problem.unknowns[d];
    parts.push_back(fmt::format("{} {:.4g}{}{}", unknown.name, settings[d], unknown.unit.empty() ? "" : " ",
                                unknown.unit));
  }
  return join(parts, ", ");
}

page::Plot plot_of(const Problem& problem, const Iteration& iteration, std::span<const double> measured) {
  page::Plot plot{.title = fmt::format("iteration {}", iteration.number),
                  .x_label = problem.x_label,
                  .y_label = problem.y_label};
  plot.series.push_back(target_in_box(problem));
  plot.series.push_back(prediction_of(problem, iteration));
  if (!measured.empty()) plot.series.push_back(line(problem, "measured", measured));
  return plot;
}

page::Page page_of(const Problem& problem, const Study& study, const std::optional<References>& references) {
  page::Page page("Design of experiments: " + problem.name);
  page.paragraph(outcome_text(problem, study));
  if (!problem.target_settings.empty())
    page.paragraph(
        "The target was made with " + settings_text(problem, problem.target_settings) +
        ". Several settings give curves that nobody could tell apart by measuring: the settings that were "
        "found need not be these.");
  add_iterations(page, problem, study);
  page.heading("Curves");
  page.plot(measured_plot(problem, study, 0));
  for (const Iteration& iteration : study.iterations) {
    const Trial* trial = study.target_trial(iteration.number);
    page.begin_row();
    page.plot(plot_of(problem, iteration,
                      trial ? std::span<const double>(trial->curve) : std::span<const double>{}));
    page.plot(measured_plot(problem, study, iteration.number));
    page.end_row();
  }
  if (references) add_references(page, problem, study, *references);
  add_trials(page, problem, study.trials);
  return page;
}

void write_picture(const std::filesystem::path& path, const Problem& problem, const Study& study,
                   const Iteration& iteration) {
  const Trial* trial = study.target_trial(iteration.number);
  const page::Plot plot =
      plot_of(problem, iteration, trial ? std::span<const double>(trial->curve) : std::span<const double>{});
  write_file_atomically(path, page::encode_png(page::to_image(plot)));
}

page::Page page_of(const Problem& problem, std::span<const Trial> trials, const Iteration& next) {
  page::Page page("Design of experiments: " + problem.name);
  page.paragraph(fmt::format("After {} trials the target is expected at {}; the prediction {}.",
                             trials.size(), settings_text(problem, next.settings),
                             next.expected_inside
                                 ? "lies inside the tolerance with its uncertainty"
                                 : "with its uncertainty does not lie inside the tolerance yet"));
  page.plot(plot_of(problem, next, {}));
  Rows rows{{"target"}};
  for (double setting : next.settings) rows.back().push_back(fmt::format("{:.4g}", setting));
  for (const std::vector<double>& settings : next.learning) {
    rows.push_back({"learning"});
    for (double setting : settings) rows.back().push_back(fmt::format("{:.4g}", setting));
  }
  std::vector<std::string> header{"to learn, or the target"};
  for (const Unknown& unknown : problem.unknowns) header.push_back(unknown.name);
  const std::size_t main[] = {0};
  page.heading("To be measured next").table(header, rows, main);
  add_trials(page, problem, trials);
  return page;
}

}  // namespace superstep::design
