// A model applied to many samples: batches, the rest of them, parameters that fit and that do not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/evaluate.h"
#include "superstep/transform/training/training_form.h"
#include "tests/expect_error.h"
#include "tests/target/models.h"

namespace superstep::run {
namespace {

// 40 samples of the perceptron.
class Evaluating : public ::testing::Test {
 protected:
  Evaluating()
      : pool_(1),
        task_(model_.open_task({.data = {},
                                .samples = 40,
                                .seed = 1,
                                .model_options = {},
                                .labels_required = true,
                                .pool = &pool_})) {
    const graph::Graph graph = model_.inference()(1);
    std::uint64_t seed = 1;
    for (const graph::ValueId id : graph.states())
      states_[graph.value(id).name] =
          test::random_tensor(ElementType::f32, graph.type(id).shape, seed++, 0.3);
  }
  ~Evaluating() override { clear_interrupt(); }

  Tensor predicted(std::span<const std::int64_t> indices, std::int64_t batch, bool whole = false) {
    Evaluator evaluator(target::find_target("cpu"), model_.inference(), {.batch = batch}, whole);
    evaluator.set_parameters(states_, "here");
    return evaluator.predict(*task_, indices, pool_).at(0);
  }

  Model model_{{.workload = "mlp"}};
  ThreadPool pool_;
  std::unique_ptr<Task> task_;
  std::map<std::string, Tensor> states_;
};

// Every sample's row is its own, whatever stands beside it.
TEST_F(Evaluating, BatchesThatDoNotDivideTheSamples) {
  std::vector<std::int64_t> indices{3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8};
  const Tensor one = predicted(indices, 1);
  ASSERT_EQ(one.shape(), (Shape{11, 1}));
  EXPECT_EQ(one.at(1), one.at(3)) << "the same sample twice";
  EXPECT_NE(one.at(0), one.at(1));
  for (const bool whole : {false, true})
    for (const std::int64_t batch : {2, 4, 11, 32}) {
      const Tensor some = predicted(indices, batch, whole);
      ASSERT_EQ(some.shape(), one.shape());
      for (std::int64_t i = 0; i < 11; ++i) EXPECT_NEAR(some.at(i), one.at(i), 1e-5) << batch << ' ' << i;
    }
}

// Mean and spread of many masks of one layer's dropout against single runs; what a sample meets depends on
// its place and the pass, not on the batch.
TEST_F(Evaluating, PassesWithMasksHaveAMeanAndASpread) {
  const Model dropping({.workload = "mlp", .model_options = {"dropout=0.3"}});
  std::map<std::string, Tensor> states = states_;
  states[transform::dropout_counter] = Tensor::scalar<std::int64_t>(77);
  std::vector<std::int64_t> indices(11);
  std::iota(indices.begin(), indices.end(), 0);
  const auto sampled = [&](std::int64_t batch, std::int64_t micro_batch, int passes, bool whole) {
    Evaluator evaluator(target::find_target("cpu"), dropping.sampling(),
                        {.batch = batch, .micro_batch = micro_batch, .threads = 2}, whole);
    evaluator.set_parameters(states, "here");
    return evaluator.sample(*task_, indices, pool_, passes);
  };
  const auto many = sampled(11, 0, 5, false);
  for (const auto& [batch, micro_batch, whole] :
       {std::tuple(1, 0, false), {4, 0, false}, {4, 2, false}, {4, 0, true}, {11, 1, false}}) {
    const auto other = sampled(batch, micro_batch, 5, whole);
    for (std::int64_t i = 0; i < 11; ++i) {
      EXPECT_NEAR(other.mean[0].at(i), many.mean[0].at(i), 1e-5) << batch << ' ' << micro_batch;
      EXPECT_NEAR(other.spread[0].at(i), many.spread[0].at(i), 1e-5) << batch << ' ' << micro_batch;
      EXPECT_GT(many.spread[0].at(i), 0);
    }
  }
  // Two passes by hand: the mean, and half the distance times the root of two.
  Evaluator evaluator(target::find_target("cpu"), dropping.sampling(), {.batch = 11});
  states[transform::dropout_counter] = Tensor::scalar<std::int64_t>(0);
  evaluator.set_parameters(states, "here");
  const Tensor first = evaluator.predict(*task_, indices, pool_).at(0);
  const Tensor second = evaluator.predict(*task_, indices, pool_).at(0);
  const auto two = sampled(11, 0, 2, false);
  for (std::int64_t i = 0; i < 11; ++i) {
    EXPECT_NEAR(two.mean[0].at(i), (first.at(i) + second.at(i)) / 2, 1e-6);
    EXPECT_NEAR(two.spread[0].at(i), std::abs(first.at(i) - second.at(i)) / std::sqrt(2.0), 1e-6);
  }
  // Means over many passes converge: 250 lie within four standard errors of 1000 others' mean.
  const auto fewer = sampled(11, 0, 250, false), more = sampled(11, 0, 1000, false);
  EXPECT_NEAR(fewer.mean[0].at(0), more.mean[0].at(0), 4 * more.spread[0].at(0) / std::sqrt(250.0));
}

// Large models are not built twice to be looked at and compiled.
TEST_F(Evaluating, BuildsAModelOnceForItsBatch) {
  std::map<std::int64_t, int> built;
  const target::GraphAtBatch counted = [&, model = model_.inference()](std::int64_t batch) {
    ++built[batch];
    return model(batch);
  };
  Evaluator evaluator(target::find_target("cpu"), counted, {.batch = 8});
  EXPECT_EQ(built.at(8), 1) << "what cannot be evaluated is refused at once";
  evaluator.set_parameters(states_, "here");
  evaluator.executable();
  EXPECT_EQ(built.at(8), 1);
  evaluator.release();
  evaluator.executable();
  EXPECT_EQ(built.at(8), 2);
}

TEST_F(Evaluating, OfNothing) { EXPECT_EQ(predicted({}, 4).shape(), (Shape{0, 1})); }

TEST_F(Evaluating, StatesThatTheModelDoesNotHaveAreLeftAside) {
  const std::vector<std::int64_t> indices{0, 1};
  const Tensor before = predicted(indices, 2);
  states_["adam.m.flat"] = Tensor(ElementType::f32, {3});
  EXPECT_EQ(predicted(indices, 2).at(0), before.at(0));
}

TEST_F(Evaluating, ParametersOfAnotherModelAreRefused) {
  Evaluator evaluator(target::find_target("cpu"), model_.inference(), {.batch = 2});
  const std::string name = states_.begin()->first;
  auto others = states_;
  others.erase(name);
  expect_error(ErrorCode::bad_file, {"has no parameter " + name, "w.safetensors"},
               [&] { evaluator.set_parameters(others, "w.safetensors"); });
  others[name] = Tensor(ElementType::f32, {1, 2, 3});
  expect_error(ErrorCode::bad_file, {"belongs to another model", name},
               [&] { evaluator.set_parameters(others, "w.safetensors"); });
}

// New parameters reach plans that are there, and let go of, it is compiled anew with them.
TEST_F(Evaluating, ParametersReachEveryPlan) {
  const std::vector<std::int64_t> indices{0, 1, 2};
  Evaluator evaluator(target::find_target("cpu"), model_.inference(), {.batch = 2});
  evaluator.set_parameters(states_, "here");
  const Tensor before = evaluator.predict(*task_, indices, pool_).at(0);
  for (auto& [name, tensor] : states_) tensor = Tensor(tensor.type(), tensor.shape());
  evaluator.set_parameters(states_, "here");
  const Tensor zero = evaluator.predict(*task_, indices, pool_).at(0);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_NE(before.at(i), 0);
    EXPECT_EQ(zero.at(i), 0) << "of zeros alone";
  }
  evaluator.release();
  const Tensor again = evaluator.predict(*task_, indices, pool_).at(0);
  EXPECT_EQ(std::memcmp(again.bytes(), zero.bytes(), zero.byte_count()), 0);
}

TEST_F(Evaluating, HearsAStop) {
  const std::vector<std::int64_t> indices{0, 1};
  request_interrupt();
  expect_error(ErrorCode::interrupted, {"stopped while predicting"}, [&] { predicted(indices, 1); });
}

TEST_F(Evaluating, RefusesAnOutputWithoutARowASample) {
  const auto sum = [](std::int64_t batch) {
    graph::Graph graph("sum");
    op::Builder b(graph);
    b.output("all", op::reshape(b.input("x", ElementType::f32, {batch, 2}), {2 * batch}));
    return graph;
  };
  expect_error(ErrorCode::unsupported, {"not a row for each of the 4 samples", "output 'all'"},
               [&] { const Evaluator evaluator(target::find_target("cpu"), sum, {.batch = 4}); });
}

}  // namespace
}  // namespace superstep::run
