// superstep design ald: settings whose response curve meets a target, by targeted adaptive design.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/design/study.h"
#include "superstep/design/study_files.h"
#include "superstep/design/study_page.h"

namespace superstep::cli {
namespace {

using design::Problem;
using design::Study;

struct Arguments {
  std::string what = "ald", case_name = "anl", problem, trials, out;
  std::uint64_t seed = 1;
  std::int64_t seeds = 1, iterations = 5, initial = 0;
  bool example = false;
};

Problem problem_of(const Arguments& arguments) {
  nlohmann::json source = design::published_case();
  std::string where = "case " + arguments.case_name;
  if (!arguments.problem.empty())
    source = design::read_problem(arguments.problem).source, where = arguments.problem;
  if (arguments.initial > 0) source["initial"] = arguments.initial;
  return design::problem_from_json(source, where);
}

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

std::string iterations_text(const Study& study) {
  return fmt::format("{} iteration{}", study.iterations.size(), study.iterations.size() == 1 ? "" : "s");
}

// What a study came to, beside what it is held against.
struct Outcome {
  Study study;
  design::References references;
  double deviation = 0;  // of its answer without noise
  double seconds = 0;    // of this sitting
};

std::filesystem::path folder_of(const Arguments& arguments, std::uint64_t seed) {
  const std::filesystem::path folder = arguments.out;
  return arguments.out.empty() || arguments.seeds == 1 ? folder : folder / fmt::format("seed-{}", seed);
}

// The folder, made where it is missing, with others kept out of it; null where nothing is kept.
std::unique_ptr<FolderLock> locked(const std::filesystem::path& folder) {
  if (folder.empty()) return nullptr;
  make_folder(folder);
  return std::make_unique<FolderLock>(folder);
}

void write_folder(const std::filesystem::path& folder, const Problem& problem, const Outcome& outcome) {
  design::write_trials(folder / "trials.csv", problem, outcome.study.trials);
  design::page_of(problem, outcome.study, outcome.references).write(folder / "design.html");
  for (const design::Iteration& iteration : outcome.study.iterations)
    design::write_picture(folder / fmt::format("iteration-{}.png", iteration.number), problem, outcome.study,
                          iteration);
}

std::string how_to_go_on(const std::filesystem::path& folder) {
  return folder.empty()
             ? "nothing was kept: --out FOLDER keeps every iteration"
             : fmt::format("finished iterations are in {}: the same command goes on", folder.string());
}

void tell_iteration(const Problem& problem, const Study& study) {
  if (study.iterations.empty() || is_quiet()) return;
  const design::Iteration& last = study.iterations.back();
  const design::Trial* made = study.target_trial(last.number);
  fmt::print("iteration {}: predicted {} off{}, measured {} off, {} trials{}\n", last.number,
             percent(problem.deviation(last.predicted)), last.expected_inside ? ", surely inside" : "",
             percent(problem.deviation(made->curve)), study.trials.size(),
             last.measured_inside ? ": met" : "");
  std::fflush(stdout);
}

Outcome run_seed(const Arguments& arguments, const Problem& problem, std::uint64_t seed, ThreadPool& pool) {
  const std::filesystem::path folder = folder_of(arguments, seed);
  const std::unique_ptr<FolderLock> lock = locked(folder);
  const StopNote note(how_to_go_on(folder));
  const Stopwatch watch;
  Outcome outcome;
  outcome.study.seed = seed;
  if (!folder.empty())
    if (std::optional<Study> before = design::load_state(folder, problem, seed)) {
      outcome.study = std::move(*before);
      if (!is_quiet())
        fmt::print("going on after {} in {}\n", iterations_text(outcome.study), folder.string());
    }
  try {
    design::run_study(problem, outcome.study, static_cast<int>(arguments.iterations), pool,
                      [&](const Study& study) {
                        if (!folder.empty()) design::save_state(folder, study, problem);
                        if (arguments.seeds == 1) tell_iteration(problem, study);
                      });
    outcome.references = design::references(problem, seed, static_cast<int>(outcome.study.trials.size()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted) throw;
    throw Error(ErrorCode::interrupted, error.message(), {}, how_to_go_on(folder));
  }
  outcome.deviation = problem.deviation(problem.simulate(outcome.study.answer(problem).settings));
  outcome.seconds = watch.seconds();
  if (!folder.empty()) write_folder(folder, problem, outcome);
  return outcome;
}

void print_one(const Problem& problem, const Outcome& outcome) {
  const Study& study = outcome.study;
  fmt::print("{} in {}, {} trials, {}\n", study.converged() ? "met" : "not met", iterations_text(study),
             study.trials.size(), format_seconds(outcome.seconds));
  fmt::print("  {} {}\n", study.converged() ? "settings       " : "nearest trial  ",
             design::settings_text(problem, study.answer(problem).settings));
  if (!problem.target_settings.empty())
    fmt::print("  the target's    {}\n", design::settings_text(problem, problem.target_settings));
  TextTable table({"method", "trials", "largest deviation"});
  table.add_row(
      {"targeted adaptive design", fmt::format("{}", study.trials.size()), percent(outcome.deviation)});
  table.add_row(
      {"floor: Latin hypercube", fmt::format("{}", study.trials.size()), percent(outcome.references.floor)});
  table.add_row({"ceiling: direct optimization without noise",
                 format_count(outcome.references.ceiling_simulations), percent(outcome.references.ceiling)});
  fmt::print("{}", table.to_string());
}

void print_all(const std::vector<Outcome>& outcomes) {
  TextTable table({"seed", "met", "iterations", "trials", "largest deviation", "floor", "ceiling", "time"});
  for (const Outcome& outcome : outcomes)
    table.add_row({fmt::format("{}", outcome.study.seed), outcome.study.converged() ? "yes" : "no",
                   fmt::format("{}", outcome.study.iterations.size()),
                   fmt::format("{}", outcome.study.trials.size()), percent(outcome.deviation),
                   percent(outcome.references.floor), percent(outcome.references.ceiling),
                   format_seconds(outcome.seconds)});
  const auto met =
      std::ranges::count_if(outcomes, [](const Outcome& each) { return each.study.converged(); });
  fmt::print("{}met for {} of {} seeds\n", table.to_string(), met, outcomes.size());
}

Metric metric_of(const std::vector<Outcome>& outcomes, std::string name, double (*value)(const Outcome&)) {
  Metric metric{.name = std::move(name)};
  std::vector<double> all;
  for (const Outcome& outcome : outcomes) all.push_back(value(outcome));
  metric.value = median(all);
  if (all.size() > 1) metric.samples = std::move(all);
  return metric;
}

std::vector<Metric> metrics_of(const std::vector<Outcome>& outcomes) {
  double met = 0;
  for (const Outcome& outcome : outcomes) met += outcome.study.converged();
  return {{.name = "met", .value = met / static_cast<double>(outcomes.size())},
          metric_of(outcomes, "iterations",
                    [](const Outcome& o) { return static_cast<double>(o.study.iterations.size()); }),
          metric_of(outcomes, "trials",
                    [](const Outcome& o) { return static_cast<double>(o.study.trials.size()); }),
          metric_of(outcomes, "largest_deviation", [](const Outcome& o) { return o.deviation; }),
          metric_of(outcomes, "floor", [](const Outcome& o) { return o.references.floor; }),
          metric_of(outcomes, "ceiling", [](const Outcome& o) { return o.references.ceiling; })};
}

void write_json(const Arguments& arguments, const Problem& problem, std::vector<Metric> metrics,
                nlohmann::json details) {
  const nlohmann::json config{{"problem", problem.source},
                              {"seed", arguments.seed},
                              {"seeds", arguments.seeds},
                              {"iterations", arguments.iterations},
                              {"threads", thread_count()}};
  record::Result result = command_result("design", "tad-ald", config, metrics);
  result.details = std::move(details);
  write_result(std::move(result));
}

void run_loop(const Arguments& arguments, const Problem& problem, ThreadPool& pool) {
  std::vector<Outcome> outcomes;
  std::optional<Progress> progress;  // one seed tells of its iterations
  if (arguments.seeds > 1)
    progress.emplace("design " + problem.name, static_cast<double>(arguments.seeds), "seeds");
  for (std::int64_t k = 0; k < arguments.seeds; ++k) {
    outcomes.push_back(run_seed(arguments, problem, arguments.seed + static_cast<std::uint64_t>(k), pool));
    if (progress) progress->update(static_cast<double>(k + 1));
  }
  if (progress) progress->finish();
  if (!is_quiet()) {
    arguments.seeds == 1 ? print_one(problem, outcomes.front()) : print_all(outcomes);
    if (!arguments.out.empty()) fmt::print("written: {}\n", folder_of(arguments, arguments.seed).string());
  }
  nlohmann::json details{{"studies", nlohmann::json::array()}};
  for (const Outcome& outcome : outcomes)
    details["studies"].push_back(design::to_json(outcome.study, problem));
  write_json(arguments, problem, metrics_of(outcomes), std::move(details));
}

void print_proposal(const Problem& problem, const design::Iteration& next, std::size_t trials) {
  fmt::print(
      "after {} trials the target is expected at\n  {}\npredicted {} off, and with its uncertainty {}\n",
      trials, design::settings_text(problem, next.settings), percent(problem.deviation(next.predicted)),
      next.expected_inside ? "surely inside: measure there" : "not surely inside yet");
  std::vector<std::string> header{"measure next"};
  for (const design::Unknown& unknown : problem.unknowns) header.push_back(unknown.name);
  TextTable table(header);
  const auto add = [&](std::string why, const std::vector<double>& settings) {
    std::vector<std::string> row{std::move(why)};
    for (double setting : settings) row.push_back(fmt::format("{:.4g}", setting));
    table.add_row(std::move(row));
  };
  add("where the target is expected", next.settings);
  for (const std::vector<double>& settings : next.learning) add("to learn", settings);
  fmt::print("{}", table.to_string());
}

// For a reactor that is not simulated: one step from what was measured to what to measure.
void ask(const Arguments& arguments, const Problem& problem, ThreadPool& pool) {
  const std::vector<design::Trial> trials = design::read_trials(arguments.trials, problem);
  if (trials.size() < 2)
    throw Error(ErrorCode::bad_file,
                fmt::format("holds {} measured trials, at least 2 are needed", trials.size()),
                arguments.trials, "some ten trials spread over the ranges are a good beginning");
  const design::Iteration next = design::decide(problem, trials, arguments.seed, 1, pool);
  if (!arguments.out.empty()) {
    const std::filesystem::path folder = arguments.out;
    const std::unique_ptr<FolderLock> lock = locked(folder);
    design::write_proposal(folder / "next.csv", problem, next);
    design::page_of(problem, trials, next).write(folder / "design.html");
  }
  if (!is_quiet()) {
    print_proposal(problem, next, trials.size());
    if (!arguments.out.empty()) fmt::print("written: {}\n", arguments.out);
  }
  nlohmann::json names = nlohmann::json::array();
  for (const design::Unknown& unknown : problem.unknowns) names.push_back(unknown.name);
  write_json(arguments, problem,
             {{.name = "trials", .value = static_cast<double>(trials.size())},
              {.name = "predicted_deviation", .value = problem.deviation(next.predicted)},
              {.name = "expected_inside", .value = next.expected_inside ? 1.0 : 0.0}},
             {{"unknowns", names},
              {"settings", next.settings},
              {"learning", next.learning},
              {"predicted", next.predicted},
              {"deviation", next.deviation}});
}

// Noise alone takes one of 50 points beyond three of its deviations once in eight curves.
void warn_of_noise(const Problem& problem) {
  const double narrowest = *std::ranges::min_element(problem.half_width);
  if (problem.noise * 3 > narrowest && !is_quiet())
    say("the tolerance, {:.2g} at its narrowest, is less than three deviations of the noise, {:.2g}: "
        "curves that meet the target will be measured outside it\n",
        narrowest, problem.noise);
}

void run(const Arguments& arguments) {
  if (arguments.example) return fmt::print("{}\n", design::published_case().dump(2));
  const Problem problem = problem_of(arguments);
  warn_of_noise(problem);
  ThreadPool pool(thread_count());
  arguments.trials.empty() ? run_loop(arguments, problem, pool) : ask(arguments, problem, pool);
}

std::string words() {
  return "A Gaussian process learns the response curve from the trials so far; the next trials are those "
         "that make\n"
         "the target likeliest (targeted adaptive design). Each iteration fits it, looks for the settings x "
         "of the\n"
         "target and for settings x2 to learn from, makes a trial at x, and ends when the prediction with "
         "its\n"
         "uncertainty and the measured curve lie inside the tolerance.\n\n"
         "Examples:\n"
         "  superstep design ald --out design/                 the published case, with a page of its "
         "curves\n"
         "  superstep design ald --seeds 10                    how often it ends in time\n"
         "  superstep design ald --example                     the case as a problem file, to be changed\n"
         "  superstep design ald --problem mine.json --out mine/\n"
         "  superstep design ald --problem mine.json --trials measured.csv --out next/\n"
         "The last is for a reactor of your own: measured.csv has a column for each unknown and one for each "
         "point\n"
         "of the curve; next/next.csv says what to measure, append it when its curves are filled in. A "
         "problem\n"
         "without \"process\" may name unknowns of any experiment.\n"
         "With --out every iteration is kept: after Ctrl-C the same command goes on, and so does a larger\n"
         "--iterations. Unknowns of \"ald\", and settings of its \"process\":\n" +
         design::settings_table();
}

}  // namespace

void declare_design(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("process", arguments->what, "what is designed: ald, atomic layer deposition")
      ->type_name("ald")
      ->check(CLI::IsMember({"ald"}))
      ->capture_default_str();
  CLI::Option* const named =
      command.add_option("--case", arguments->case_name, "a problem that is known: anl, the published one")
          ->check(CLI::IsMember({"anl"}))
          ->capture_default_str();
  command.add_option("--problem", arguments->problem, "a problem of your own, in JSON")
      ->type_name("FILE")
      ->excludes(named);
  command
      .add_option("--trials", arguments->trials,
                  "what was measured so far, in CSV: proposes what to measure next")
      ->type_name("FILE");
  command.add_option("--seed", arguments->seed, "seed of the initial trials, the noise and the searches")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
  command.add_option("--seeds", arguments->seeds, "repeat with as many seeds, from --seed on")
      ->type_name("N")
      ->check(whole_number_from(1, 10000))
      ->capture_default_str();
  command.add_option("--iterations", arguments->iterations, "the most iterations")
      ->type_name("N")
      ->check(whole_number_from(1, 1000))
      ->capture_default_str();
  command
      .add_option("--initial", arguments->initial,
                  "trials before the first iteration, in place of the problem's")
      ->type_name("N")
      ->check(whole_number_from(2, 1000));
  command.add_option("--out", arguments->out, "folder for the page, pictures, tables and the state")
      ->type_name("DIR");
  command.add_flag("--example", arguments->example, "print the published case as a problem file");
  command.footer(words());
  command.callback([arguments, &command] {
    refuse_given(command, arguments->example ? "is of a search, and --example prints a problem" : "",
                 {"--problem", "--trials", "--seed", "--seeds", "--iterations", "--initial", "--out"});
    run(*arguments);
  });
}

}  // namespace superstep::cli
