// Primitives by their names: what is predicted of them, and which are refused.
#include <gtest/gtest.h>

#include "superstep/base/error.h"
#include "superstep/lab/primitive/prediction.h"
#include "superstep/lab/validate/application_rows.h"

namespace superstep::lab {
namespace {

machine::Machine on(const char* name) { return machine::find_machine(name); }

void expect_refused(const char* machine, const PrimitiveQuestion& question, const char* words) {
  try {
    if (names_collective(question.name))
      predict_collective(on(machine), question);
    else
      predict_primitive(on(machine), question);
    ADD_FAILURE() << question.name << " is predicted on " << machine;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(PrimitivePredictions, CountTheOperationsOfTheirShapes) {
  const auto flops = [](const char* name, Passes passes) {
    return predict_primitive(on("a100-40gb"), {.name = name, .passes = passes, .precision = "f16"})
        .prediction.flops;
  };
  constexpr double k4 = 2.0 * 2560 * 2560 * 2560;
  EXPECT_DOUBLE_EQ(flops("gemm_k4", Passes::forward), k4);
  EXPECT_DOUBLE_EQ(flops("gemm_2560", Passes::forward), k4);
  EXPECT_NEAR(flops("gemm_k4", Passes::both), 3 * k4, 0.01 * k4)
      << "two gradients, each as much as the product";
  for (const char* const name : {"gemm_k4", "gemm_1024", "conv_k2"})
    EXPECT_NEAR(flops(name, Passes::gradients), 2 * flops(name, Passes::forward),
                0.02 * flops(name, Passes::both))
        << name;
  // Gates of a cell: four, three, one.
  EXPECT_NEAR(flops("gru_k1", Passes::forward) / flops("rnn_k1", Passes::forward), 0.75, 0.02);
  EXPECT_NEAR(flops("rnn_tanh_k1", Passes::forward) / flops("rnn_k1", Passes::forward), 0.25, 0.02);
  // 3 x 3 filters over 7 x 7 pixels leave 5 x 5; half precision has twice the published batch.
  EXPECT_DOUBLE_EQ(flops("conv_k1", Passes::forward), 2.0 * 262144 * 25 * 32 * 32 * 9);
}

TEST(PrimitivePredictions, TakeLongerForMore) {
  const auto seconds = [](std::int64_t batch) {
    return predict_primitive(on("gc200"), {.name = "rnn_k1", .precision = "f16", .batch = batch})
        .prediction.step_seconds;
  };
  EXPECT_LT(seconds(8), seconds(64));
}

// Three matrices of 537 MB are more than 230 MB; of 40 GB they are a part.
TEST(PrimitivePredictions, AreHeldAgainstTheMemory) {
  const PrimitiveQuestion question{.name = "gemm_16384x16384x16384", .precision = "f16"};
  const machine::Prediction small = predict_primitive(on("groqchip"), question).prediction;
  EXPECT_FALSE(small.fits);
  EXPECT_DOUBLE_EQ(small.stages.front().memory.total(), 3.0 * 16384 * 16384 * 2);
  EXPECT_TRUE(predict_primitive(on("a100-40gb"), question).prediction.fits);
  EXPECT_TRUE(predict_primitive(on("groqchip"), {.name = "gemm_k4", .precision = "f16"}).prediction.fits);
  EXPECT_DOUBLE_EQ(operand_values("gemm_16384x16384x16384"), 3.0 * 16384 * 16384);
  EXPECT_EQ(operand_values("gemm_"), 0);
}

TEST(PrimitivePredictions, AreRefusedByName) {
  expect_refused("gc200", {.name = "gemm_k9"}, "gemm_k9");
  expect_refused("gc200", {.name = "gemm_0x1x1"}, "gemm_0x1x1");
  expect_refused("gc200", {.name = "conv_w7_h7_c3_n1_k4_fw3_fh3_p1x1_s1x1", .passes = Passes::both},
                 "only published shapes are trained");
  expect_refused("gc200", {.name = "relu_k1", .passes = Passes::gradients}, "forward pass");
  expect_refused("gc200", {.name = "gru_k1", .passes = Passes::gradients}, "forward pass");
  expect_refused("gc200", {.name = "gemm_k1", .batch = 4}, "no batch");
  expect_refused("gc200", {.name = "gemm_k1", .units = 2}, "one device");
  expect_refused("groqchip", {.name = "gemm_k1", .precision = "f32"}, "f32");
  expect_refused("groqchip", {.name = "gemm_k1", .precision = "bf16"}, "bf16");
  expect_refused("bow", {.name = "gemm_k1", .precision = "bf16"}, "does not compute in bf16");
  expect_refused("v100", {.name = "gemm_k1", .precision = "tf32"}, "does not compute in tf32");
  expect_refused("gc200", {.name = "allreduce-", .units = 2}, "no size");
  expect_refused("gc200", {.name = "allreduce-1T", .units = 2}, "no size");
  expect_refused("gc200", {.name = "allreduce-nan", .units = 2}, "no size");
  expect_refused("gc200", {.name = "allreduce-1M", .units = 1}, "two devices");
}

TEST(PrimitivePredictions, ExchangeNoFasterThanTheLinks) {
  const CollectivePrediction found =
      predict_collective(on("gc200"), {.name = "allreduce-64.5M", .units = 16});
  EXPECT_DOUBLE_EQ(found.bytes, 64.5e6 * 4);
  EXPECT_LT(found.bus_rate(), 320e9);
  EXPECT_LT(found.low, found.seconds);
  EXPECT_GT(found.high, found.seconds);
  const CollectivePrediction half =
      predict_collective(on("gc200"), {.name = "allreduce-64.5M", .precision = "f16", .units = 16});
  EXPECT_DOUBLE_EQ(half.bytes, found.bytes / 2);
  EXPECT_LT(half.seconds, found.seconds);
}

// A rate in samples needs samples, which a product has none of; its time does not wait for a host.
TEST(PrimitiveRows, AreOfTheMachineAlone) {
  const PublishedTable table(
      "id,source,place,workload,mode,machine,precision,metric,value,unit\n"
      "a,s,p,relu_k1,infer,a100-40gb,fp16,throughput,1,samples/s\n"
      "b,s,p,gemm_k4,infer,a100-40gb,fp16,step_time,1,ms\n"
      "c,s,p,gemm_k4,infer,a100-40gb,fp16,compute_rate,1,TFLOPS\n",
      "rows");
  ApplicationRows rows(table);
  EXPECT_FALSE(rows.predict(0).value);
  const double milliseconds = rows.predict(1).value.value(), rate = rows.predict(2).value.value();
  EXPECT_NEAR(milliseconds * rate, 2.0 * 2560 * 2560 * 2560 * 1e-9, 1e-6);
}

TEST(PrimitiveRows, AreOfThePassThatTheyName) {
  const PublishedTable table(
      "id,source,place,workload,mode,machine,precision,metric,value,unit\n"
      "a,s,p,conv_k2,infer,a100-40gb,fp16,step_time,1,ms\n"
      "b,s,p,conv_k2,backward,a100-40gb,fp16,step_time,1,ms\n"
      "c,s,p,conv_k2,train,a100-40gb,fp16,step_time,1,ms\n"
      "d,s,p,gemm_131072,infer,a100-40gb,fp16,step_time,1,ms\n",
      "rows");
  ApplicationRows rows(table);
  const double forward = rows.predict(0).value.value(), backward = rows.predict(1).value.value(),
               both = rows.predict(2).value.value();
  EXPECT_GT(backward, 1.5 * forward);
  EXPECT_NEAR(forward + backward, both, 0.1 * both);
  const RowPrediction large = rows.predict(3);
  EXPECT_FALSE(large.value);
  EXPECT_TRUE(large.memory_ends);
  EXPECT_NE(large.reason.find("it takes 103 GB, and there are 40 GB"), std::string::npos) << large.reason;
}

}  // namespace
}  // namespace superstep::lab
