// Connectionist temporal classification: against all alignments written out, its gradient, what has none, and
// what is refused.
#include <cmath>
#include <functional>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/op/core/gradient_check.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/training/ctc.h"
#include "superstep/transform/training/differentiate.h"
#include "superstep/transform/training/loss_text.h"
#include "superstep/transform/training/training_step.h"
#include "tests/expect_error.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using op::Builder;
using op::Var;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Case {
  std::string text;
  Tensor scores, labels;
  Tensor frames = {}, counts = {};  // lengths, where they are given
};

Tensor whole(const Shape& shape, const std::vector<std::int64_t>& values) {
  return Tensor::from<std::int64_t>(shape, values);
}

op::Function function_of(const Case& each) {
  return [each](Builder& b, std::span<const Var> in) {
    LossExtras extras;
    if (each.frames.element_count() > 0) extras.input_lengths = b.constant(each.frames);
    if (each.counts.element_count() > 0) extras.target_lengths = b.constant(each.counts);
    LossTerm term = loss_from_text(each.text).at(0);
    term.longest = each.labels.shape()[1];
    return std::vector{build_loss(term, in[0], b.constant(each.labels), extras)};
  };
}

double value_of(const Case& each) {
  Graph graph;
  Builder b(graph);
  const Var in[] = {b.constant(each.scores)};
  b.output("loss", function_of(each)(b, in)[0]);
  return op::evaluate(verified(graph), {}).outputs[0].at(0);
}

using Labels = std::vector<std::int64_t>;

// What a class a frame says: repetitions once, blanks left out.
Labels collapsed(const Labels& path, std::int64_t blank) {
  Labels labels;
  for (std::size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  return labels;
}

// Minus the logarithm of the sum over all paths of `frames` classes that say `labels`.
double by_enumeration(const Tensor& scores, std::int64_t sample, std::int64_t frames, const Labels& labels,
                      std::int64_t blank) {
  const std::int64_t length = scores.shape()[1], classes = scores.shape()[2];
  const auto probability = [&](std::int64_t t, std::int64_t k) {
    const std::int64_t first = (sample * length + t) * classes;
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(scores.at(first + c));
    return std::exp(scores.at(first + k)) / sum;
  };
  double all = 0;
  Labels path(static_cast<std::size_t>(frames));
  const std::function<void(std::int64_t, double)> go_on = [&](std::int64_t t, double before) {
    if (t == frames) {
      if (collapsed(path, blank) == labels) all += before;
      return;
    }
    for (std::int64_t k = 0; k < classes; ++k) {
      path[static_cast<std::size_t>(t)] = k;
      go_on(t + 1, before * probability(t, k));
    }
  };
  go_on(0, 1);
  return -std::log(all);
}

double mean_by_enumeration(const Tensor& scores, const std::vector<std::int64_t>& frames,
                           const std::vector<Labels>& labels, std::int64_t blank = 0) {
  double sum = 0;
  for (std::size_t n = 0; n < labels.size(); ++n)
    sum += by_enumeration(scores, static_cast<std::int64_t>(n), frames[n], labels[n], blank) /
           static_cast<double>(std::max<std::size_t>(labels[n].size(), 1));
  return sum / static_cast<double>(labels.size());
}

Tensor scores() { return random_tensor(ElementType::f64, {4, 5, 3}, 1); }

TEST(Ctc, IsTheSumOverAllAlignments) {
  const Tensor y = scores();
  // A pair of equal labels, one that ends early, none at all, and one as long as there is room.
  const std::vector<Labels> labels = {{1, 1}, {2}, {}, {1, 2, 1}};
  const Tensor padded = whole({4, 3}, {1, 1, -1, 2, 0, 1, -1, -1, -1, 1, 2, 1});
  EXPECT_NEAR(value_of({"ctc", y, padded}), mean_by_enumeration(y, {5, 5, 5, 5}, labels), 1e-12);
  EXPECT_NEAR(value_of({"ctc(target_lengths=n)", y, padded, {}, whole({4}, {2, 1, 0, 3})}),
              mean_by_enumeration(y, {5, 5, 5, 5}, labels), 1e-12);
  EXPECT_NEAR(value_of({"ctc(input_lengths=t)", y, padded, whole({4}, {3, 2, 4, 5})}),
              mean_by_enumeration(y, {3, 2, 4, 5}, labels), 1e-12);
  const std::vector<Labels> others = {{0, 0}, {1}, {}, {0, 1, 0}};
  const Tensor last = whole({4, 3}, {0, 0, -1, 1, 2, 0, -1, -1, -1, 0, 1, 0});
  EXPECT_NEAR(value_of({"ctc(blank=2)", y, last}), mean_by_enumeration(y, {5, 5, 5, 5}, others, 2), 1e-12);
}

// What torch.nn.functional.ctc_loss of PyTorch 2.15 gives for the logarithms of these scores, and its slope.
TEST(Ctc, IsPyTorchs) {
  Case each{"ctc(input_lengths=t,target_lengths=n)", Tensor(ElementType::f64, {4, 5, 3}),
            whole({4, 3}, {1, 1, 0, 2, 0, 0, 0, 0, 0, 1, 2, 1}), whole({4}, {5, 3, 4, 5}),
            whole({4}, {2, 1, 0, 3})};
  for (std::int64_t i = 0; i < 60; ++i) each.scores.set(i, std::sin(0.7 * static_cast<double>(i)));
  Graph graph;
  Builder b(graph);
  const Var in[] = {b.input("x", ElementType::f64, each.scores.shape())};
  const Var loss = function_of(each)(b, in)[0];
  b.output("loss", loss);
  b.output("slope", gradient(b, loss, in)[0]);
  const Tensor inputs[] = {each.scores};
  const std::vector<Tensor> found = op::evaluate(verified(graph), inputs).outputs;
  EXPECT_NEAR(found[0].at(0), 1.87118715106201, 1e-13);
  const std::pair<std::int64_t, double> slopes[] = {
      {0, 0.00502440605521}, {1, -0.0650004564429},  {2, 0.0599760503877}, {15, -0.020020778832},
      {16, 0.0706330357552}, {46, -0.0401724126243}, {59, 0.0128757951921}};
  for (const auto& [i, slope] : slopes) EXPECT_NEAR(found[1].at(i), slope, 1e-12) << i;
}

// Scores far apart, whose probabilities f32 does not hold.
TEST(Ctc, KeepsWhatIsVeryUnlikely) {
  Tensor y(ElementType::f32, {1, 2, 2});
  y.set(0, 300), y.set(2, 300);
  EXPECT_NEAR(value_of({"ctc", y, whole({1, 1}, {1})}), 300 - std::log(2.0), 1e-4);
  Tensor never = y;  // a class that a model excludes
  never.set(1, -infinity), never.set(3, -infinity);
  EXPECT_EQ(value_of({"ctc", never, whole({1, 1}, {1})}), infinity);
  EXPECT_EQ(value_of({"ctc", never, whole({1, 1}, {0})}), 0);
}

TEST(Ctc, IsInfiniteWhereNoAlignmentFits) {
  const Tensor y = random_tensor(ElementType::f64, {2, 3, 3}, 2);
  const Tensor labels = whole({2, 3}, {1, 1, 2, 1, 0, 0});  // the first takes four frames
  EXPECT_EQ(value_of({"ctc", y, labels}), infinity);
  EXPECT_NEAR(value_of({"ctc(zero_infinity=true)", y, labels}), by_enumeration(y, 1, 3, {1}, 0) / 2, 1e-12);
  // Of no frame there is one alignment with no label.
  EXPECT_EQ(
      value_of({"ctc(input_lengths=t,target_lengths=n)", y, labels, whole({2}, {0, 0}), whole({2}, {0, 0})}),
      0);
}

std::vector<Case> differentiated() {
  const Tensor labels = whole({4, 3}, {1, 1, -1, 2, 0, 1, -1, -1, -1, 1, 2, 1});
  return {{"ctc", scores(), labels},
          {"ctc(input_lengths=t,target_lengths=n)", scores(), labels, whole({4}, {3, 2, 4, 5}),
           whole({4}, {2, 1, 0, 2})},
          {"ctc(zero_infinity=true,input_lengths=t)", scores(), labels, whole({4}, {2, 2, 4, 5})}};
}

TEST(Ctc, HasTheGradientOfItsValue) {
  for (const Case& each : differentiated()) {
    const Tensor points[] = {each.scores};
    const Status status = op::check_gradients(function_of(each), points);
    EXPECT_TRUE(status) << each.text << ": " << (status ? "" : status.error().what());
    // Scores of which a thousandth goes through whole numbers, which have no slope.
    const Status wrong = op::check_gradients(
        [&](Builder& b, std::span<const Var> in) {
          const Var flat = op::cast(op::cast(in[0] * 1e12, ElementType::i64), ElementType::f64) * 1e-12;
          const Var mixed[] = {in[0] * 0.999 + flat * 0.001};
          return function_of(each)(b, mixed);
        },
        points);
    EXPECT_FALSE(wrong) << each.text;
  }
}

Graph speech(std::int64_t frames, std::int64_t classes) {
  Graph graph("speech");
  Builder b(graph);
  const Var x = b.input("x", ElementType::f32, {4, frames, classes});
  b.output("y", x * b.state("scale", Tensor::full(ElementType::f32, {classes}, 1)));
  return graph;
}

TEST(Ctc, AsksForLabelsAndLengthsInOrder) {
  const char* text = "ctc(longest=3,input_lengths=t,target_lengths=n,sample_weights=w)";
  const Graph step = verified(make_training_step(speech(6, 5), {loss_from_text(text)}, {}));
  std::vector<std::string> inputs;
  for (const graph::ValueId id : step.inputs())
    inputs.push_back(step.value(id).name + to_string(step.type(id).shape));
  EXPECT_EQ(inputs,
            (std::vector<std::string>{"x[4,6,5]", "target[4,3]", "t[4]", "n[4]", "w[4]", "learning_rate[]"}));
  EXPECT_TRUE(splittable(step, {})) << "a mean over samples";
}

TEST(Ctc, WhatDoesNotFitIsNamed) {
  const auto refused = [](ErrorCode code, const char* text, const Graph& model,
                          std::initializer_list<std::string> why) {
    expect_error(code, why, [&] { make_training_step(model, {loss_from_text(text)}, {}); });
  };
  refused(ErrorCode::invalid_argument, "ctc(blank=5)", speech(6, 5), {"blank is 5", "5 classes: 0 to 4"});
  refused(ErrorCode::unsupported, "ctc(longest=2)", speech(most_ctc_frames + 1, 2),
          {"1001 frames", "at most 1000"});
  Graph flat("flat");
  Builder b(flat);
  b.output("y",
           b.input("x", ElementType::f32, {4, 3}) * b.state("scale", Tensor::full(ElementType::f32, {3}, 1)));
  refused(ErrorCode::bad_graph, "ctc", flat, {"ctc takes scores [N, frames, classes]", "[4,3]"});
  const auto text = [](const char* loss, const char* why) {
    expect_error(ErrorCode::invalid_argument, {why}, [&] { loss_from_text(loss); });
  };
  text("ctc(blank=-1)", "blank is a whole number, 0 at least, not '-1'");
  text("ctc(longest=0)", "longest is a whole number, 1 at least");
  text("ctc(zero_infinity=1)", "zero_infinity is true or false, not '1'");
  text("ctc(lengths=n)", "ctc has no constant 'lengths'");
}

}  // namespace
}  // namespace superstep::transform
