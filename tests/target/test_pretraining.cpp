// What the loss of pre-training is, where it is known: of answers that say nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/target/target.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr double vocabulary = 80;

// All weights zero: every word is as likely, and each of two answers. `words`: how many of the four places
// have one.
double loss_of_nothing(std::int64_t words) {
  const Workload& bert = find_workload("bert-large");
  const std::vector<std::string> options{"layers=1", "width=32", "heads=2", "length=25", "vocabulary=80"};
  const target::GraphAtBatch step = [&](std::int64_t batch) {
    return transform::make_training_step(build_model(bert, batch, options), bert.training.loss,
                                         {.kind = transform::OptimizerKind::sgd});
  };
  const auto executable = target::find_target("reference").compile(step, {.batch = 3});
  for (const std::string& name : executable->state_names()) {
    const Tensor state = executable->state(name);
    executable->set_state(name, Tensor(state.type(), state.shape()));
  }
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : executable->inputs()) {
    inputs.emplace_back(port.type.element, port.type.shape);
    if (port.name != "masked_labels") continue;
    EXPECT_EQ(port.type.shape, (Shape{3, 4}));
    for (std::int64_t i = 0; i < 12; ++i) inputs.back().set(i, i % 4 < words ? 7 : -1);
  }
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  executable->run(inputs, outputs);
  return outputs[0].at(0);
}

// A block that is full at random has a word at half of its places: then a word counts as much as a pair of
// sentences.
TEST(Pretraining, AWordCountsAsMuchAsAPairWhereHalfThePlacesHaveOne) {
  EXPECT_NEAR(loss_of_nothing(2), std::log(vocabulary) + std::log(2.0), 1e-5);
}

TEST(Pretraining, PlacesWithoutAWordCountNothing) {
  EXPECT_NEAR(loss_of_nothing(0), std::log(2.0), 1e-5);
  EXPECT_NEAR(loss_of_nothing(4), 2 * std::log(vocabulary) + std::log(2.0), 1e-5);
}

}  // namespace
}  // namespace superstep::workload
