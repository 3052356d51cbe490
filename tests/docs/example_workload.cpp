// The workload of docs/add-a-workload.md.
#include <gtest/gtest.h>

#include <map>

#include "superstep/base/random.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"

namespace superstep::workload {
namespace {

// [add-a-workload]
graph::Graph build_spectrum_autoencoder(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const std::int64_t hidden = options.integer("hidden", 1, 32);
  graph::Graph graph("spectrum-autoencoder");
  Builder b(graph);
  Layers layers(b, seed);
  const Var x = b.input("spectrum", ElementType::f32, {batch, 32});
  const Var code = layers.relu(layers.dense(x, "encoder", hidden));
  b.output("reconstruction", layers.dense(code, "decoder", 32));
  return graph;
}

Workload spectrum_autoencoder() {
  return {
      .name = "spectrum-autoencoder",
      .summary = "a spectrum of 32 channels squeezed through a few numbers",
      .options = {{"hidden", "8", "numbers that a spectrum is squeezed into, 1 to 32"}},
      .build = build_spectrum_autoencoder,
      .parameters = 552,  // 32 * 8 + 8 + 8 * 32 + 32
      .inputs = {{"spectrum", ElementType::f32, {32}, "", "counts divided by the largest"}},
      .outputs = {{"reconstruction", ElementType::f32, {32}, "", "the same spectrum, decoded"}},
      .targets = {{"target", ElementType::f32, {32}, "", "what the reconstruction is compared with"}},
      .training = {.batch = 64,
                   .epochs = 20,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3},
      .metrics = {{"rmse", ""}},
      .target = std::nullopt,
  };
}
// [end]

graph::Graph built(std::int64_t batch, const std::vector<std::string>& options = {}) {
  const Workload workload = spectrum_autoencoder();
  graph::Graph graph = build_model(workload, batch, options);
  value_or_throw(graph::verify(graph, op::infer_types));
  return graph;
}

TEST(AddAWorkload, IsWhatItSays) {
  const Workload workload = spectrum_autoencoder();
  const graph::Graph graph = built(3);
  EXPECT_EQ(graph.name(), workload.name);
  EXPECT_EQ(count_parameters(graph), workload.parameters);
  EXPECT_EQ(count_parameters(built(3, {"hidden=4"})), 32 * 4 + 4 + 4 * 32 + 32);
  EXPECT_EQ(graph.value(graph.inputs()[0]).name, workload.inputs[0].name);
  EXPECT_EQ(graph.outputs()[0].name, workload.outputs[0].name);
  EXPECT_EQ(graph.type(graph.inputs()[0]), (graph::ValueType{ElementType::f32, {3, 32}}));
}

TEST(AddAWorkload, RefusesOptionsItDoesNotHave) {
  try {
    built(1, {"hiden=4"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "did you mean 'hidden'?"));
  }
  EXPECT_THROW(built(1, {"hidden=33"}), Error);
}

// The loss falls on one batch, and does not when the learning rate is zero.
double loss_after(int steps, float learning_rate) {
  const Workload workload = spectrum_autoencoder();
  const graph::Graph step =
      transform::make_training_step(built(4), workload.training.loss, workload.training.optimizer);
  EXPECT_TRUE(transform::splittable(step).has_value());
  Tensor x(ElementType::f32, {4, 32});
  RandomStream random(1);
  for (float& value : x.as<float>()) value = static_cast<float>(random.uniform());
  const Tensor inputs[] = {x, x, Tensor::scalar(learning_rate)};
  std::map<std::string, Tensor> states;
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    op::Evaluation result = op::evaluate(step, inputs, states);
    loss = result.outputs[0].at(0);
    states = std::move(result.states);
  }
  return loss;
}

TEST(AddAWorkload, Learns) {
  EXPECT_LT(loss_after(20, 1e-2F), 0.5 * loss_after(1, 1e-2F));
  EXPECT_EQ(loss_after(20, 0), loss_after(1, 0));
}

}  // namespace
}  // namespace superstep::workload
