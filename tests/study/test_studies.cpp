// Studies are read or refused, hold what is published, and say of every figure where it is from.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "superstep/base/error.h"
#include "superstep/lab/validate/published.h"
#include "superstep/page/page.h"
#include "superstep/study/figures.h"
#include "superstep/study/report.h"
#include "tests/contains.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

const std::string good =
    "title = \"t\"\nshows = \"s\"\n[[cells]]\nworkload = \"braggnn\"\nmode = \"train\"\nmachine = "
    "[\"gc200\", "
    "\"bow\"]\nmicro_batch = [16, 32]\nmetric = \"throughput\"\nunit = \"samples/s\"\n[[measure]]\nwith = "
    "\"bench\"\n";

std::string with(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

TEST(StudyFiles, AreAllInTheProgram) {
  std::set<std::string> files, known;
  for (const auto& entry : fs::directory_iterator(fs::path(SUPERSTEP_SOURCE) / "studies"))
    if (entry.path().extension() == ".toml") files.insert(entry.path().stem().string());
  for (const Study& study : studies()) known.insert(study.name);
  EXPECT_EQ(files, known);
  EXPECT_GT(known.size(), 10U);
}

// By file, line and key, before any work.
TEST(StudyFiles, AreRefusedByLine) {
  EXPECT_EQ(cells_of(parse_study(good, "a.toml")).list.size(), 4U);
  const std::pair<std::string, std::string> wrong[] = {
      {with(good, "braggnn", "bragnn"), "a.toml:4: workload 'bragnn' is no workload"},
      {with(good, "gc200", "gc2000"), "a.toml:6: machine 'gc2000' is none of"},
      {with(good, "[16, 32]", "[16, \"x\"]"), "a.toml:7: micro_batch must be a whole number"},
      {with(good, "micro_batch", "micro_batches"), "a.toml:7: micro_batches is not a key of [[cells]]"},
      {with(good, "\"bench\"", "\"benches\""), "a.toml:11: with 'benches' is none of"},
      {with(good, "title = \"t\"", "title = 3"), "a.toml:1: title must be a text"},
      {with(good, "title = \"t\"", "title = "), "a.toml:1"},
      {"title = \"t\"\nshows = \"s\"\n", "cells is missing"}};
  for (const auto& [text, words] : wrong) {
    try {
      parse_study(text, "a.toml");
      ADD_FAILURE() << "is taken: " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << words;
      EXPECT_TRUE(contains(error.what(), words)) << error.what();
    }
  }
}

TEST(StudyFiles, RefuseRowsThatNobodyPublished) {
  Study study = parse_study(good, "a.toml");
  study.published = {"bragg-gc200-513"};
  EXPECT_THROW(cells_of(study), Error);
}

// Whether the page has the row, in its table of what is published: source, place and value beside the name.
::testing::AssertionResult has_row(const std::string& page, const lab::PublishedTable& table,
                                   std::size_t row) {
  const std::string& id = table.text(row, "id");
  const std::size_t begin = page.find("<td>" + id + "</td>");
  if (begin == std::string::npos) return ::testing::AssertionFailure() << id << " has no row";
  const std::string line = page.substr(begin, page.find("</tr>", begin) - begin);
  const std::string value = ">" + number_words(table.number(row, "value", 0)) + "</td>";
  for (const std::string& part : {value, ">" + page::escape(table.text(row, "source")) + "</td>",
                                  ">" + page::escape(table.text(row, "place")) + "</td>"})
    if (line.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << id << ": '" << part << "' is not in " << line;
  return ::testing::AssertionSuccess();
}

// Every published number of a study's page is that of the table.
TEST(Studies, SayWhatIsPublished) {
  for (const Study& study : studies()) {
    Report report{.study = study,
                  .cells = cells_of(study),
                  .plan = {},
                  .kept = {},
                  .predicted = {},
                  .measured = {},
                  .executed = {}};
    const Figure nothing{.value = {}, .words = "not yet"};
    report.predicted.assign(report.cells.list.size(), nothing);
    report.measured = report.executed = report.predicted;
    const std::string page = page_of(report);
    std::size_t published = 0;
    for (const lab::PublishedTable* table : {&lab::published_results(), &lab::further_published()})
      for (std::size_t row = 0; row < table->rows(); ++row) {
        const std::string& id = table->text(row, "id");
        if (std::ranges::find(study.published, id) == study.published.end()) continue;
        ++published;
        EXPECT_TRUE(has_row(page, *table, row)) << study.name;
        // It would be seen if the page had another one.
        std::string wrong = page;
        const std::string value = ">" + number_words(table->number(row, "value", 0)) + "</td>";
        wrong.replace(wrong.find(value, wrong.find("<td>" + id + "</td>")), value.size(), ">0.12345</td>");
        EXPECT_FALSE(has_row(wrong, *table, row)) << study.name;
      }
    EXPECT_EQ(published, study.published.size()) << study.name;
  }
}

// A row that no page shows is of no use to anybody.
TEST(Studies, ShowEveryRowThatIsPublished) {
  std::set<std::string> shown;
  for (const Study& study : studies()) shown.insert(study.published.begin(), study.published.end());
  for (const lab::PublishedTable* table : {&lab::published_results(), &lab::further_published()})
    for (std::size_t row = 0; row < table->rows(); ++row)
      EXPECT_TRUE(shown.contains(table->text(row, "id"))) << table->text(row, "id");
}

TEST(Studies, PlanCommandsThatSayTheBatch) {
  const Study study = parse_study(good, "a.toml");
  const Cells cells = cells_of(study);
  const Plan plan = plan_of(study, cells, 2);
  ASSERT_EQ(plan.jobs.size(), 2U) << "cells of two machines share what is measured";
  EXPECT_EQ(plan.jobs[0].key, "bench-braggnn-mode-train-precision-f32-batch-16-nopeak");
  EXPECT_EQ(plan.measured[0].jobs, plan.measured[2].jobs);
}

// What a call before kept counts, unless it was given much less than now.
TEST(KeptJobs, AreFoundAgain) {
  const fs::path folder = fs::temp_directory_path() / ("superstep-kept-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const KeptJobs jobs(folder);
  const Job job{.key = "a", .command = {"bench", "mlp"}};
  EXPECT_FALSE(jobs.find(job, 1, 1));
  record::Result result{.command = "bench", .id = "mlp"};
  result.add("throughput", 3, "samples/s");
  jobs.keep(job, {.words = {"bench", "mlp", "--seconds", "1"},
                  .seconds = 1,
                  .share = 1,
                  .results = {result},
                  .failure = {}});
  ASSERT_TRUE(jobs.find(job, 1.5, 1));
  EXPECT_EQ(jobs.find(job, 1, 1)->results.front().find("throughput")->value, 3);
  EXPECT_FALSE(jobs.find(job, 3, 1));
  EXPECT_FALSE(jobs.find({.key = "a", .command = {"bench", "lstm"}}, 1, 1));
  std::ofstream(folder / "a.json") << "{";
  EXPECT_THROW(jobs.find(job, 1, 1), Error);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace superstep::study
