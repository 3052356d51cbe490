#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/base/random.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"

namespace superstep::workload {
namespace {

using graph::Graph;

Graph built(const std::string& name, std::int64_t batch, const std::vector<std::string>& options = {},
            std::uint64_t seed = 1) {
  Graph graph = build_model(find_workload(name), batch, options, seed);
  value_or_throw(graph::verify(graph, op::infer_types));
  return graph;
}

Graph training_step(const std::string& name, std::int64_t batch) {
  const Recipe& training = find_workload(name).training;
  return transform::make_training_step(built(name, batch), training.loss, training.optimizer);
}

Tensor uniform(const Shape& shape, std::uint64_t seed) {
  Tensor tensor(ElementType::f32, shape);
  RandomStream random(seed);
  for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform());
  return tensor;
}

std::string error_of(const std::string& name, const std::vector<std::string>& options,
                     std::int64_t batch = 1) {
  try {
    built(name, batch, options);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

// --- every workload

class EveryWorkload : public ::testing::TestWithParam<std::string> {};

void expect_port(const PortSpec& port, const graph::ValueType& type, std::int64_t batch) {
  std::vector<std::int64_t> extents = {batch};
  extents.insert(extents.end(), port.shape.begin(), port.shape.end());
  EXPECT_EQ(type, (graph::ValueType{port.element, Shape(extents)})) << port.name;
}

TEST_P(EveryWorkload, IsWhatItSays) {
  const Workload& workload = find_workload(GetParam());
  const Graph graph = built(GetParam(), 3);
  EXPECT_EQ(graph.name(), workload.name);
  EXPECT_EQ(count_parameters(graph), workload.parameters);
  EXPECT_EQ(op::cost(built(GetParam(), 1)).flops, static_cast<double>(workload.flops));
  ASSERT_EQ(graph.inputs().size(), workload.inputs.size());
  for (std::size_t i = 0; i < workload.inputs.size(); ++i) {
    EXPECT_EQ(graph.value(graph.inputs()[i]).name, workload.inputs[i].name);
    expect_port(workload.inputs[i], graph.type(graph.inputs()[i]), 3);
  }
  ASSERT_EQ(graph.outputs().size(), workload.outputs.size());
  for (std::size_t i = 0; i < workload.outputs.size(); ++i) {
    EXPECT_EQ(graph.outputs()[i].name, workload.outputs[i].name);
    expect_port(workload.outputs[i], graph.type(graph.outputs()[i].value), 3);
  }
}

TEST_P(EveryWorkload, HasATrainingStepThatCanBeSplit) {
  const Workload& workload = find_workload(GetParam());
  const Graph step = training_step(GetParam(), 4);
  ASSERT_TRUE(graph::verify(step, op::infer_types).has_value());
  const Status status = transform::splittable(step);
  const bool normalises_over_the_batch = std::ranges::any_of(
      step.nodes(), [](const graph::Node& node) { return node.op == "BatchNormalization"; });
  if (normalises_over_the_batch) {
    ASSERT_FALSE(status);
    EXPECT_TRUE(contains(status.error().what(), "by the mean and variance of the whole batch"));
  } else {
    EXPECT_TRUE(status) << (status ? "" : status.error().what());
  }
  const std::size_t inputs = workload.inputs.size();
  ASSERT_EQ(step.inputs().size(), inputs + workload.targets.size() + 1);
  for (std::size_t i = 0; i < workload.targets.size(); ++i)
    expect_port(workload.targets[i], step.type(step.inputs()[inputs + i]), 4);
}

TEST_P(EveryWorkload, StartsFromTheSameBitsForTheSameSeed) {
  // Where the defaults draw nothing, the start that does.
  const std::vector<std::string> drawn =
      GetParam() == "sobel-800" ? std::vector<std::string>{"start=random"} : std::vector<std::string>{};
  const Graph a = built(GetParam(), 1, drawn), b = built(GetParam(), 8, drawn),
              c = built(GetParam(), 1, drawn, 2);
  const graph::ValueId id = transform::trainable_states(a)[0];
  EXPECT_TRUE(graph::same(a.value(id).data, b.value(b.find_value(a.value(id).name)).data));
  EXPECT_FALSE(graph::same(a.value(id).data, c.value(id).data));
}

// Of each kind of layer that there is: forward mode, whose only backward nodes are what parts of a batch
// average.
TEST(ForwardGradients, TrainEveryKindOfModel) {
  for (const char* name : {"wallmodel", "braggnn", "unet-64", "lstm", "polymer-gcn", "mobilenet-v3-small",
                           "cookienetae", "sobel-800", "bert-small"}) {
    const Recipe& training = find_workload(name).training;
    const Graph step = transform::make_training_step(
        built(name, 2), training.loss, training.optimizer,
        {.gradient = {.kind = transform::GradientMode::Kind::forward, .tangents = 2, .layers = {}}});
    ASSERT_TRUE(graph::verify(step, op::infer_types).has_value()) << name;
    EXPECT_EQ(std::ranges::count(step.nodes(), graph::Phase::backward, &graph::Node::phase), 2) << name;
  }
}

TEST_P(EveryWorkload, RunsInReducedPrecision) {
  const Graph graph = transform::autocast(built(GetParam(), 2), ElementType::bf16);
  ASSERT_TRUE(graph::verify(graph, op::infer_types).has_value());
  for (const graph::Output& output : graph.outputs())
    EXPECT_EQ(graph.type(output.value).element, ElementType::f32);
}

TEST_P(EveryWorkload, SetsItsTargetOnItsFirstMetric) {
  const Workload& workload = find_workload(GetParam());
  if (!workload.target) return;
  ASSERT_FALSE(workload.metrics.empty());
  EXPECT_EQ(workload.target->metric, workload.metrics[0].name);
  EXPECT_EQ(workload.target->higher_is_better, workload.metrics[0].higher_is_better);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) names.push_back(workload.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Workloads, EveryWorkload, ::testing::ValuesIn(all_names()));

TEST(Workloads, RefuseWhatIsNotThere) {
  try {
    find_workload("bragnn");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "bragnn: there is no such workload (did you mean 'braggnn'?)"));
  }
  EXPECT_TRUE(contains(error_of("braggnn", {"ptach=11"}), "did you mean 'patch'?"));
  EXPECT_TRUE(contains(error_of("mlp", {}, 0), "mlp: a batch of 0 samples cannot be built"));
}

// --- BraggNN

TEST(BraggNN, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(built("braggnn", 1)), 33172);
  EXPECT_EQ(count_parameters(built("braggnn", 1, {"hidden=32-16-8-4"})), 36910);
  EXPECT_EQ(count_parameters(built("braggnn", 1, {"hidden=64-32-16-8"})), 45394);
}

TEST(BraggNN, TakesTheWorkThatItsLayersTake) {
  double multiply_accumulates = 0;
  const Graph graph = built("braggnn", 1);
  for (const graph::Node& node : graph.nodes())
    if (node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm")
      multiply_accumulates += op::cost(graph, node).flops / 2;
  EXPECT_NEAR(multiply_accumulates, 2.094e6, 0.015e6);  // biases count half a multiply-accumulate
}

TEST(BraggNN, IsBuiltForOtherPatches) {
  for (int patch = 9; patch <= 23; patch += 2) {
    const Graph graph = built("braggnn", 2, {"patch=" + std::to_string(patch)});
    EXPECT_EQ(graph.type(graph.inputs()[0]).shape, (Shape{2, 1, patch, patch}));
  }
  EXPECT_TRUE(contains(error_of("braggnn", {"patch=12"}), "a patch of 12 pixels has no middle pixel"));
  EXPECT_TRUE(contains(error_of("braggnn", {"patch=25"}), "not in [9, 23]"));
  EXPECT_TRUE(
      contains(error_of("braggnn", {"hidden=16-x"}), "option hidden: '16-x' is not a list of widths"));
}

TEST(BraggNN, CentredModelsDifferByOneHalf) {
  const Tensor patch = uniform({2, 1, 11, 11}, 5);
  const Tensor centred = op::evaluate(built("braggnn", 2), std::span(&patch, 1)).outputs[0];
  const Tensor plain = op::evaluate(built("braggnn", 2, {"centred=no"}), std::span(&patch, 1)).outputs[0];
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_NEAR(centred.at(i), plain.at(i) + 0.5, 1e-6);
}

// The loss on labels in [0, 1) is that of the network on labels minus 0.5: the same gradients.
TEST(BraggNN, TrainsOnCentredLabelsEitherWay) {
  const auto step = [](const std::vector<std::string>& options, double label) {
    const Recipe& training = find_workload("braggnn").training;
    const Graph graph = transform::make_training_step(built("braggnn", 2, options), training.loss,
                                                      {.kind = transform::OptimizerKind::sgd});
    const Tensor inputs[] = {uniform({2, 1, 11, 11}, 5), Tensor::full(ElementType::f32, {2, 2}, label),
                             Tensor::scalar(1.0f)};
    return op::evaluate(graph, inputs).states.at("conv2.weight");
  };
  const Tensor a = step({}, 0.625), b = step({"centred=no"}, 0.125), other = step({"centred=no"}, 0.625);
  double worst = 0, difference = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
    difference = std::max(difference, std::abs(a.at(i) - other.at(i)));
  }
  EXPECT_LT(worst, 1e-7);
  EXPECT_GT(difference, 1e-5);
}

TEST(BraggNN, LearnsOnePlace) {
  const Graph step = training_step("braggnn", 4);
  const Tensor label = Tensor::full(ElementType::f32, {4, 2}, 0.7);
  const Tensor inputs[] = {uniform({4, 1, 11, 11}, 5), label, Tensor::scalar(1e-2f)};
  std::map<std::string, Tensor> states;
  std::vector<double> losses;
  for (int i = 0; i < 8; ++i) {
    op::Evaluation result = op::evaluate(step, inputs, states);
    losses.push_back(result.outputs[0].at(0));
    states = std::move(result.states);
  }
  EXPECT_LT(losses.back(), 0.7 * losses.front());
  EXPECT_EQ(states.at("step").at(0), 8);
}

// Near 0.5 bf16 has steps of 1/256, or 0.04 px: the half is added in f32.
TEST(BraggNN, AddsTheHalfInFullPrecision) {
  const Graph wide = built("braggnn", 2), narrow = transform::autocast(wide, ElementType::bf16);
  const graph::Node& last = narrow.nodes().back();
  EXPECT_EQ(last.op, "Add");
  EXPECT_EQ(narrow.type(last.inputs[0]).element, ElementType::f32);
  const Tensor patch = uniform({2, 1, 11, 11}, 5);
  const Tensor a = op::evaluate(wide, std::span(&patch, 1)).outputs[0];
  const Tensor b = op::evaluate(narrow, std::span(&patch, 1)).outputs[0];
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_NEAR(a.at(i), b.at(i), 1e-3);
}

// With theta zero all scores are equal, so that every position gets the mean of g over all positions.
TEST(BraggNN, AttentionWithoutThetaIsTheMean) {
  Graph graph = built("braggnn", 1);
  const auto value_of = [&](std::string_view name) { return graph.find_value(name); };
  graph.set_data(value_of("attention.theta.weight"), Tensor(ElementType::f32, {32, 64, 1, 1}));
  graph::ValueId weights, g;
  for (const graph::Node& node : graph.nodes()) {
    if (node.op == "Softmax") weights = node.outputs[0];
    if (node.op == "Conv" && node.inputs[1] == value_of("attention.g.weight")) g = node.outputs[0];
  }
  graph::ValueId mixed;
  for (const graph::Node& node : graph.nodes())
    if (node.op == "MatMul" && node.inputs[0] == weights) mixed = node.outputs[0];
  graph.add_output("weights", weights), graph.add_output("g", g), graph.add_output("mixed", mixed);
  const Tensor patch = uniform({1, 1, 11, 11}, 5);
  const auto found = op::evaluate(graph, std::span(&patch, 1)).outputs;
  for (std::int64_t i = 0; i < 81 * 81; ++i) ASSERT_NEAR(found[1].at(i), 1.0 / 81, 1e-7);
  for (std::int64_t channel = 0; channel < 32; ++channel) {
    double mean = 0;
    for (std::int64_t i = 0; i < 81; ++i) mean += found[2].at(channel * 81 + i) / 81;
    for (std::int64_t position = 0; position < 81; ++position)
      ASSERT_NEAR(found[3].at(position * 32 + channel), mean, 1e-6);
  }
}

TEST(BraggNN, DrawsWeightsWithinXaviersBounds) {
  const Graph graph = built("braggnn", 1);
  const Tensor& weight = graph.value(graph.find_value("conv2.weight")).data;
  const double limit = std::sqrt(6.0 / ((64 + 32) * 9));
  double largest = 0, sum = 0;
  for (std::int64_t i = 0; i < weight.element_count(); ++i) {
    largest = std::max(largest, std::abs(weight.at(i)));
    sum += weight.at(i);
  }
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, 0.99 * limit);
  EXPECT_NEAR(sum / static_cast<double>(weight.element_count()), 0, 0.05 * limit);
  EXPECT_EQ(graph.value(graph.find_value("conv2.bias")).data.at(0), 0);
}

// --- the others: published or counted sizes, and what is refused

double multiply_accumulates(const std::string& name, const std::vector<std::string>& options = {}) {
  double sum = 0;
  const Graph graph = built(name, 1, options);
  for (const graph::Node& node : graph.nodes())
    if (node.op == "Conv" || node.op == "ConvTranspose" || node.op == "MatMul" || node.op == "Gemm" ||
        node.op == "LSTM")
      sum += op::cost(graph, node).flops / 2;
  return sum;
}

TEST(PtychoNN, TakesTheWorkThatItsLayersTake) {
  EXPECT_NEAR(multiply_accumulates("ptychonn-64"), 402e6, 3e6);
  EXPECT_NEAR(multiply_accumulates("ptychonn-128"), 316e6, 3e6);
  EXPECT_TRUE(contains(error_of("ptychonn-64", {"window=20"}), "a window of 20 pixels cannot be halved"));
}

TEST(CookieNetAE, TakesTheWorkThatItsLayersTake) {
  EXPECT_NEAR(multiply_accumulates("cookienetae"), 221e6, 2e6);
  EXPECT_TRUE(contains(error_of("cookienetae", {"size=100"}), "100 bins cannot be halved 3 times"));
}

// Both directions of a piece of signal processing: every output of the filter, its magnitude too, where there
// are edges and where there are none.
TEST(Sobel, HasTheGradientsOfARampAndOfNothing) {
  const auto edges = [](double a, double b, const std::vector<std::string>& more = {}) {
    std::vector<std::string> options{"side=9"};
    options.insert(options.end(), more.begin(), more.end());
    Tensor frame(ElementType::f32, {1, 1, 9, 9});
    for (std::int64_t i = 0; i < 81; ++i)
      frame.set(i, 100 + a * static_cast<double>(i % 9) + b * static_cast<double>(i / 9));
    return op::evaluate(built("sobel-800", 1, options), std::span(&frame, 1)).outputs;
  };
  const auto ramp = edges(7, -3), flat = edges(0, 0), half = edges(7, -3, {"half=yes"});
  for (std::int64_t y = 1; y < 8; ++y)
    for (std::int64_t x = 1; x < 8; ++x) {
      const std::int64_t at = 9 * y + x;
      EXPECT_EQ(ramp[0].at(at), 56);
      EXPECT_EQ(ramp[1].at(at), -24);
      EXPECT_NEAR(ramp[2].at(at), std::hypot(56, 24), 1e-5);
      EXPECT_NEAR(half[0].at(at), 56, 1e-3 * 56);
      EXPECT_EQ(flat[0].at(at), 0);
      EXPECT_NEAR(flat[2].at(at), 0, 2e-6);
    }
  EXPECT_NE(half[0].at(0), ramp[0].at(0) + 1);
  EXPECT_TRUE(contains(error_of("sobel-800", {"window=4"}), "4"));
}

TEST(Sobel, HoldsTheBrightestPixelsInSixteenBits) {
  const Tensor frame = Tensor::full(ElementType::f32, {1, 1, 12, 12}, 65535);
  for (const char* window : {"window=3", "window=5", "window=7", "window=9"}) {
    const auto with = [&](const char* half) {
      return op::evaluate(built("sobel-800", 1, {"side=12", window, half}), std::span(&frame, 1)).outputs[0];
    };
    const Tensor wide = with("half=no"), narrow = with("half=yes");
    double apart = 0, size = 0;
    for (std::int64_t i = 0; i < wide.element_count(); ++i) {
      apart += std::pow(wide.at(i) - narrow.at(i), 2);
      size += std::pow(wide.at(i), 2);
    }
    EXPECT_LT(std::sqrt(apart), 1e-3 * std::sqrt(size)) << window;
    EXPECT_GT(size, 0);
  }
}

TEST(PcaCompress, TakesThePublishedWorkAndAnyNumberOfComponents) {
  EXPECT_NEAR(multiply_accumulates("pca-compress-128", {"returns=no", "components=3000"}), 98.3e6 / 2, 1e6);
  EXPECT_EQ(built("pca-compress-128", 1, {"components=1", "returns=no"}).outputs().size(), 1u);
  EXPECT_TRUE(contains(error_of("pca-compress-128", {"side=4", "components=17"}), "has no 17 components"));
}

TEST(ImageAutoencoder, HasItsStagesAndCodes) {
  EXPECT_NEAR(multiply_accumulates("image-autoencoder"), 1.01e9, 0.01e9);
  const Graph graph = built("image-autoencoder", 1, {"bottleneck=4"});
  EXPECT_EQ(graph.type(graph.outputs()[1].value).shape, (Shape{1, 4, 7, 7}));
  EXPECT_TRUE(contains(error_of("image-autoencoder", {"size=30"}), "30 pixels cannot be halved twice"));
  EXPECT_TRUE(contains(error_of("image-autoencoder", {"bits=1"}), "no value beside zero"));
}

// A code of b bits has at most 2^b - 1 different values an image, and training does not see the rounding.
TEST(ImageAutoencoder, RoundsItsCodeAndLearnsAsIfItDidNot) {
  const Tensor image = uniform({2, 1, 8, 8}, 5);
  const auto code = [&](const char* bits) {
    return op::evaluate(built("image-autoencoder", 2, {"size=8", "width=2", "bottleneck=8", bits}),
                        std::span(&image, 1))
        .outputs[1];
  };
  const Tensor wide = code("bits=0"), narrow = code("bits=4");
  for (std::int64_t n = 0; n < 2; ++n) {
    double largest = 0;
    std::map<long, int> levels;
    for (std::int64_t i = 32 * n; i < 32 * (n + 1); ++i) largest = std::max(largest, std::abs(wide.at(i)));
    for (std::int64_t i = 32 * n; i < 32 * (n + 1); ++i) {
      const double level = narrow.at(i) / (largest / 7);
      EXPECT_NEAR(level, std::round(level), 1e-4);
      EXPECT_LE(std::abs(level), 7.001);
      EXPECT_NEAR(narrow.at(i), wide.at(i), 0.501 * largest / 7);
      ++levels[std::lround(level)];
    }
    EXPECT_GT(levels.size(), 4u);
  }
  const Recipe& training = find_workload("image-autoencoder").training;
  const auto encoder_after_a_step = [&](const char* bits) {
    const Graph step = transform::make_training_step(
        built("image-autoencoder", 2, {"size=8", "width=2", "bottleneck=8", bits}), training.loss,
        {.kind = transform::OptimizerKind::sgd});
    const Tensor inputs[] = {image, Tensor::scalar(1.0f)};
    return op::evaluate(step, inputs).states.at("stem.weight");
  };
  const Tensor before =
      built("image-autoencoder", 2, {"size=8", "width=2", "bottleneck=8"})
          .value(
              built("image-autoencoder", 2, {"size=8", "width=2", "bottleneck=8"}).find_value("stem.weight"))
          .data;
  const Tensor plain = encoder_after_a_step("bits=0"), rounded = encoder_after_a_step("bits=8");
  double moved = 0, apart = 0;
  for (std::int64_t i = 0; i < before.element_count(); ++i) {
    moved += std::pow(plain.at(i) - before.at(i), 2);
    apart += std::pow(plain.at(i) - rounded.at(i), 2);
  }
  EXPECT_GT(moved, 0);
  EXPECT_LT(std::sqrt(apart), 0.3 * std::sqrt(moved));
}

TEST(UNet, HasThePublishedSizes) {
  EXPECT_NEAR(multiply_accumulates("unet-256"), 12.1e9, 0.1e9);
  // Encoder and bottleneck 4,714,208, decoder 3,048,800, head 33.
  const Graph graph = built("unet-256", 1);
  std::map<std::string, std::int64_t> parts;
  for (graph::ValueId id : transform::trainable_states(graph)) {
    const std::string& name = graph.value(id).name;
    const bool down = name.starts_with("encoder") || name.starts_with("bottleneck");
    parts[down ? "down" : name.starts_with("head") ? "head" : "up"] += graph.type(id).shape.element_count();
  }
  EXPECT_EQ(parts["down"], 4714208);
  EXPECT_EQ(parts["up"], 3048800);
  EXPECT_EQ(parts["head"], 33);
  EXPECT_TRUE(contains(error_of("unet-256", {"size=100"}), "100 pixels cannot be halved 4 times"));
}

TEST(ResNet50, HasThePublishedStages) {
  const Graph graph = built("resnet50", 1);
  std::map<std::string, std::int64_t> stages;
  for (graph::ValueId id : transform::trainable_states(graph)) {
    const std::string& name = graph.value(id).name;
    stages[name.substr(0, name.find('.'))] += graph.type(id).shape.element_count();
  }
  EXPECT_EQ(stages["stem"], 9536);
  EXPECT_EQ(stages["stage1"], 215808);
  EXPECT_EQ(stages["stage2"], 1219584);
  EXPECT_EQ(stages["stage3"], 7098368);
  EXPECT_EQ(stages["stage4"], 14964736);
  EXPECT_EQ(stages["fc"], 2049000);
  EXPECT_EQ(count_parameters(built("resnet50", 1, {"classes=100"})), 23712932);
  EXPECT_NEAR(multiply_accumulates("resnet50"), 4.09e9, 0.03e9);
}

TEST(Classifiers, TakeThePublishedWork) {
  EXPECT_NEAR(multiply_accumulates("efficientnet-b0"), 0.386e9, 0.006e9);
  EXPECT_NEAR(multiply_accumulates("mobilenet-v3-small"), 0.0565e9, 0.002e9);
  EXPECT_NEAR(multiply_accumulates("mobilenet-v3-large"), 0.217e9, 0.004e9);
  EXPECT_TRUE(contains(error_of("resnet50", {"size=50"}), "no multiple of 4"));
}

// Windows over 16 channels each, expanded four times: as many parameters as the published form with windows
// over one, and half as much work again. Statistics are of samples: none run along.
TEST(Classifiers, TakeGroupsOfChannels) {
  const std::vector<std::string> g16{"group-width=16", "expansion=4", "norm=group"};
  const Graph b4 = built("efficientnet-b4", 1, g16);
  EXPECT_EQ(count_parameters(b4), 19328168);
  EXPECT_NEAR(multiply_accumulates("efficientnet-b4", g16), 6.18e9, 0.03e9);
  EXPECT_NEAR(multiply_accumulates("efficientnet-b4"), 4.39e9, 0.04e9);
  const auto has = [](const Graph& graph, std::string_view op) {
    return std::ranges::any_of(graph.nodes(), [&](const graph::Node& node) { return node.op == op; });
  };
  EXPECT_TRUE(has(b4, "GroupNormalization"));
  EXPECT_FALSE(has(b4, "BatchNormalization"));
  EXPECT_TRUE(has(built("efficientnet-b0", 1, {"group-width=16"}), "BatchNormalization"));
  EXPECT_TRUE(contains(error_of("efficientnet-b0", {"norm=layer"}), "norm"));
  EXPECT_TRUE(contains(error_of("efficientnet-b0", {"group-width=0"}), "group-width"));
}

TEST(Bert, HasThePublishedSizes) {
  EXPECT_NEAR(multiply_accumulates("distilbert") - 128.0 * 768 * 30522, 5.59e9, 0.02e9);
  EXPECT_TRUE(contains(error_of("bert-small", {"heads=5"}), "a width of 256 cannot be divided into 5 heads"));
}

// Pre-training with both heads, which the large size has by default; the base size answers without a pooler.
TEST(Bert, PacksPairsThatDoNotSeeEachOther) {
  const Graph graph =
      built("bert-large", 1, {"layers=2", "width=16", "heads=2", "length=8", "vocabulary=64", "sequences=2"});
  const auto said = [&](std::int64_t second) {
    Tensor ids(ElementType::i64, {1, 8}), mask(ElementType::i64, {1, 8}), types(ElementType::i64, {1, 8}),
        places(ElementType::i64, {1, 2}), positions(ElementType::i64, {1, 8}),
        firsts(ElementType::i64, {1, 2});
    for (std::int64_t i = 0; i < 8; ++i) {
      ids.set(i, i < 4 ? static_cast<double>(7 + 3 * i) : static_cast<double>(second + i));
      mask.set(i, i < 4 ? 1 : 2);
      positions.set(i, static_cast<double>(i % 4));
    }
    places.set(0, 1), places.set(1, 6), firsts.set(1, 4);
    const Tensor inputs[] = {ids, mask, types, places, positions, firsts};
    return op::evaluate(graph, inputs).outputs;
  };
  const auto a = said(20), b = said(40);
  double own = 0, other = 0;
  for (std::int64_t i = 0; i < 2 * 64; ++i)
    (i < 64 ? own : other) = std::max(i < 64 ? own : other, std::abs(a[0].at(i) - b[0].at(i)));
  EXPECT_LT(own, 1e-6);
  EXPECT_GT(other, 1e-3);  // the control: what was changed does change
  EXPECT_NEAR(a[1].at(0), b[1].at(0), 1e-6);
  EXPECT_GT(std::abs(a[1].at(2) - b[1].at(2)), 1e-5);
}

// Places beyond 256 are no numbers of bf16 each: which words are chosen must not depend on the precision.
TEST(Bert, ChoosesTheSameWordsInHalfPrecision) {
  const Graph wide =
      built("bert-large", 1, {"layers=1", "width=16", "heads=2", "length=512", "vocabulary=64"});
  Tensor ids(ElementType::i64, {1, 512}), mask = Tensor::full(ElementType::i64, {1, 512}, 1),
                                          types(ElementType::i64, {1, 512}),
                                          places(ElementType::i64, {1, 80});
  RandomStream random(3);
  for (std::int64_t i = 0; i < 512; ++i) ids.set(i, 5 + static_cast<double>(random.below(59)));
  const auto words = [&](const Graph& graph, std::int64_t first) {
    for (std::int64_t i = 0; i < 80; ++i) places.set(i, static_cast<double>(first + 2 * i));
    const Tensor inputs[] = {ids, mask, types, places};
    return op::evaluate(graph, inputs).outputs[0];
  };
  const auto distance = [](const Tensor& a, const Tensor& b) {
    double most = 0;
    for (std::int64_t i = 0; i < a.element_count(); ++i) most = std::max(most, std::abs(a.at(i) - b.at(i)));
    return most;
  };
  const Graph half = transform::autocast(wide, ElementType::bf16, {.least_width = 1});
  const double rounding = distance(words(wide, 301), words(half, 301));
  EXPECT_GT(rounding, 0);
  EXPECT_LT(10 * rounding, distance(words(wide, 301), words(wide, 300)));  // the control: one place beside
}

// With all queries zero every token gets the mean of the values; padding changes nothing (to 1e-6).
TEST(Llama, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(built(
                "llama", 1,
                {"layers=32", "width=4096", "heads=32", "key-heads=32", "inner=11008", "vocabulary=32000"})),
            6738415616);
  EXPECT_TRUE(contains(error_of("llama", {"heads=4", "key-heads=3"}), "4 heads cannot share 3 key heads"));
  EXPECT_TRUE(contains(error_of("llama", {"rope-scaling=yarn:2"}), "'yarn:2' is no scaling of positions"));
}

// What comes later changes nothing before it.
TEST(Llama, DoesNotSeeWhatComesLater) {
  for (const char* name : {"llama", "gpt2"}) {
    const std::vector<std::string> sizes{"layers=2", "width=16", "heads=2", "length=8", "vocabulary=64"};
    const Graph graph = built(name, 1, sizes);
    Tensor ids = Tensor::full(ElementType::i64, {1, 8}, 7);
    const Tensor before = op::evaluate(graph, std::span(&ids, 1)).outputs[0].clone();
    Tensor changed = ids.clone();
    changed.set(5, 9);
    const Tensor after = op::evaluate(graph, std::span(&changed, 1)).outputs[0];
    double later = 0;
    for (std::int64_t i = 0; i < after.element_count(); ++i) {
      if (i < 5 * 64)
        ASSERT_EQ(after.at(i), before.at(i)) << name << " " << i;
      else
        later = std::max(later, std::abs(after.at(i) - before.at(i)));
    }
    EXPECT_GT(later, 1e-4) << name;
  }
}

TEST(Gpt2, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(built("gpt2", 1)), 124439808);
  EXPECT_EQ(count_parameters(built("gpt2", 1, {"layers=36", "width=1280", "heads=20"})), 774030080);
  EXPECT_TRUE(contains(error_of("gpt2", {"length=2000"}), "beyond the 1024 positions"));
}

TEST(VisionTransformer, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(built("vit-base", 1)), 86567656);
  EXPECT_TRUE(contains(error_of("vit-base", {"patch=15"}), "cannot be cut into patches of 15"));
}

TEST(ResNext, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(built("resnext101", 1)), 88791336);
  EXPECT_EQ(count_parameters(built("resnext101", 1, {"group-width=4"})), 44177704);
}

TEST(Bert, PaddingDoesNotChangeTheOthers) {
  const Graph graph =
      built("bert-small", 1, {"layers=2", "width=16", "heads=2", "length=8", "vocabulary=64"});
  const auto logits = [&](std::int64_t padding) {
    Tensor ids(ElementType::i64, {1, 8}), mask(ElementType::i64, {1, 8});
    for (std::int64_t i = 0; i < 8; ++i) {
      ids.set(i, i < 5 ? static_cast<double>(7 + 3 * i) : static_cast<double>(padding));
      mask.set(i, i < 5 ? 1 : 0);
    }
    const Tensor inputs[] = {ids, mask};
    return op::evaluate(graph, inputs).outputs[0];
  };
  const Tensor a = logits(0), b = logits(33);
  double words = 0, padding = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i)
    (i < 5 * 64 ? words : padding) = std::max(i < 5 * 64 ? words : padding, std::abs(a.at(i) - b.at(i)));
  EXPECT_LT(words, 1e-6);
  EXPECT_GT(padding, 1e-3);  // the control: the padding itself does change
}

TEST(Classifiers, StartAtTheLossOfGuessing) {
  for (const char* name : {"mobilenet-v3-small", "efficientnet-b0"}) {
    const Recipe& training = find_workload(name).training;
    const Graph step = transform::make_training_step(built(name, 4, {"size=32", "classes=10"}), training.loss,
                                                     {.kind = transform::OptimizerKind::sgd});
    const Tensor inputs[] = {uniform({4, 3, 32, 32}, 5), Tensor::from<std::int64_t>({4}, {0, 3, 9, 5}),
                             Tensor::scalar(0.0f)};
    const double loss = op::evaluate(step, inputs).outputs[0].at(0);
    EXPECT_GT(loss, 1.2) << name;
    EXPECT_LT(loss, 4.5) << name;
  }
}

// --- CIFAR-10 CNN

TEST(Cifar10Cnn, StartsAtTheLossOfGuessing) {
  Graph step = training_step("cifar10-cnn", 4);
  const Tensor inputs[] = {uniform({4, 3, 32, 32}, 5), Tensor::from<std::int64_t>({4}, {0, 3, 9, 5}),
                           Tensor::scalar(0.0f)};
  EXPECT_NEAR(op::evaluate(step, inputs).outputs[0].at(0), std::log(10.0), 0.1);
}

TEST(Cifar10Cnn, DropsOutThreeTimesInTrainingOnly) {
  const auto count = [](const Graph& graph, std::string_view op) {
    return std::ranges::count(graph.nodes(), op, &graph::Node::op);
  };
  EXPECT_EQ(count(training_step("cifar10-cnn", 4), "superstep.RandomMask"), 3);
  EXPECT_EQ(count(built("cifar10-cnn", 4), "superstep.RandomMask"), 0);
}

}  // namespace
}  // namespace superstep::workload
