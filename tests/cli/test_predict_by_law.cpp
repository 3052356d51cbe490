// superstep predict of language models, networks of pictures and primitives of GPUs, by laws of few
// constants.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

nlohmann::json predicted(const std::string& arguments) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "predict " + arguments + " --json r.json");
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "by the law of")) << outcome.output;
  return outcome.code == 0 ? nlohmann::json::parse(content_of(folder / "r.json")) : nlohmann::json();
}

void expect_intervals(const nlohmann::json& result) {
  for (const auto& [name, metric] : result.at("metrics").items()) {
    EXPECT_EQ(metric.at("how"), "predicted") << name;
    EXPECT_LT(metric.at("low").get<double>(), metric.at("value").get<double>()) << name;
    EXPECT_GT(metric.at("high").get<double>(), metric.at("value").get<double>()) << name;
  }
}

double value_of(const nlohmann::json& result, const char* metric) {
  return result.at("metrics").at(metric).at("value").get<double>();
}

TEST(PredictByLaw, RequestsOfALanguageModel) {
  const std::string call =
      "llm:llama-3-8b --on h100 --stack vllm --tokens-in 1024 --tokens-out 256 --concurrency ";
  const nlohmann::json few = predicted(call + "4"), many = predicted(call + "64");
  for (const nlohmann::json& result : {few, many}) expect_intervals(result);
  EXPECT_GT(value_of(many, "throughput"), value_of(few, "throughput"));
  EXPECT_LT(value_of(many, "decode_rate_of_a_user"), value_of(few, "decode_rate_of_a_user"));
  EXPECT_LT(value_of(few, "time_to_first_token"), value_of(few, "generation_latency"));
  EXPECT_EQ(few.at("config").at("measured_machine"), true);
  EXPECT_EQ(few.at("config").at("tensor_parallel"), 1);
}

TEST(PredictByLaw, MachinesOfASheetAlone) {
  const nlohmann::json result =
      predicted("llm:llama-2-70b --on mi300x --tensor-parallel 2 --pipeline-parallel 2 --concurrency 16");
  expect_intervals(result);
  EXPECT_EQ(result.at("config").at("measured_machine"), false);
  expect_intervals(predicted("gemm_4096x4096x4096 --on rtx4090 --precision bf16"));
  expect_intervals(predicted("allgather-16777216 --on h200 --units 8"));
}

TEST(PredictByLaw, TrainingAndNetworks) {
  const std::string training = "llm:mpt-7b --on h100 --mode train --micro-batch 8 --tokens-in 2048 --units ";
  EXPECT_GT(value_of(predicted(training + "64"), "throughput"),
            value_of(predicted(training + "16"), "throughput"));
  const std::string network = "timm/resnet50d@224 --on b200 --stack pytorch --batch 128";
  const nlohmann::json answers = predicted(network), steps = predicted(network + " --mode train");
  expect_intervals(answers);
  EXPECT_GT(value_of(answers, "throughput"), value_of(steps, "throughput"));
}

// What no table has is not answered by what others do.
TEST(PredictByLaw, SoftwareThatNothingWasMeasuredByIsRefused) {
  const ScratchFolder folder;
  for (const auto& [call, there] : {std::pair{"llm:llama-2-7b --on h100 --stack vlm", "vllm"},
                                    {"llm:mpt-7b --on h100 --mode train --stack vllm", "pytorch-fsdp"},
                                    {"timm/resnet50d@224 --on b200 --stack pytroch", "pytorch"}}) {
    const Outcome outcome = run_program(folder / "", std::string("predict ") + call);
    EXPECT_EQ(outcome.code, 2) << call;
    EXPECT_TRUE(contains(outcome.errors, "--stack: nothing of")) << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, there)) << outcome.errors;
  }
}

TEST(PredictByLaw, APrimitiveThatMemoryDoesNotHoldIsRefused) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "predict gemm_131072x131072x131072 --on a100-40gb");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.errors, "does not fit NVIDIA A100 SXM4 40 GB: it needs 103 GB"))
      << outcome.errors;
}

// Workloads of the zoo on GPUs are timed by the law, on IPUs and with a stack by the model; which it was, and
// why, is said.
TEST(PredictByLaw, WorkloadsWhereItIsNearer) {
  const ScratchFolder folder;
  const auto asked = [&](const std::string& arguments) {
    const Outcome outcome = run_program(folder / "", "predict resnet50 " + arguments + " --json r.json");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return std::pair(outcome.output, nlohmann::json::parse(content_of(folder / "r.json")));
  };
  const auto [sheet, of_sheet] = asked("--on rtx4090 --micro-batch 16 --precision mixed");
  EXPECT_TRUE(contains(sheet, "by the law of networks: over")) << sheet;
  EXPECT_TRUE(contains(sheet, "its data sheet alone is known")) << sheet;
  EXPECT_EQ(of_sheet.at("config").at("law").at("measured_machine"), false);
  const auto [file, of_file] = asked("--on h100 --micro-batch 16 --precision mixed");
  EXPECT_EQ(of_file.at("config").at("law").at("measured_machine"), true);
  EXPECT_GT(value_of(of_file, "throughput"), value_of(of_sheet, "throughput"));
  const auto [ipu, of_ipu] = asked("--on gc200 --micro-batch 2 --precision 16.16");
  EXPECT_TRUE(contains(ipu, "by the model of such machines: over")) << ipu;
  EXPECT_TRUE(of_ipu.at("config").at("law").is_null());
  const auto [driven, of_stack] =
      asked("--on a100-40gb --stack pytorch-eager --micro-batch 16 --precision tf32");
  EXPECT_TRUE(of_stack.at("config").at("law").is_null());
  const Outcome refused = run_program(folder / "", "predict resnet50 --on speedai240");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.errors, "a data sheet alone is known")) << refused.errors;
}

TEST(PredictByLaw, RefusesWhatItCannotSay) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = run_program(folder / "", "predict " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, part)) << arguments << "\n" << outcome.errors;
  };
  refused("llm:llama-2-70b --on a100-40gb", 1, "--tensor-parallel 4");
  refused("llm:llama-2-70b --on h100 --mode train", 1, "--units");
  refused("llm:nothing --on h100", 2, "no shape is known");
  refused("llm:llama-3-8b --on h10", 2, "h100");
  refused("llm:llama-3-8b --on h100 --units 4", 2, "--units");
  refused("llm:llama-3-8b --on h100 --pipeline 1,2", 2, "--pipeline");
  refused("timm/resnet50d --on h100 --tokens-in 4", 2, "--tokens-in");
  refused("timm/resnet50dd@224 --on h100", 2, "did you mean 'timm/resnet50d'");
  refused("onnx:torchvision/nothing_like_it --on h100", 2, "no network of this name");
  for (const char* size : {"", "x", "224x", "-5", "0", "1e9"})
    refused(std::string("timm/resnet50d@") + size + " --on h100", 2, "is no size of pictures");
  refused("mlp --on a100-40gb --concurrency 4", 2, "--concurrency");
  refused("allreduce-1000000 --on h100", 2, "--units");
}

}  // namespace
}  // namespace superstep
