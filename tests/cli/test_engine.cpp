// superstep profile, int8 inference, tuning and memory limits: as a user runs them and gets them wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/processor.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

void expect_refused(const ScratchFolder& folder, const std::string& arguments, int code,
                    const std::string& part) {
  const Outcome outcome = run_program(folder / "", arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, part)) << arguments;
}

nlohmann::json metrics_of(const std::filesystem::path& path) {
  return nlohmann::json::parse(content_of(path)).at("metrics");
}

TEST(ProfileCommand, WritesAPageAndATrace) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "profile mlp --batch 64 --runs 3 --threads 2 --out p --json p.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "of the floor"));
  EXPECT_TRUE(std::filesystem::exists(folder / "p/profile.html"));
  EXPECT_TRUE(nlohmann::json::accept(content_of(folder / "p/trace.json")));
  EXPECT_GT(metrics_of(folder / "p.json").at("share_of_floor").at("value").get<double>(), 0);
}

TEST(ProfileCommand, SimulatesThreads) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "profile mlp --batch 64 --runs 3 --simulate 4,16 --json p.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "times as fast"));
  const nlohmann::json metrics = metrics_of(folder / "p.json");
  for (const char* name : {"step_time_1_threads", "step_time_4_threads", "step_time_16_threads"}) {
    EXPECT_EQ(metrics.at(name).at("how"), "predicted") << name;
    EXPECT_LE(metrics.at(name).at("low").get<double>(), metrics.at(name).at("high").get<double>()) << name;
  }
  EXPECT_EQ(metrics.at("step_time_1_threads_measured").at("how"), "measured");
}

TEST(ProfileCommand, RefusesWrongUse) {
  const ScratchFolder folder;
  expect_refused(folder, "profile mlp --simulate 0", 2, "--simulate");
  expect_refused(folder, "profile mlp --simulate 4 --out p", 2, "--simulate");
  expect_refused(folder, "profile mlp --on gc200 --simulate 4", 1, "threads are a processor's");
  expect_refused(folder, "profile mlp --on gc2000", 2, "there is no profile of this machine");
  expect_refused(folder, "profile mlp --mode trian", 2, "did you mean 'train'?");
  expect_refused(folder, "profile nothing", 2, "there is no such workload");
  expect_refused(folder, "profile mlp --runs 1", 2, "--runs");
}

TEST(Results, NameTheMachineThatTheySpeakOf) {
  const ScratchFolder folder;
  const auto machine_after = [&](const std::string& arguments) {
    const Outcome outcome = run_program(folder / "", arguments + " --json r.json --quiet");
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.errors;
    return nlohmann::json::parse(content_of(folder / "r.json")).at("machine").at("id").get<std::string>();
  };
  EXPECT_EQ(machine_after("predict mlp --on bow --micro-batch 8"), "bow");
  EXPECT_EQ(machine_after("infer mlp --samples 8 --batch 8"), "cpu");
  // Not "cpu": what the exact definitions take says nothing of what this machine can do.
  EXPECT_EQ(machine_after("infer mlp --samples 8 --batch 8 --on reference"), "reference");
  EXPECT_EQ(machine_after("infer mlp --samples 8 --batch 8 --on gc200"), "gc200");
  EXPECT_EQ(machine_after("profile mlp --mode infer --batch 8 --on gc2"), "gc2");
}

// What a modelled machine takes is predicted; how long this host took to execute it is measured.
TEST(InferCommand, SaysWhatIsModelled) {
  const ScratchFolder folder;
  const Outcome modelled =
      run_program(folder / "", "infer mlp --samples 4 --batch 2 --on gc200 --json m.json");
  ASSERT_EQ(modelled.code, 0) << modelled.errors;
  EXPECT_TRUE(contains(modelled.output, "throughput and latency are modeled"));
  const nlohmann::json metrics = metrics_of(folder / "m.json");
  EXPECT_EQ(metrics.at("throughput").at("how"), "predicted");
  EXPECT_EQ(metrics.at("latency_mean").at("how"), "predicted");
  EXPECT_EQ(metrics.at("host_time").at("how"), "measured");
  EXPECT_FALSE(metrics.contains("latency_p50"));
  const Outcome measured = run_program(folder / "", "infer mlp --samples 4 --batch 2 --json c.json");
  ASSERT_EQ(measured.code, 0) << measured.errors;
  EXPECT_EQ(metrics_of(folder / "c.json").at("throughput").at("how"), "measured");
  EXPECT_FALSE(contains(measured.output, "modelled"));
}

TEST(InferCommand, StopsWhenTheUserAsks) {
  const ScratchFolder folder;
  const Outcome stopped =
      run_program(folder / "", "infer unet-256 --on gc200 --batch 1 --samples 1 --quiet",
                  "timeout --foreground --preserve-status -s INT 0.5");  // else the signal comes twice
  EXPECT_EQ(stopped.code, 130) << stopped.errors;
  EXPECT_TRUE(contains(stopped.errors, "stopped")) << stopped.errors;
}

TEST(ProfileCommand, RunsOnSeveralChips) {
  const ScratchFolder folder;
  const Outcome piped = run_program(folder / "",
                                    "profile mlp --on gc200 --mode infer --pipeline 2,2 --accumulate 4 "
                                    "--batch 16 --json p.json --out p");
  ASSERT_EQ(piped.code, 0) << piped.errors;
  EXPECT_TRUE(contains(piped.output, "on chips: 2 stages, layers 2,2; 4 micro-batches"));
  EXPECT_TRUE(contains(piped.output, "Cycles of steps of chip 1"));
  const nlohmann::json profile = nlohmann::json::parse(content_of(folder / "p/profile.json"));
  EXPECT_EQ(profile.at("compilation").at("target").at("numIPUs"), 2);
  EXPECT_GT(profile.at("execution").at("linkBytes").get<int>(), 0);
  EXPECT_EQ(profile.at("execution").at("runs").at(0).at("activeCyclesOfIpus").size(), 2U);
  const Outcome trained =
      run_program(folder / "", "profile mlp --on bow --mode train --replicas 2 --accumulate 2 --batch 16");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_TRUE(contains(trained.output, "CrossReplicaCopy gradients of the partner at 1"));
  const Outcome served = run_program(
      folder / "", "infer mlp --on gc200 --pipeline auto --units 2 --accumulate 2 --batch 4 --samples 4");
  EXPECT_EQ(served.code, 0) << served.errors;
  EXPECT_TRUE(contains(served.output, "2 stages"));
  const Outcome staged =
      run_program(folder / "", "profile mlp --on gc200 --pipeline 2,2 --accumulate 2 --batch 8");
  EXPECT_EQ(staged.code, 0) << staged.errors;
  EXPECT_TRUE(contains(staged.output, "2 stages, layers 2,2; 2 micro-batches"));
  expect_refused(folder, "profile mlp --replicas 2", 1, "several chips");
  expect_refused(folder, "infer mlp --on gc200 --pipeline auto --samples 4", 2, "say how many chips");
}

TEST(Int8, ShowsBothPrecisions) {
  const ScratchFolder folder;
  ASSERT_EQ(
      run_program(folder / "", "generate braggnn --samples 1200 --set margin=1 --out peaks.h5 --quiet").code,
      0);
  ASSERT_EQ(
      run_program(folder / "", "train braggnn --data peaks.h5 --epochs 2 --batch 64 --out run --quiet").code,
      0);
  const Outcome outcome = run_program(folder / "",
                                      "infer braggnn --weights run --input peaks.h5 --precision int8 "
                                      "--calibrate 256 --batch 64 --byte-error 0 --onnx q.onnx "
                                      "--json q.json --explain");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  if (!test::multiplies_bytes()) {
    EXPECT_TRUE(contains(outcome.output, "0 of 13 products on bytes")) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "stays in f32: this processor has no fast products of bytes"));
    return;
  }
  EXPECT_TRUE(contains(outcome.output, " of 13 products on bytes, ranges by percentile of 256 samples"));
  EXPECT_EQ(contains(outcome.output, "\n4 of 13 products"), test::multiplies_bytes_by_fours())
      << outcome.output;
  EXPECT_FALSE(contains(outcome.output, "\n0 of 13 products"));
  EXPECT_TRUE(contains(outcome.output, "integer convolution"));
  const auto metrics = metrics_of(folder / "q.json");
  for (const char* name : {"error_px_p50", "error_px_p75", "error_px_p95", "error_px_p995", "throughput"})
    EXPECT_TRUE(metrics.contains(name) && metrics.contains(std::string("f32_") + name)) << name;
  EXPECT_NE(metrics.at("error_px_p50").at("value"), metrics.at("f32_error_px_p50").at("value"));
  const std::string file = content_of(folder / "q.onnx");
  EXPECT_NE(file.find("ConvInteger"), std::string::npos);
  expect_refused(folder, "infer braggnn --weights run --input peaks.h5 --precision int8 --calibrate 5000", 2,
                 "there are 1200 samples");
}

TEST(Int8, RefusesWrongUse) {
  const ScratchFolder folder;
  expect_refused(folder, "infer mlp --calibrate 100", 2, "belongs to --precision int8");
  expect_refused(folder, "infer mlp --precision bf16 --ranges entropy", 2, "belongs to --precision int8");
  expect_refused(folder, "infer mlp --precision int8 --ranges entropi --samples 64", 2,
                 "did you mean 'entropy'?");
  expect_refused(folder, "train mlp --precision int8", 2, "int8");
}

TEST(Tune, IsRememberedAndExplained) {
  const ScratchFolder folder;
  const std::string command = "train mlp --steps 3 --batch 256 --samples 2000 --threads 1 --tune --explain";
  const Outcome first = run_program(folder / "", command), again = run_program(folder / "", command);
  ASSERT_EQ(first.code, 0) << first.errors;
  EXPECT_TRUE(contains(first.output, "micro-batch: tuned: micro-batch"));
  EXPECT_TRUE(contains(again.output, "micro-batch: tuned before: micro-batch"));
  const Outcome given = run_program(folder / "", command + " --micro-batch 32");
  EXPECT_TRUE(contains(given.output, "in micro-batches of 32"));
  EXPECT_TRUE(contains(given.output, "as asked for"));
}

TEST(MemoryLimit, IsKeptOrRefused) {
  const ScratchFolder folder;
  const std::string command =
      "train braggnn --steps 2 --samples 400 --batch 64 --threads 1 --explain --memory-limit ";
  const Outcome small = run_program(folder / "", command + "3M");
  ASSERT_EQ(small.code, 0) << small.errors;
  EXPECT_TRUE(contains(small.output, "stays below the limit of 3 MB"));
  expect_refused(folder, command + "100k", 1, "the smallest plan takes");
  expect_refused(folder, command + "few", 2, "--memory-limit");
}

}  // namespace
}  // namespace superstep
