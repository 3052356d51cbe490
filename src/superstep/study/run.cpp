#include "superstep/study/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/processes.h"
#include "superstep/page/page.h"
#include "superstep/study/figures.h"
#include "superstep/study/folder.h"
#include "superstep/study/to_quality.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

// What each job is given of the time: those that fit one after the other by the least that they take, and of
// what is left as much to each.
struct Shares {
  std::size_t jobs = 0;  // the first so many
  double seconds = 0;    // of timed work each
  double share = 1;      // of the study's own time
};

Shares shares_of(const Study& study, const Plan& plan, double minutes) {
  constexpr double seconds_a_minute = 60;
  const double all = (minutes > 0 ? minutes : study.minutes) * seconds_a_minute;
  Shares shares{.share = minutes > 0 ? minutes / study.minutes : 1};
  double least = 0;
  while (shares.jobs < plan.jobs.size() && (shares.jobs == 0 || least + plan.jobs[shares.jobs].least <= all))
    least += plan.jobs[shares.jobs++].least;
  // A call beyond this many seconds says little more, and one below it has too few samples (chosen).
  constexpr double longest = 20, shortest = 0.05;
  const double left = std::max(0.0, all - least) / static_cast<double>(std::max<std::size_t>(1, shares.jobs));
  shares.seconds = std::clamp(left, shortest, longest);
  return shares;
}

Kept done(const Job& job, const Shares& shares, const RunSettings& settings) {
  const int threads = settings.threads;
  Kept kept{.words = job.words(shares.seconds, shares.share),
            .seconds = shares.seconds,
            .share = shares.share,
            .results = {},
            .failure = {}};
  if (threads > 0 && job.way != Way::scale && job.way != Way::all_reduce)
    kept.words.insert(kept.words.end(), {"--threads", fmt::format("{}", threads)});
  std::vector<std::string> words = kept.words;
  words.emplace_back("--quiet");
  if (job.way == Way::train) words.emplace_back("--no-out");
  if (job.way == Way::quality)
    words.insert(words.end(), {"--out", (settings.out / "quality" / job.key).string()});
  try {
    kept.results = lab::run_in_process(words);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    kept.failure = failure_words(error);
  }
  if (kept.results.empty() && kept.failure.empty()) kept.failure = "the command gave no result";
  return kept;
}

std::vector<const Kept*> of_recipe(const Report& report, const Recipe& recipe) {
  std::vector<const Kept*> kept;
  for (const std::size_t job : recipe.jobs) {
    if (!report.kept[job]) return {};
    kept.push_back(&*report.kept[job]);
  }
  return kept;
}

void fill_figures(Report& report) {
  report.measured.clear();
  report.executed.clear();
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    const Recipe &measured = report.plan.measured[i], &executed = report.plan.executed[i];
    report.measured.push_back(measured_figure(report.cells, cell, measured, of_recipe(report, measured)));
    report.executed.push_back(executed_figure(report.cells, cell, executed, of_recipe(report, executed)));
    const std::vector<const Kept*> kept = of_recipe(report, measured);
    if (report.cells.text(cell, "metric") == "time_to_quality" && !kept.empty() &&
        measured.measure->way == Way::quality && report.cells.text(cell, "machine") != "cpu")
      report.predicted[i] = predicted_to_quality(report.cells, cell, measured, *kept.front());
  }
}

void write(Report& report, const fs::path& out) {
  const HoldEnd hold;
  fill_figures(report);
  write_file_atomically(out / "results.json", json_of(report).dump(1) + "\n");
  write_file_atomically(out / "index.html", page_of(report));
}

void do_jobs(Report& report, const KeptJobs& jobs, const RunSettings& settings) {
  const Shares shares = shares_of(report.study, report.plan, settings.minutes);
  Progress progress(report.study.name, static_cast<double>(shares.jobs), "commands");
  for (std::size_t i = 0; i < report.plan.jobs.size(); ++i) {
    const Job& job = report.plan.jobs[i];
    const bool wanted = i < shares.jobs;
    report.kept[i] = jobs.find(job, wanted ? shares.seconds : 0, wanted ? shares.share : 0);
    if (report.kept[i] || !wanted) continue;
    progress.update(static_cast<double>(i), job.key);
    if (interrupted()) throw Error(ErrorCode::interrupted, "between two commands", report.study.name);
    report.kept[i] = done(job, shares, settings);
    jobs.keep(job, *report.kept[i]);
  }
  progress.update(static_cast<double>(shares.jobs));
}

}  // namespace

Report run(const Study& study, const RunSettings& settings) {
  Report report{.study = study,
                .cells = cells_of(study),
                .plan = {},
                .kept = {},
                .predicted = {},
                .measured = {},
                .executed = {}};
  report.plan = plan_of(report.study, report.cells, settings.processors);
  report.kept.resize(report.plan.jobs.size());
  make_folder(settings.out);
  const FolderLock lock(settings.out);
  claim_folder(settings.out, study.name);
  make_folder(settings.out / "jobs");
  report.predicted = predict(report.cells, settings.processors, report.study.prices);
  try {
    do_jobs(report, KeptJobs(settings.out / "jobs"), settings);
  } catch (const Error&) {
    write(report, settings.out);
    throw;
  }
  write(report, settings.out);
  return report;
}

void write_contents(const fs::path& out, const std::vector<Study>& done) {
  page::Page page("Studies");
  std::string list = "<ul>";
  for (const Study& study : done)
    list += fmt::format("<li><a href=\"{0}/index.html\">{1}</a> ({2}, {3})<br>{4}</li>",
                        page::escape(study.name), page::escape(study.title), page::escape(study.paper),
                        page::escape(study.place), page::escape(study.shows));
  page.raw(list + "</ul>");
  page.write(out / "index.html");
}

}  // namespace superstep::study
