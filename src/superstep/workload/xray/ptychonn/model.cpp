// PtychoNN: amplitude and phase of a sample from one coherent diffraction pattern (M. Cherukara et al., Appl.
// Phys. Lett. 117, 044103, 2020), and its smaller, phase-only form for the beamline (A. Babu et al., Nat.
// Commun. 14, 7059, 2023).
//
// ptychonn-64: diff f32 [N, 1, 64, 64] -> amp, phase f32 [N, 1, 64, 64]. ptychonn-128: diff f32 [N, 1, 128,
// 128] -> phase f32 [N, 1, 128, 128].
#include <fmt/format.h>

#include <numbers>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"
#include "superstep/workload/xray/ptychonn/ptychonn.h"

namespace superstep::workload {
namespace {

using LevelWidths = std::vector<std::int64_t>;

Var two_convs(Layers& layers, Var x, const std::string& name, std::int64_t channels) {
  for (const char* number : {".conv1", ".conv2"})
    x = layers.relu(layers.conv(x, name + number, channels, 3, {.pads = {1, 1, 1, 1}}));
  return x;
}

Var pattern_encoder(Layers& layers, Var x, const LevelWidths& widths) {
  int level = 1;
  for (std::int64_t width : widths) {
    x = two_convs(layers, x, fmt::format("encoder{}", level++), width);
    x = op::max_pool(x, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  }
  return x;
}

Var twice_as_large(Var x) {
  Builder& b = x.builder();
  const Var scales = b.constant(Tensor::from<float>({4}, {1, 1, 2, 2}));
  return b.node1(
      "Resize", {x, Var(), scales},
      {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("half_pixel")}});
}

// Ends with one channel, before its activation.
Var object_decoder(Layers& layers, Var x, const std::string& name, const LevelWidths& widths) {
  int level = 1;
  for (std::int64_t width : widths)
    x = twice_as_large(two_convs(layers, x, fmt::format("{}{}", name, level++), width));
  return layers.conv(x, name + ".out", 1, 3, {.pads = {1, 1, 1, 1}});
}

Var as_phase(Builder& b, Var x) {
  const op::NameScope scope(b, "phase");
  return op::tanh(x) * std::numbers::pi;
}

std::int64_t window_of(const Options& options) {
  const std::int64_t window = options.integer("window", 16, 512);
  if (window % 16 != 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("a window of {} pixels cannot be halved", window),
                "option window", "take a multiple of 16");
  return window;
}

graph::Graph build_ptychonn_64(std::int64_t batch, const Options& options, std::uint64_t seed) {
  graph::Graph graph("ptychonn-64");
  Builder b(graph);
  Layers layers(b, seed);
  const std::int64_t window = window_of(options);
  const Var x = b.input("diff", ElementType::f32, {batch, 1, window, window});
  const Var code = pattern_encoder(layers, x, {32, 64, 128});
  const Var amplitude = object_decoder(layers, code, "amplitude", {128, 64, 64});
  const Var phase = object_decoder(layers, code, "phase", {128, 64, 64});
  b.set_name("amplitude");
  b.output("amp", op::sigmoid(amplitude));
  b.set_name({});
  b.output("phase", as_phase(b, phase));
  return graph;
}

graph::Graph build_ptychonn_128(std::int64_t batch, const Options& options, std::uint64_t seed) {
  graph::Graph graph("ptychonn-128");
  Builder b(graph);
  Layers layers(b, seed, FirstWeights::he);
  const std::int64_t window = window_of(options);
  const Var x = b.input("diff", ElementType::f32, {batch, 1, window, window});
  const Var code = pattern_encoder(layers, x, {16, 32, 64, 128});
  b.output("phase", as_phase(b, object_decoder(layers, code, "phase", {128, 64, 32, 16})));
  return graph;
}

PortSpec pattern_port(std::int64_t window) {
  return {"diff",
          ElementType::f32,
          {1, window, window},
          "",
          "photons of each detector pixel, by default log(1 + photons)"};
}
PortSpec amplitude_port(const char* name, std::int64_t window) {
  return {name, ElementType::f32, {1, window, window}, "", "amplitude of the object under the probe"};
}
PortSpec phase_port(const char* name, std::int64_t window) {
  return {name, ElementType::f32, {1, window, window}, "rad", "phase of the object under the probe"};
}
transform::LossTerm l1(const char* output, const char* target) {
  return {.kind = transform::LossKind::l1, .output = output, .target = target};
}

const OptionSpec counts_option = {"counts", "log", "what is read: log of 1 + photons, or plain photons"};

// Six epochs up, six down, again and again (both papers).
Schedule halving_triangles(double lowest) {
  return {.kind = Schedule::Kind::triangular2, .final_share = lowest, .period = 6};
}

}  // namespace

Workload ptychonn_64() {
  return {
      .name = "ptychonn-64",
      .summary = "amplitude and phase of a sample from 64x64 ptychographic diffraction patterns",
      .options = {{"window", "64", "pixels per side, a multiple of 16"}, counts_option},
      .build = build_ptychonn_64,
      .parameters = 1247074,
      .flops = 809291776,
      .inputs = {pattern_port(64)},
      .outputs = {amplitude_port("amp", 64), phase_port("phase", 64)},
      .targets = {amplitude_port("amp_target", 64), phase_port("phase_target", 64)},
      .training = {.batch = 64,
                   .epochs = 60,
                   .loss = {{l1("amp", "amp_target"), l1("phase", "phase_target")}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .published = Recipe{.batch = 64,
                          .epochs = 60,
                          .loss = {{l1("amp", "amp_target"), l1("phase", "phase_target")}},
                          .optimizer = {.kind = transform::OptimizerKind::adam},
                          .learning_rate = 1e-3,
                          .schedule = halving_triangles(0.1),
                          .model_options = {"counts=plain"},
                          .source = "M. Cherukara et al., Appl. Phys. Lett. 117, 044103 (2020)"},
      .by_default = RecipeName::quick,
      .open = open_ptychonn_64,
      .metrics = {{"phase_mae", "rad"}, {"window_phase_mae", "rad"}, {"amplitude_mae", ""}},
      .target = std::nullopt,
  };
}

Workload ptychonn_128() {
  return {
      .name = "ptychonn-128",
      .summary = "phase of a sample from 128x128 patterns, small enough for the beamline",
      .options = {{"window", "128", "pixels per side, a multiple of 16"},
                  {"points", "1280", "of the generated scan: few see little of a sample to learn from"},
                  counts_option},
      .build = build_ptychonn_128,
      .parameters = 733921,
      .flops = 637255680,
      .inputs = {pattern_port(128)},
      .outputs = {phase_port("phase", 128)},
      .targets = {phase_port("phase_target", 128)},
      .training = {.batch = 64,
                   .epochs = 50,
                   .loss = {{l1("phase", "phase_target")}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 5e-4,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .published = Recipe{.batch = 64,
                          .epochs = 50,
                          .loss = {{l1("phase", "phase_target")}},
                          .optimizer = {.kind = transform::OptimizerKind::adam},
                          .learning_rate = 5e-4,
                          .schedule = halving_triangles(0.2),
                          .model_options = {"counts=plain"},
                          .source = "A. Babu et al., Nat. Commun. 14, 7059 (2023)"},
      .by_default = RecipeName::quick,
      .open = open_ptychonn_128,
      .metrics = {{"phase_mae", "rad"}, {"window_phase_mae", "rad"}},
      .target = std::nullopt,
  };
}

}  // namespace superstep::workload
