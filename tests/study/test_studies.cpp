// Studies are read or refused, hold what is published, and say of every figure where it is from.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/lab/validate/published.h"
#include "superstep/page/page.h"
#include "superstep/study/figures.h"
#include "superstep/study/report.h"
#include "superstep/study/to_quality.h"
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
      {with(good, "\"bench\"", "\"quality\"") + "samples = 9\nepochs = 2\nworkload = \"mlp\"\n",
       "until is missing"},
      {with(good, "\"bench\"", "\"quality\"") +
           "until = \"accuracy=0.5\"\nsamples = 9\nepochs = 2\nworkload = \"mlp\"\n",
       "accuracy"},
      {with(good, "\"bench\"", "\"quality\"") + "until = \"rmse=0.5\"\nepochs = 2\nworkload = \"mlp\"\n",
       "samples is missing"},
      {good + "until = \"rmse=0.5\"\n", "until is of trainings to a quality"},
      {with(good, "\"throughput\"", "\"throughput_per_price\""), "[[price]] of gc200 is what a.toml:3 needs"},
      {good + "[[price]]\nmachine = \"gc200\"\nsource = \"x\"\n", "dollars must be a number above zero"},
      {good + "[[price]]\nmachine = \"gc200\"\ndollars = 5\n", "source is missing"},
      {with(good, "braggnn", "llm:llama-2-8b"), "did you mean"},
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

// As the acceptance of a study says: whoever gives no time waits five minutes at most.
TEST(Studies, TakeFiveMinutesAtMostByDefault) {
  for (const Study& study : studies()) EXPECT_LE(study.minutes, 5) << study.name;
}

std::vector<Figure> predicted_of(const std::string& cells, const std::vector<Price>& prices = {}) {
  const Study study = parse_study("title = \"t\"\nshows = \"s\"\n" + cells, "a.toml");
  return predict(cells_of(study), 1, prices);
}

std::string cells_with(const std::string& rest) {
  return "[[cells]]\nmode = \"train\"\nunits = 1\nmicro_batch = 16\ngrad_accum = 1\n" + rest;
}

// A step is the sum of its parts, on machines of every style.
TEST(StudyPredictions, DivideAStepIntoPartsThatAddUp) {
  const std::vector<Figure> figures = predicted_of(
      cells_with("workload = [\"braggnn\", \"resnet50\"]\nmachine = [\"a100-40gb\", \"gc200\", \"sn10\", "
                 "\"cs2\"]\nprecision = \"mixed\"\nmetric = [\"step_time\", \"compute_time\", \"data_time\", "
                 "\"launch_time\", \"host_time\"]\nunit = \"ms\"\n"));
  ASSERT_EQ(figures.size(), 40U);
  for (std::size_t step = 0; step < figures.size(); step += 5) {
    double sum = 0;
    for (std::size_t part = 1; part < 5; ++part) {
      ASSERT_TRUE(figures[step + part].value) << figures[step + part].words;
      EXPECT_GE(*figures[step + part].value, 0);
      sum += *figures[step + part].value;
    }
    EXPECT_NEAR(sum, figures[step].value.value(), 1e-9 * sum) << step;
  }
}

TEST(StudyPredictions, DivideThroughputByWhatItsUnitsCost) {
  const std::string of = "workload = \"braggnn\"\nmachine = \"gc200\"\n";
  const std::string price = "[[price]]\nmachine = \"gc200\"\ndollars = 500\nsource = \"x\"\n";
  const Figure rate =
      predicted_of(cells_with(of + "metric = \"throughput\"\nunit = \"samples/s\"\n")).front();
  const std::string asked =
      cells_with(of + "metric = \"throughput_per_price\"\nunit = \"samples/s per $1,000\"\n") + price;
  const Figure figure = predicted_of(asked, {{"gc200", "x", 500}}).front();
  EXPECT_DOUBLE_EQ(figure.value.value(), 2 * rate.value.value());
  EXPECT_DOUBLE_EQ(figure.high, 2 * rate.high);
  EXPECT_FALSE(predicted_of(asked).front().value);
}

// A process that takes 10 ms for a picture feeds 100 per second at most, and eight of them eight times as
// many.
TEST(StudyPredictions, AreFedByAsManyProcessesAsTheirCellsSay) {
  const std::vector<Figure> figures = predicted_of(
      cells_with("workload = \"resnet50\"\nmachine = \"gc200\"\nprecision = \"mixed\"\nloaders = [1, 8]\n"
                 "sample_us = 10000\nmetric = \"throughput\"\nunit = \"images/s\"\n"));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_LT(figures[0].value.value(), 100);
  EXPECT_NEAR(figures[1].value.value() / figures[0].value.value(), 8, 0.01);
}

std::string requests(const std::string& rest) {
  return "[[cells]]\nworkload = \"llm:llama-2-7b\"\nmode = \"infer\"\nmachine = \"bow\"\nprecision = "
         "\"fp16\"\nmicro_batch = 2\ntokens_in = 512\ntokens_out = 512\n" +
         rest;
}

// Weights of 13.5 GB do not lie in 16 IPUs of 0.9 GB with their requests; replicas answer twice as many.
TEST(StudyPredictions, OfLanguageModelsAreOfStagesAndReplicas) {
  const std::string tokens = "metric = \"throughput\"\nunit = \"tokens/s\"\n";
  const std::vector<Figure> devices = predicted_of(requests("units = [16, 32]\n" + tokens));
  EXPECT_TRUE(devices[0].memory_ends);
  EXPECT_TRUE(contains(devices[0].words, "nearest: 32 units")) << devices[0].words;
  ASSERT_TRUE(devices[1].value) << devices[1].words;
  const Figure twice = predicted_of(requests("units = 64\nreplicas = 2\n" + tokens)).front();
  EXPECT_DOUBLE_EQ(twice.value.value(), 2 * *devices[1].value);
  const Figure latency = predicted_of(requests("units = 32\nmetric = \"latency\"\nunit = \"s\"\n")).front();
  EXPECT_NEAR(latency.value.value() * *devices[1].value, 2 * 512, 1e-6);
  const Figure staged = predicted_of(requests("units = 32\npipeline_stages = 32\n" + tokens)).front();
  EXPECT_NE(staged.value.value(), *devices[1].value);
  const Figure uneven = predicted_of(requests("units = 48\npipeline_stages = 32\n" + tokens)).front();
  EXPECT_TRUE(contains(uneven.words, "48 units are not shared by 1 replicas of 32 stages")) << uneven.words;
  const Figure step = predicted_of(requests("units = 32\nmetric = \"step_time\"\nunit = \"s\"\n")).front();
  EXPECT_FALSE(step.value);
}

// Out of what a study of quality found: of all seeds or of none.
TEST(StudyQualityCells, AreOfAllSeeds) {
  const Study study = parse_study(
      "title = \"t\"\nshows = \"s\"\n[[cells]]\nworkload = \"mlp\"\nmode = \"train\"\nmachine = [\"cpu\", "
      "\"gc200\"]\nmicro_batch = [32, 64]\nmetric = [\"steps_to_quality\", \"time_to_quality\"]\nunit = "
      "\"s\"\n[[measure]]\nwith = \"quality\"\nworkload = \"mlp\"\nuntil = \"rmse=0.5\"\nsamples = "
      "1000\nepochs = 4\nseeds = 2\n",
      "a.toml");
  const Cells cells = cells_of(study);
  const Plan plan = plan_of(study, cells, 2);
  ASSERT_EQ(plan.jobs.size(), 1U) << "one command for all batches and machines";
  EXPECT_EQ(join(plan.jobs[0].words(1, 1), " "),
            "study quality mlp --until rmse=0.5 --batch 32,64 --precision f32 --seeds 2 --on gc200 --units 1 "
            "--samples 1000 --epochs 4");
  EXPECT_TRUE(contains(join(plan.jobs[0].words(1, 0.001), " "), "--samples 64 --epochs 1"));
  const auto training = [](int batch, const char* ending, double steps) {
    return nlohmann::json{{"precision", "f32"}, {"batch", batch},        {"seed", 1},     {"ending", ending},
                          {"steps", steps},     {"seconds", steps / 10}, {"quality", 0.4}};
  };
  record::Result result{.command = "study", .id = "quality"};
  result.details["report"] = {{"trainings",
                               {training(32, "reached", 10), training(32, "reached", 30),
                                training(64, "reached", 5), training(64, "not reached", 9)}},
                              {"costs",
                               {{{"machine", "gc200"},
                                 {"units", 1},
                                 {"precision", "f32"},
                                 {"batch", 32},
                                 {"seconds", {{"value", 0.5}, {"low", 0.25}, {"high", 1}}}}}}};
  const Kept kept{.words = {}, .results = {result}, .failure = {}};
  const Kept* one = &kept;
  for (std::size_t i = 0; i < cells.list.size(); ++i) {
    const Cell& cell = cells.list[i];
    const bool here = cells.text(cell, "machine") == "cpu",
               steps = cells.text(cell, "metric").starts_with("steps");
    const bool reached = cells.count(cell, "micro_batch") == 32;
    const Figure figure = measured_figure(cells, cell, plan.measured[i], {&one, 1});
    EXPECT_EQ(figure.value.has_value(), reached && (here || steps)) << cell.key << figure.words;
    if (figure.value) {
      EXPECT_DOUBLE_EQ(*figure.value, steps ? 20 : 2);
      EXPECT_DOUBLE_EQ(figure.high, steps ? 30 : 3);
    } else if (!reached && steps) {
      EXPECT_TRUE(contains(figure.words, "1 of 2 seeds did not reach it")) << figure.words;
    }
    const Figure machine = predicted_to_quality(cells, cell, plan.measured[i], kept);
    EXPECT_EQ(machine.value.has_value(), reached && !here) << cell.key;
  }
}

// Where a predicted step goes is said in shares.
TEST(Studies, SayWhereAStepGoes) {
  const Study study = parse_study(
      "title = \"t\"\nshows = \"s\"\n[[cells]]\nworkload = \"mlp\"\nmode = \"train\"\nmachine = "
      "\"gc200\"\nmetric = [\"compute_time\", \"data_time\", \"launch_time\", \"host_time\"]\nunit = "
      "\"ms\"\n",
      "a.toml");
  Report report{.study = study,
                .cells = cells_of(study),
                .plan = {},
                .kept = {},
                .predicted = {{1.0}, {2.0}, {0.0}, {1.0}},
                .measured = std::vector<Figure>(4),
                .executed = std::vector<Figure>(4)};
  std::string said;
  for (const std::string& finding : findings_of(report)) said += finding + "\n";
  EXPECT_TRUE(contains(said, "compute 25 %, data 50 %, launch 0 %, host 25 %.")) << said;
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
