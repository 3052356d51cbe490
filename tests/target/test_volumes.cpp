// A network over volumes whose loss is taken behind a diffraction experiment: trained and served by kernels
// alone, with the reference's results, and with the same bits on any number of threads.
#include <gtest/gtest.h>

#include <cstring>

#include "superstep/op/elementwise/unary.h"
#include "superstep/op/product/fourier.h"
#include "superstep/op/window/resize.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using op::Var;
using test::Runner;

class VolumeLayers {
 public:
  explicit VolumeLayers(op::Builder& builder) : builder_(builder) {}

  Var parameter(const Shape& shape) {
    const std::string name = "p" + std::to_string(count_++);
    const double fan_in = shape.rank() < 2 ? 9.0 : static_cast<double>(shape.element_count() / shape[0]);
    return builder_.state(name,
                          test::random_tensor(ElementType::f32, shape, static_cast<std::uint64_t>(count_),
                                              1.7 / std::sqrt(fan_in)));
  }
  Var conv(Var x, std::int64_t out, std::int64_t stride = 1) {
    const Var w = parameter({out, x.shape()[1], 3, 3, 3});
    return op::leaky_relu(
        op::conv(x, w, parameter({out}), {.strides = {stride, stride, stride}, .pads = {1, 1, 1, 1, 1, 1}}));
  }

 private:
  op::Builder& builder_;
  int count_ = 0;
};

Var twice_as_large(Var x, const char* mode) {
  const Shape& s = x.shape();
  return op::resize(
      x, {s[0], s[1], 2 * s[2], 2 * s[3], 2 * s[4]},
      {.mode = mode, .coordinates = mode == std::string("linear") ? "align_corners" : "asymmetric"});
}

// Encoder and decoder over [8, 8, 8], an object of it in empty space, and the magnitude of its transform.
graph::Graph diffraction_network(std::int64_t batch) {
  graph::Graph graph("diffraction");
  op::Builder b(graph);
  VolumeLayers layers(b);
  const Var x = b.input("x", ElementType::f32, {batch, 1, 8, 8, 8});
  Var y = layers.conv(layers.conv(x, 16), 16);
  y = op::max_pool(y, {.kernel_shape = {2, 2, 2}, .strides = {2, 2, 2}}).values;
  y = layers.conv(y, 32, 2);
  y = op::average_pool(y, {.kernel_shape = {2, 2, 2}, .strides = {1, 1, 1}, .pads = {1, 1, 1, 0, 0, 0}});
  y = twice_as_large(layers.conv(y, 16), "linear");
  y = op::conv_transpose(y, layers.parameter({16, 8, 2, 2, 2}), {}, {{.strides = {2, 2, 2}}});
  const Var amplitude = op::sigmoid(op::conv(y, layers.parameter({1, 8, 1, 1, 1})));
  const Var phase = op::tanh(layers.conv(twice_as_large(layers.conv(y, 4, 2), "nearest"), 1));
  const op::Complex object = op::polar(amplitude, phase);
  const std::vector<std::int64_t> around{0, 0, 2, 2, 2, 0, 0, 2, 2, 2};
  const op::Complex far = op::fourier({op::pad(object.re, around), op::pad(object.im, around)}, {2, 3, 4});
  b.output("y", op::magnitude(far));
  return graph;
}

graph::Graph training_step(std::int64_t batch) {
  return transform::make_training_step(diffraction_network(batch), {},
                                       {.kind = transform::OptimizerKind::sgd}, {.model_outputs = true});
}

// Steps of the body that have no kernel.
std::string left_to_the_reference(const target::Executable& executable) {
  std::string names;
  for (const target::PlanStep& step : executable.summary().steps)
    if (step.kernel == "reference evaluation") names += step.op + " ";
  return names;
}

TEST(Volumes, AreTrainedAndServedByKernelsAlone) {
  const Runner training("cpu", training_step, {.batch = 2}),
      serving("cpu", diffraction_network, {.batch = 2});
  EXPECT_EQ("", left_to_the_reference(*training.executable));
  EXPECT_EQ("", left_to_the_reference(*serving.executable));
}

TEST(Volumes, TrainLikeTheReference) {
  Runner cpu("cpu", training_step, {.batch = 2}, 1e-3f),
      reference("reference", training_step, {.batch = 2}, 1e-3f);
  for (int step = 0; step < 2; ++step) cpu.run(), reference.run();
  for (std::size_t i = 0; i < cpu.outputs.size(); ++i)
    test::expect_close(cpu.outputs[i], reference.outputs[i], 1e-4, "output");
  for (const std::string& name : reference.executable->state_names())
    test::expect_close(cpu.executable->state(name), reference.executable->state(name), 1e-4, name);
}

TEST(Volumes, HaveTheSameBitsOnAnyNumberOfThreads) {
  const auto results = [](int threads, std::int64_t batch, std::int64_t micro_batch) {
    Runner runner("cpu", training_step, {.batch = batch, .micro_batch = micro_batch, .threads = threads},
                  1e-3f);
    for (int step = 0; step < 2; ++step) runner.run();
    for (const std::string& name : runner.executable->state_names())
      runner.outputs.push_back(runner.executable->state(name));
    return runner.outputs;
  };
  for (const auto& [batch, micro_batch] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {4, 1}, {6, 2}}) {
    const std::vector<Tensor> alone = results(1, batch, micro_batch);
    for (int threads : {2, 3, 8, 17, 64}) {
      const std::vector<Tensor> shared = results(threads, batch, micro_batch);
      for (std::size_t i = 0; i < alone.size(); ++i)
        EXPECT_EQ(0, std::memcmp(alone[i].bytes(), shared[i].bytes(), alone[i].byte_count()))
            << "batch " << batch << ", " << threads << " threads, tensor " << i;
    }
  }
}

// Convolutions read and write bf16; what is complex stays f32.
TEST(Volumes, TrainInBf16WithTransformsInF32) {
  const auto narrow = [](std::int64_t batch) {
    return transform::make_training_step(transform::autocast(diffraction_network(batch), ElementType::bf16),
                                         {}, {.kind = transform::OptimizerKind::sgd},
                                         {.model_outputs = true});
  };
  Runner cpu("cpu", narrow, {.batch = 2}, 1e-3f), wide("cpu", training_step, {.batch = 2}, 1e-3f);
  EXPECT_EQ("", left_to_the_reference(*cpu.executable));
  cpu.run(), wide.run();
  test::expect_close(cpu.outputs[0], wide.outputs[0], 0.05, "loss");
}

}  // namespace
}  // namespace superstep
