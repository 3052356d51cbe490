// Models that drop out while they are served.
#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/transform/training/sampled_dropout.h"
#include "superstep/transform/training/training_form.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

// y = a x, of which a share is dropped, and a branch that is dropped in training alone.
Graph dropping_model(std::int64_t batch, double ratio) {
  Graph graph("dropping");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f64, {batch, 50});
  const Var scaled = op::stochastic_depth(x * b.state("a", Tensor::scalar<double>(3)), 0.5);
  b.output("y", b.node1("Dropout", {scaled, b.scalar(ElementType::f64, ratio)}));
  return graph;
}

std::vector<Tensor> ones(std::int64_t batch) {
  return {Tensor::from<double>({batch, 50}, std::vector<double>(static_cast<std::size_t>(batch) * 50, 1))};
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.at(i));
  return values;
}

TEST(SampledDropout, DropsAnewAtEveryRunAndScalesWhatIsKept) {
  const Graph model = verified(with_sampled_dropout(dropping_model(20, 0.2), 7));
  const op::Evaluation first = op::evaluate(model, ones(20));
  EXPECT_EQ(first.states.at(dropout_counter).at(0), 20);
  const op::Evaluation second = op::evaluate(model, ones(20), first.states);
  int dropped = 0, changed = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const double y = first.outputs[0].at(i);
    ASSERT_TRUE(y == 0 || std::abs(y - 3 / 0.8) < 1e-12) << y;
    dropped += y == 0;
    changed += y != second.outputs[0].at(i);
  }
  EXPECT_NEAR(dropped, 200, 60);  // binomial: +- 13
  EXPECT_NEAR(changed, 320, 75);  // 2 * 0.2 * 0.8
  // Another seed, other masks; the same, the same.
  EXPECT_NE(
      values_of(
          op::evaluate(verified(with_sampled_dropout(dropping_model(20, 0.2), 8)), ones(20)).outputs[0]),
      values_of(first.outputs[0]));
  EXPECT_EQ(
      values_of(
          op::evaluate(verified(with_sampled_dropout(dropping_model(20, 0.2), 7)), ones(20)).outputs[0]),
      values_of(first.outputs[0]));
}

// Rows drawn in two batches are those of one.
TEST(SampledDropout, MasksFollowFromThePlaceOfASample) {
  const Tensor whole =
      op::evaluate(verified(with_sampled_dropout(dropping_model(6, 0.5), 7)), ones(6)).outputs[0];
  const Graph half = verified(with_sampled_dropout(dropping_model(3, 0.5), 7));
  const op::Evaluation first = op::evaluate(half, ones(3)),
                       second = op::evaluate(half, ones(3), first.states);
  for (std::int64_t i = 0; i < 150; ++i) {
    ASSERT_EQ(whole.at(i), first.outputs[0].at(i));
    ASSERT_EQ(whole.at(150 + i), second.outputs[0].at(i));
  }
}

TEST(SampledDropout, AModelThatDropsNothingKeepsNoCounter) {
  const Graph model = verified(with_sampled_dropout(dropping_model(4, 0), 7));
  EXPECT_FALSE(model.find_value(dropout_counter).valid());
  EXPECT_EQ(op::evaluate(model, ones(4)).outputs[0].at(17), 3);
}

}  // namespace
}  // namespace superstep::transform
