#include "superstep/study/quality/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/run/model.h"
#include "superstep/study/folder.h"
#include "superstep/study/quality/tables.h"

namespace superstep::study {
namespace {

void write(const QualityReport& report) {
  const HoldEnd hold;
  write_file_atomically(report.settings.out / "results.json", json_of(report).dump(1) + "\n");
  write_file_atomically(report.settings.out / "index.html", page_of(report));
}

std::string lines_of(const ReportTable& table) {
  TextTable lines(table.header);
  for (const std::vector<std::string>& row : table.rows) lines.add_row(row);
  return lines.to_string();
}

}  // namespace

QualityReport study_quality(const QualitySettings& settings) {
  check(settings);
  const run::Model model({.workload = settings.workload, .model_options = settings.options});
  QualityReport report{.settings = settings,
                       .goal = run::to_string(settings.until, model.workload()),
                       .trainings = {},
                       .reached = {},
                       .laws = {},
                       .noises = {},
                       .costs = {}};
  make_folder(settings.out);
  const FolderLock lock(settings.out);
  claim_folder(settings.out, "quality of " + settings.workload);
  report.trainings = trainings_of(settings);
  report.reached = summary_of(report.trainings);
  for (const std::string& precision : settings.precisions)
    if (const auto law = law_of(report.reached, precision)) report.laws.push_back(*law);
  report.noises = noises_of(settings, report.trainings);
  report.costs = costs_of(settings, report.reached);
  write(report);
  return report;
}

std::string text_of(const QualityReport& report) {
  std::string text = fmt::format(
      "{}: until {}, learning rate by the batch: {}\n\nmeasured\n{}\n"
      "the gradient's noise scale\n{}\n"
      "predicted (80 %), with the seeds' spread\n{}\n",
      report.settings.workload, report.goal, study::name_of(report.settings.rule),
      lines_of(reached_table(report)), lines_of(noise_table(report)), lines_of(cost_table(report)));
  for (const std::string& finding : findings_of(report)) text += "- " + finding + "\n";
  return text;
}

}  // namespace superstep::study
