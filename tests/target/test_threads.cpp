// Every number of threads does what one thread does: the zoo, built small, trained and served in each
// precision, over batches and micro-batches, most of them with more threads than this machine has processors
// and with more than there are groups of micro-batches.
//
// SUPERSTEP_CASES=1 runs every combination instead of some.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "superstep/base/thread_pool.h"
#include "superstep/target/cpu/plan/division.h"
#include "superstep/target/target.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/precision/quantize.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/target/zoo_input.h"

namespace superstep {
namespace {

using target::CompileOptions;
using target::GraphAtBatch;

constexpr int thread_counts[] = {2, 3, 5, 8, 9, 12, 16, 24, 33, 64};

struct Samples {
  std::int64_t batch, micro_batch;  // 0: as the target chooses
};
constexpr Samples splits[] = {{3, 1}, {10, 1}, {12, 2}, {16, 8}, {9, 0}, {24, 0}};

struct Model {
  const char* workload;
  std::vector<std::string> options;
  bool large = false;  // in the long form only
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.workload; }

std::vector<Model> models() {
  const std::vector<std::string> bert{"layers=2", "width=32", "heads=2", "length=12", "vocabulary=80"};
  const std::vector<std::string> images{"size=32", "classes=10"};
  return {{"braggnn", {}},
          {"ptychonn-64", {"window=16"}},
          {"ptychonn-128", {"window=16"}},
          {"uno", {"width=24"}},
          {"polymer-gcn", {"atoms=16", "edges=24", "polymers=12", "width=8"}},
          {"polymer-mpnn", {"atoms=16", "edges=24", "polymers=12", "width=8"}},
          {"gin", {"atoms=16", "edges=24", "molecules=12", "width=8", "dropout=0"}},
          {"schnet", {"atoms=16", "edges=24", "clusters=10", "width=8", "blocks=2"}},
          {"deepmd", {"atoms=10", "sel=7", "embedding=4,8", "axis=3", "fitting=8,8", "cutoff=2"}},
          {"yieldgnn", {"atoms=16", "edges=24", "reactions=10", "largest=16", "width=8", "dropout=0"}},
          {"unet-64", {"size=16", "width=4"}},
          {"unet-256", {"size=16", "width=4"}},
          {"cifar10-cnn", {}},
          {"resnet50", {"size=32", "classes=10", "width=8"}},
          {"bert-small", bert},
          {"lstm", {"steps=7", "inputs=5", "units=32"}},
          {"wallmodel", {"dropout=0.1"}},
          {"gravity-wave-drag", {"levels=21", "width=32", "layers=2"}},
          {"mlp", {}},
          {"mobilenet-v3-small", images, true},
          {"mobilenet-v3-large", images, true},
          {"efficientnet-b0", images, true},
          {"efficientnet-b4", images, true},
          {"distilbert", bert, true},
          {"rnn-k1", {}, true},
          {"rnn-k2", {}, true},
          {"rnn-k3", {}, true},
          {"rnn-k4", {}, true}};
}

bool runs_everything() { return std::getenv("SUPERSTEP_CASES") != nullptr; }

enum class Kind { f32, bf16, i8 };

GraphAtBatch serving(const Model& model, Kind kind) {
  return [=](std::int64_t batch) {
    graph::Graph graph = target::find_target("cpu").suited(
        workload::build_model(workload::find_workload(model.workload), batch, model.options));
    if (kind == Kind::bf16) return transform::autocast(graph, ElementType::bf16);
    if (kind == Kind::f32) return graph;
    transform::RangeTable ranges;
    for (graph::ValueId id : transform::values_to_calibrate(graph)) ranges[graph.value(id).name] = {-4, 4};
    return transform::quantize(graph, ranges);
  };
}

GraphAtBatch training(const Model& model, Kind kind) {
  return [=, serve = serving(model, kind)](std::int64_t batch) {
    return transform::make_training_step(serve(batch), workload::find_workload(model.workload).training.loss,
                                         {.kind = transform::OptimizerKind::sgd, .momentum = 0.9});
  };
}

// What two runs leave: outputs and states.
struct Results {
  std::int64_t micro_batch = 0;  // that was chosen where none was asked for
  std::vector<Tensor> values;
  std::vector<std::string> names;
};

Results run(const GraphAtBatch& model, const CompileOptions& options) {
  const auto executable = target::find_target("cpu").compile(model, options);
  std::vector<Tensor> inputs;
  Results results{.micro_batch = executable->summary().micro_batch, .values = {}, .names = {}};
  for (const auto& port : executable->inputs()) inputs.push_back(test::random_input(port, inputs.size() + 1));
  for (const auto& port : executable->outputs()) {
    results.values.emplace_back(port.type.element, port.type.shape);
    results.names.push_back(port.name);
  }
  for (int step = 0; step < 2; ++step) executable->run(inputs, results.values);
  for (const std::string& name : executable->state_names()) {
    results.values.push_back(executable->state(name));
    results.names.push_back(name);
  }
  return results;
}

void expect_same_bits(const Results& actual, const Results& expected) {
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    ASSERT_EQ(
        std::memcmp(actual.values[i].bytes(), expected.values[i].bytes(), expected.values[i].byte_count()), 0)
        << expected.names[i];
}

double squares(const Tensor& tensor) {
  double sum = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) sum += tensor.at(i) * tensor.at(i);
  return sum;
}

// Sums in another order: by the root mean square of each tensor, with some room for those whose gradient is
// zero but for rounding (a bias in front of a normalisation).
void expect_close(const Results& actual, const Results& expected, double tolerance) {
  double largest = 0;
  for (const Tensor& value : expected.values) largest = std::max(largest, squares(value));
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    double error = 0;
    for (std::int64_t k = 0; k < expected.values[i].element_count(); ++k)
      error += std::pow(actual.values[i].at(k) - expected.values[i].at(k), 2);
    ASSERT_LE(std::sqrt(error),
              tolerance * std::sqrt(squares(expected.values[i])) + 1e-4 * std::sqrt(largest))
        << expected.names[i];
  }
}

// Small sums of gradients (4 MB) are made in groups that do not depend on the threads, and the bits do not
// either where the micro-batch is the same. Of large ones there is a group a thread.
bool sums_in_groups(const GraphAtBatch& step) {
  const auto gradient_bytes = [&](int threads) {
    const CompileOptions options{.batch = 8, .micro_batch = 1, .threads = threads};
    return target::find_target("cpu").compile(step, options)->summary().gradient_bytes;
  };
  return gradient_bytes(2) == gradient_bytes(8);
}

class Threads : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    if (GetParam().large && !runs_everything()) GTEST_SKIP() << "SUPERSTEP_CASES runs it";
  }

  // Some numbers of threads for each split, others for the next; all of them in the long form.
  void expect_what_one_thread_does(const GraphAtBatch& model, bool same_bits, double tolerance) {
    constexpr std::size_t counts = std::size(thread_counts), some = 2;
    for (const Samples& split : splits) {
      std::map<std::int64_t, Results> alone;  // by micro-batch
      for (std::size_t i = 0; i < (runs_everything() ? counts : some); ++i) {
        CompileOptions options{.batch = split.batch, .micro_batch = split.micro_batch};
        options.threads = thread_counts[next_++ % counts];
        SCOPED_TRACE("batch " + std::to_string(split.batch) + ", micro-batch " +
                     std::to_string(split.micro_batch) + ", threads " + std::to_string(options.threads));
        const Results actual = run(model, options);
        options.threads = 1;
        options.micro_batch = actual.micro_batch;
        if (!alone.contains(options.micro_batch)) alone[options.micro_batch] = run(model, options);
        if (same_bits)
          expect_same_bits(actual, alone[options.micro_batch]);
        else
          expect_close(actual, alone[options.micro_batch], tolerance);
        if (HasFatalFailure()) return;
      }
    }
  }

 private:
  std::size_t next_ = 0;
};

TEST_P(Threads, TrainInF32) {
  const GraphAtBatch step = training(GetParam(), Kind::f32);
  expect_what_one_thread_does(step, sums_in_groups(step), 2e-2);
}
TEST_P(Threads, TrainInBf16) {
  const GraphAtBatch step = training(GetParam(), Kind::bf16);
  expect_what_one_thread_does(step, sums_in_groups(step), 0.2);
}
TEST_P(Threads, ServeInF32) { expect_what_one_thread_does(serving(GetParam(), Kind::f32), true, 0); }
TEST_P(Threads, ServeInBf16) { expect_what_one_thread_does(serving(GetParam(), Kind::bf16), true, 0); }
TEST_P(Threads, ServeInBytes) { expect_what_one_thread_does(serving(GetParam(), Kind::i8), true, 0); }

INSTANTIATE_TEST_SUITE_P(Zoo, Threads, ::testing::ValuesIn(models()));

// As users run them.
struct Job {
  Model model;
  bool trains;
  CompileOptions options;
};

TEST(ThreadsAtFullSize, DoWhatOneThreadDoes) {
  const Job jobs[] = {{{"braggnn", {}}, true, {.batch = 256, .threads = 9}},
                      {{"braggnn", {}}, true, {.batch = 256, .threads = 24}},
                      {{"braggnn", {}}, true, {.batch = 128, .threads = 64}},
                      {{"braggnn", {}}, true, {.batch = 48, .micro_batch = 16, .threads = 4}},
                      {{"unet-64", {}}, false, {.batch = 3, .threads = 8}},
                      {{"unet-64", {}}, true, {.batch = 8, .threads = 16}},
                      {{"lstm", {}}, true, {.batch = 64, .threads = 16}},
                      {{"mlp", {}}, true, {.batch = 64, .micro_batch = 4, .threads = 16}}};
  for (const Job& job : jobs) {
    SCOPED_TRACE(std::string(job.model.workload) + ", threads " + std::to_string(job.options.threads));
    const GraphAtBatch model = (job.trains ? training : serving)(job.model, Kind::f32);
    const Results actual = run(model, job.options);
    expect_same_bits(actual, run(model, {.batch = job.options.batch, .micro_batch = actual.micro_batch}));
  }
}

// More threads than groups: long steps are divided over them, and say so.
TEST(ThreadsAtFullSize, DivideTheStepsOfAllGroups) {
  const auto executable = target::find_target("cpu").compile(
      training({"braggnn", {}}, Kind::f32), {.batch = 128, .threads = 64, .measure_steps = true});
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : executable->inputs()) inputs.push_back(test::random_input(port, inputs.size() + 1));
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  executable->run(inputs, outputs);
  const target::PlanSummary plan = executable->summary();
  double divided = 0, all = 0;
  for (const target::PlanStep& step : plan.steps) {
    EXPECT_EQ(step.executions, plan.batch / plan.micro_batch) << step.node;
    all += step.flops;
    if (step.threads > 8) divided += step.flops;
  }
  EXPECT_GT(divided, 0.5 * all);
}

kernels::KernelInfo step_of(double microseconds, std::int64_t parts = 32) {
  return {.flops = microseconds * 1e5, .parts = parts};
}

TEST(Division, CallsNobodyForLessThanACallCosts) {
  using target::cpu::threads_that_pay;
  EXPECT_EQ(threads_that_pay(step_of(1), 64), 1);
  EXPECT_EQ(threads_that_pay(step_of(1000, 1), 64), 1);
  EXPECT_EQ(threads_that_pay(step_of(10), 2), 2);
  EXPECT_EQ(threads_that_pay(step_of(1e5), 64), 32);
  EXPECT_LT(threads_that_pay(step_of(10), 64), 16);
  for (double length = 6; length < 1e4; length *= 1.3)
    EXPECT_LE(threads_that_pay(step_of(length), 64), threads_that_pay(step_of(1.3 * length), 64));
}

TEST(Division, OfGroupsTogetherTakesMoreThreadsThanGroups) {
  using target::cpu::threads_that_pay_together;
  EXPECT_EQ(threads_that_pay_together(step_of(2), {8, 1}, 64), 1);
  EXPECT_EQ(threads_that_pay_together(step_of(200, 1), {8, 1}, 64), 1);  // a group a thread already
  EXPECT_EQ(threads_that_pay_together(step_of(200), {8, 1}, 64), 64);
  EXPECT_EQ(threads_that_pay_together(step_of(200), {8, 1}, 8), 1);
}

}  // namespace
}  // namespace superstep
