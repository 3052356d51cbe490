// The published configurations, their counts of operations, and the check of what is timed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/lab/bench/baseline.h"
#include "superstep/lab/bench/primitive_bench.h"
#include "superstep/lab/bench/primitive_check.h"
#include "superstep/lab/bench/processes.h"
#include "superstep/lab/bench/recurrent_reference.h"
#include "superstep/lab/bench/self_check.h"
#include "superstep/lab/bench/workload_bench.h"
#include "tests/contains.h"
#include "tests/expect_error.h"

namespace superstep::lab {
namespace {

using enum PrimitiveKind;

struct Count {
  PrimitiveKind kind;
  const char* name;
  double printed, corrected;
};

// Tables VI to IX of Emani 2022, and the counts that are right.
const std::vector<Count> counts = {
    {gemm, "gemm_k1", 396492800, 396492800},       {gemm, "gemm_k2", 838860800, 838860800},
    {gemm, "gemm_k3", 792985600, 792985600},       {gemm, "gemm_k4", 33554432000, 33554432000},
    {conv, "conv_k1", 38654705664, 60397977600},   {conv, "conv_k2", 408290328576, 473520144384},
    {conv, "conv_k3", 212072398848, 220150628352}, {conv, "conv_k4", 3172781260800, 3224580915200},
    {relu, "relu_k1", 411041792, 411041792},       {relu, "relu_k2", 411041792, 411041792},
    {relu, "relu_k3", 382205952, 382205952},       {relu, "relu_k4", 268435456, 268435456},
    {lstm, "rnn_k1", 1684275200, 3355443200},      {lstm, "rnn_k2", 1680998400, 3355443200},
    {lstm, "rnn_k3", 840499200, 1677721600},       {lstm, "rnn_k4", 3361996800, 6710886400}};

TEST(Configurations, CountAsPublishedAndAsTheyAre) {
  for (const Count& count : counts) {
    const Primitive& p = find_primitive(count.kind, count.name);
    EXPECT_EQ(printed_flops(p), count.printed) << count.name;
    EXPECT_EQ(corrected_flops(p), count.corrected) << count.name;
  }
}

TEST(Configurations, HalfPrecisionRunsTwiceTheBatch) {
  EXPECT_EQ(batch_at(find_primitive(conv, "conv_k2"), 4), 4096);
  EXPECT_EQ(batch_at(find_primitive(conv, "conv_k2"), 2), 8192);
  EXPECT_EQ(batch_at(find_primitive(gemm, "gemm_k4"), 2), 2560);
}

TEST(Configurations, SweepsEndWhereMemoryDoes) {
  for (const PrimitiveKind kind : primitive_kinds()) {
    const auto all = sweep(kind, 1e8, 4, Passes::both);
    ASSERT_GE(all.size(), 3U) << name_of(kind);
    EXPECT_LE(tensor_bytes(all[all.size() - 2], 4, Passes::both), 1e8);
    EXPECT_GT(tensor_bytes(all.back(), 4, Passes::both), 1e8);
    EXPECT_EQ(sweep(kind, 1, 4, Passes::both).size(), 1U);
  }
  EXPECT_EQ(sweep(gemm, 1e8, 4, Passes::both)[2].name, "gemm_256");
}

TEST(Configurations, UnknownNamesAreRefusedWithTheNearest) {
  try {
    find_primitive(gemm, "gemm_k5");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "did you mean 'gemm_k")) << error.what();
  }
}

Primitive small(PrimitiveKind kind) {
  switch (kind) {
    case gemm: return {.kind = gemm, .name = "g", .m = 24, .n = 40, .k = 56};
    case conv:
      return {.kind = conv,
              .name = "c",
              .width = 9,
              .height = 7,
              .channels = 5,
              .batch = 6,
              .filters = 12,
              .filter_width = 3,
              .filter_height = 3,
              .pad_width = 1,
              .pad_height = 0};
    case relu: return {.kind = relu, .name = "r", .width = 5, .height = 6, .channels = 3, .batch = 8};
    case lstm:
    case gru:
    case rnn: return {.kind = kind, .name = "l", .batch = 4, .steps = 5, .inputs = 6, .hidden = 7};
  }
  return {};
}

class PrimitivesOn : public ::testing::TestWithParam<std::tuple<PrimitiveKind, const char*, Passes>> {};

TEST_P(PrimitivesOn, TheProcessorAreRight) {
  const auto [kind, precision, passes] = GetParam();
  PrimitiveRun run(small(kind), {.precision = precision, .passes = passes}, "cpu", 2);
  const CheckReport report = check_primitive(run);
  EXPECT_LE(report.worst, 1);
  EXPECT_GE(report.checked, 24);
}

INSTANTIATE_TEST_SUITE_P(All, PrimitivesOn,
                         ::testing::Combine(::testing::Values(gemm, conv, relu, lstm, gru, rnn),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::Values(Passes::forward, Passes::both)));
INSTANTIATE_TEST_SUITE_P(Backward, PrimitivesOn,
                         ::testing::Combine(::testing::Values(gemm, conv), ::testing::Values("f32", "bf16"),
                                            ::testing::Values(Passes::gradients)));

// What both passes take without the forward one.
TEST(Primitives, HaveTheirGradientsAlone) {
  for (const PrimitiveKind kind : {gemm, conv}) {
    const PrimitiveRun both(small(kind), {.passes = Passes::both}, "cpu", 1),
        forward(small(kind), {.passes = Passes::forward}, "cpu", 1),
        gradients(small(kind), {.passes = Passes::gradients}, "cpu", 1);
    EXPECT_THROW(gradients.output("y"), Error);
    EXPECT_NEAR(gradients.summary().flops, both.summary().flops - forward.summary().flops,
                0.01 * both.summary().flops)
        << name_of(kind);
    EXPECT_EQ(operations_factor(kind, Passes::gradients) + 1, operations_factor(kind, Passes::both));
  }
  for (const PrimitiveKind kind : {relu, lstm, gru, rnn})
    expect_error(ErrorCode::unsupported, {"forward pass"},
                 [&] { PrimitiveRun(small(kind), {.passes = Passes::gradients}, "cpu", 1); });
}

TEST(Primitives, HaveProductsOfAnyShape) {
  const Primitive square = find_primitive(gemm, "gemm_1024"), any = find_primitive(gemm, "gemm_64x1760x2560");
  EXPECT_EQ(std::tuple(square.m, square.n, square.k), std::tuple(1024, 1024, 1024));
  EXPECT_EQ(std::tuple(any.m, any.n, any.k), std::tuple(64, 1760, 2560));
  for (const char* const name : {"gemm_0", "gemm_", "gemm_1x2", "gemm_1x2x3x4", "gemm_99999999", "gemm_12a"})
    EXPECT_THROW(find_primitive(gemm, name), Error) << name;
}

// The null target computes nothing: the check must see that.
TEST(PrimitiveCheck, SeesWrongResults) {
  for (const PrimitiveKind kind : primitive_kinds())
    for (const Passes passes : {Passes::forward, Passes::both, Passes::gradients}) {
      if (passes == Passes::gradients && !has_gradients_alone(kind)) continue;
      PrimitiveRun run(small(kind), {.passes = passes}, "null", 1);
      try {
        check_primitive(run);
        ADD_FAILURE() << name_of(kind);
      } catch (const Error& error) {
        EXPECT_TRUE(contains(error.what(), "should be")) << error.what();
      }
    }
}

TEST(PrimitiveCheck, TheLayersByDefinitionHaveTheDerivativesOfTheirForwardPass) {
  for (const PrimitiveKind kind : {lstm, gru, rnn})
    for (const char* precision : {"f32", "bf16"}) {
      PrimitiveRun run(small(kind), {.precision = precision, .passes = Passes::both}, "reference", 1);
      EXPECT_LE(check_primitive(run).worst, 1) << precision;
    }
}

TEST(PrimitiveBench, RefusesWhatHasNoKernelAndSaysSo) {
  PrimitiveBenchSettings settings{
      .primitives = {small(gemm)}, .precisions = {"int8"}, .modes = {"infer", "train"}};
  settings.protocol = {.warm_up_seconds = 0, .warm_up_limit = 0.01, .budget_seconds = 0.01};
  const auto results = bench_primitives(settings, {});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(contains(results[1].config.value("not_run", ""), "training in int8"));
  EXPECT_TRUE(results[1].quantities.empty());
  EXPECT_TRUE(results[0].find("throughput")) << results[0].config.dump();
}

TEST(PrimitiveBench, GivesRatesByBothFormulas) {
  PrimitiveBenchSettings settings{
      .primitives = {small(conv)}, .modes = {"train"}, .threads = 2, .timeline = true};
  settings.protocol = {.warm_up_seconds = 0, .warm_up_limit = 0.05, .budget_seconds = 0.02};
  const auto results = bench_primitives(settings, {.flops = {{"f32", 1e12}}, .threads = 2});
  ASSERT_EQ(results.size(), 1U);
  ASSERT_GE(results[0].timeline.size(), 3U);  // forward and two gradients
  for (const record::TimelineEvent& event : results[0].timeline) EXPECT_GT(event.duration, 0) << event.name;
  ASSERT_TRUE(results[0].find("flops_rate")) << results[0].config.dump();
  const Primitive p = small(conv);
  const double ratio = results[0].find("flops_rate")->value / results[0].find("flops_emani2022")->value;
  EXPECT_NEAR(ratio, corrected_flops(p) / printed_flops(p), 1e-6);
  EXPECT_NEAR(results[0].find("compute_utilization")->value, results[0].find("flops_rate")->value / 1e12,
              1e-9);
  EXPECT_EQ(results[0].find("step_time")->samples.size(), results[0].find("throughput")->samples.size());
}

TEST(WorkloadBench, MeasuresWithAndWithoutTheDataPipeline) {
  WorkloadBenchSettings settings{.workload = "mlp", .batches = {64}, .threads = 2};
  settings.protocol = {.warm_up_seconds = 0, .warm_up_limit = 0.05, .budget_seconds = 0.05};
  settings.loads = {{.requests = 120}, {.pattern = LoadPattern::poisson, .requests = 120}};
  settings.load_factor = 0.5;
  settings.timeline = true;
  const auto results = bench_workload(settings, {.flops = {{"f32", 1e12}}});
  ASSERT_EQ(results.size(), 2U);
  for (const record::Result& result : results) {
    EXPECT_TRUE(result.find("throughput") && result.find("throughput_with_data") &&
                result.find("compute_utilization"));
    EXPECT_FALSE(result.timeline.empty());
  }
  EXPECT_EQ(results[0].id, "mlp-train-f32-b64");
  EXPECT_TRUE(contains(results[1].config.value("checked", ""), "of the reference evaluation"));
  EXPECT_TRUE(results[1].find("poisson_latency_p90"));
  EXPECT_GT(results[1].find("poisson_rate_offered")->value, 0);
}

TEST(WorkloadBench, RefusesWrongNames) {
  EXPECT_THROW(bench_workload({.workload = "mlpp"}, {}), Error);
  EXPECT_THROW(bench_workload({.workload = "mlp", .modes = {"finetune"}}, {}), Error);
}

TEST(WorkloadBench, ResultsThatDifferFromTheReferenceAreNotTimed) {
  WorkloadBenchSettings settings{.workload = "mlp", .modes = {"infer"}, .batches = {4}, .target = "null"};
  try {
    bench_workload(settings, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "differ by")) << error.what();
  }
}

record::Result timed(const std::string& id, double value, double low, double high) {
  record::Result result{.id = id};
  result.quantities.push_back({.name = "step_time", .unit = "s", .value = value, .low = low, .high = high});
  return result;
}

TEST(SelfCheck, CountsRowsWhoseIntervalsMeet) {
  const SelfCheck check =
      compare_runs({timed("a", 1, 0.9, 1.1), timed("b", 1, 0.99, 1.01)},
                   {timed("a", 1.15, 1.05, 1.2), timed("b", 1.1, 1.05, 1.2), timed("c", 1, 1, 1)});
  EXPECT_EQ(check.rows, 2);
  EXPECT_EQ(check.agree, 1);
  EXPECT_TRUE(contains(check.text, "1 of 2 rows agree"));
}

TEST(Baseline, SaysWhetherTheMachineStayedTheSame) {
  const record::Result first = timed("a", 1, 0.99, 1.01);
  for (const auto& [value, low, high, drifted] :
       {std::tuple{1.015, 1.012, 1.02, false}, {1.1, 1.005, 1.2, false}, {1.1, 1.05, 1.2, true}}) {
    record::Result again = timed("a", value, low, high);
    again.quantities.insert(again.quantities.begin(), {.name = "bandwidth"});  // as files have them: by name
    mark_as_baseline(again, first);
    EXPECT_EQ(again.id, "a-again");
    EXPECT_TRUE(is_baseline(again) && !is_baseline(first));
    EXPECT_EQ(contains(again.quantities[1].flags[0], "drifted"), drifted) << again.quantities[1].flags[0];
    EXPECT_EQ(baseline_text({first, again}).empty(), !drifted);
  }
}

TEST(PrimitiveBench, ARowSaysWhereMemoryEnded) {
  PrimitiveBenchSettings settings{.primitives = sweep(gemm, 1e6, 4, Passes::forward),
                                  .modes = {"infer"},
                                  .memory_share = 1e-9,
                                  .whole_batches = true};
  const auto results = bench_primitives(settings, {});
  ASSERT_EQ(results.size(), settings.primitives.size());
  EXPECT_TRUE(contains(results.back().config.value("not_run", ""), "memory ends: its tensors take"));
  EXPECT_EQ(results.back().workload, settings.primitives.back().name);
}

// --- fresh processes

TEST(Processes, AreJoinedWithTheSpreadBetweenThem) {
  std::vector<std::vector<record::Result>> runs{
      {timed("a", 1, 0.9, 1.1)}, {timed("a", 2, 1.9, 2.1)}, {timed("a", 4, 3, 5)}};
  for (auto& run : runs) {
    run[0].quantities[0].samples = {run[0].quantities[0].value};
    run[0].quantities[0].flags = {"of all"};
    run[0].add("memory_peak", 7, "B");
  }
  runs[1][0].quantities[0].flags.push_back("of one");
  runs[2].push_back(timed("b", 1, 1, 1));  // that one process alone has
  const auto joined = join_processes(runs);
  ASSERT_EQ(joined.size(), 2U);
  const record::Quantity& time = *joined[0].find("step_time");
  EXPECT_EQ(time.value, 2);
  EXPECT_EQ(*time.low, 0.9);
  EXPECT_EQ(*time.high, 5);
  EXPECT_EQ(time.samples, (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(time.flags, (std::vector<std::string>{"3 processes, 300.0 % apart", "of all"}));
  EXPECT_EQ(time.details["process_values"], nlohmann::json({1.0, 2.0, 4.0}));
  EXPECT_EQ(joined[0].find("memory_peak")->value, 7);
  EXPECT_FALSE(joined[0].find("memory_peak")->low);
  EXPECT_EQ(joined[0].config["processes"], 3);
}

TEST(Processes, JudgeTheRepeatOfTheFirstByWhatTheySayTogether) {
  record::Result again = timed("a", 1.5, 1.4, 1.6), first = timed("a", 1, 0.9, 1.1);
  mark_as_baseline(again, first);
  const auto joined = join_processes(
      {{first, again}, {timed("a", 1.5, 1.4, 1.6), again}, {timed("a", 1.5, 1.4, 1.6), again}});
  EXPECT_TRUE(contains(joined[1].quantities[0].flags.back(), "the first again: +0.0 %"));
}

}  // namespace
}  // namespace superstep::lab
