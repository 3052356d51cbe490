// Studies are read or refused, hold what is published, and say of every figure where it is from.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
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
      {good + "gradient = \"forward:1\"\n", "gradient is of trainings"},
      {with(good, "\"bench\"", "\"train\"") + "steps = 10\ngradient = \"revers\"\n", "revers"},
      {good + "[plot]\nx = \"machine\"\n", "must be a column of numbers, or workload"},
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

// By the note of a cell, too: one model trained in several ways.
TEST(Studies, TrainByNote) {
  const std::string train = "[[measure]]\nwith = \"train\"\nsteps = 10\nseeds = 2\n";
  const Study study = parse_study(
      "title = \"t\"\nshows = \"s\"\n[[cells]]\nworkload = \"wallmodel\"\nmode = \"train\"\nmachine = "
      "\"cpu\"\n"
      "metric = \"mse\"\nunit = \"1\"\nnote = [\"exact\", \"random\", \"neither\"]\n" +
          train + "note = [\"exact\"]\n" + train + "note = [\"random\"]\ngradient = \"forward:4\"\n",
      "a.toml");
  const Cells cells = cells_of(study);
  ASSERT_EQ(cells.list.size(), 3U);
  const Plan plan = plan_of(study, cells, 2);
  ASSERT_EQ(plan.jobs.size(), 4U);
  const auto has_gradient = [&](std::size_t cell) {
    return std::ranges::find(plan.jobs[plan.measured[cell].jobs.at(0)].command, "forward:4") !=
           plan.jobs[plan.measured[cell].jobs.at(0)].command.end();
  };
  EXPECT_FALSE(has_gradient(0));
  EXPECT_TRUE(has_gradient(1));
  EXPECT_TRUE(plan.measured[2].jobs.empty());
}

// In words that are computed from the figures: the least first, and whether the seeds tell them apart.
TEST(Studies, SayWhatTrainingsCameTo) {
  const Study study = parse_study(
      "title = \"t\"\nshows = \"s\"\n[[cells]]\nworkload = \"wallmodel\"\nmode = \"train\"\nmachine = "
      "\"cpu\"\n"
      "metric = \"mse\"\nunit = \"1\"\nnote = [\"random\", \"exact\", \"mixed\"]\n",
      "a.toml");
  Report report{.study = study,
                .cells = cells_of(study),
                .plan = {},
                .kept = {},
                .predicted = std::vector<Figure>(3),
                .measured = {},
                .executed = std::vector<Figure>(3)};
  const auto said = [&] {
    std::string all;
    for (const std::string& finding : findings_of(report)) all += finding + "\n";
    return all;
  };
  report.measured = {{0.5, 0.4, 0.6, ""}, {0.1, 0.09, 0.12, ""}, {0.2, 0.15, 0.3, ""}};
  EXPECT_TRUE(contains(
      said(), "mse is least for exact (0.1); mixed has 2 times as much; random has 5 times as much."))
      << said();
  EXPECT_TRUE(contains(said(), "The seeds of each lie apart")) << said();
  report.measured[2].high = 0.45;
  EXPECT_TRUE(contains(said(), "The seeds do not tell apart: mixed and random.")) << said();
  report.measured[0].value = report.measured[2].value = std::nullopt;
  EXPECT_FALSE(contains(said(), "is least for")) << said();
}

// Primitives are held against the memory as models are, and a sweep of them says where it ends.
TEST(Studies, SayWhereMemoryEnds) {
  const Study study = parse_study(
      "title = \"t\"\nshows = \"s\"\n[[cells]]\nworkload = [\"gemm_512\", \"gemm_2048\", \"gemm_8192\", "
      "\"gemm_16384\", \"gemm_32768\"]\nmode = \"infer\"\nmachine = [\"groqchip\", \"gc200\", "
      "\"a100-40gb\"]\nunits = "
      "1\nprecision = \"fp16\"\nmetric = \"compute_rate\"\nunit = \"TFLOPS\"\n[plot]\nx = "
      "\"workload\"\nseries "
      "= \"machine\"\n",
      "a.toml");
  Report report{.study = study,
                .cells = cells_of(study),
                .plan = {},
                .kept = {},
                .predicted = predict(cells_of(study), 1),
                .measured = {},
                .executed = {}};
  report.measured = report.executed = std::vector<Figure>(report.cells.list.size());
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    const std::int64_t extent = report.cells.position(cell, "workload");
    // Three matrices in halves.
    const double bytes = 3.0 * 2 * static_cast<double>(extent) * static_cast<double>(extent);
    const std::string& machine = report.cells.text(cell, "machine");
    const double memory = machine == "groqchip" ? 230e6 : machine == "gc200" ? 900e6 : 40e9;
    EXPECT_EQ(report.predicted[i].memory_ends, bytes > memory) << extent << ": " << report.predicted[i].words;
    EXPECT_EQ(report.predicted[i].value.has_value(), bytes <= memory);
    const bool says = contains(report.predicted[i].words, "it takes " + format_bytes(bytes));
    EXPECT_EQ(says, bytes > memory) << report.predicted[i].words;
    EXPECT_FALSE(contains(report.predicted[i].words, "''")) << report.predicted[i].words;
  }
  std::string said;
  for (const std::string& finding : findings_of(report)) said += finding + "\n";
  EXPECT_TRUE(contains(said, "groqchip: memory ends behind extent 2048: extent 8192 does not fit")) << said;
  EXPECT_TRUE(contains(said, "gc200: memory ends behind extent 8192: extent 16384 does not fit")) << said;
  EXPECT_FALSE(contains(said, "a100-40gb: memory ends")) << said;
  EXPECT_TRUE(contains(said, "extent from 512 to 32768")) << said;
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
