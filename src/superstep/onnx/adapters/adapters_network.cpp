// Layers: products, normalisation, sampling, transforms.
#include "superstep/onnx/adapters/adapters.h"

namespace superstep::onnx {
namespace {

// Broadcasting of C was asked for before operator set 7, and goes without saying since.
std::vector<Var> gemm(NodeImport& node) {
  node.attributes.erase("broadcast");
  return node.pass();
}

// Before operator set 14 more than one output meant training; before 7 an attribute said so. A file may list
// outputs that nobody reads, so what decides is the operator set's own rule. The saved statistics (outputs 3
// and 4), of use to its own gradient alone, are not given.
std::vector<Var> batch_normalization(NodeImport& node) {
  constexpr std::int64_t first_without_is_test = 7;
  const bool is_test = node.take_integer("is_test", 0) != 0;
  if (node.take_integer("spatial", 1) == 0 && node.input(0).shape().rank() > 2)
    refuse_node("attribute spatial = 0 (statistics of every place on its own) is not supported");
  node.attributes.erase("consumed_inputs");
  const bool training =
      node.opset < first_without_is_test ? !is_test && node.output_count() > 1 : node.output_count() > 1;
  if (training) node.attributes.set("training_mode", std::int64_t{1});
  return node.pass();
}

// Operator set 18 had one scale and bias a group; since 21 there is one a channel.
std::vector<Var> group_normalization(NodeImport& node) {
  const std::int64_t groups = node.attributes.integer("num_groups");
  if (node.input(0).shape().rank() < 2 || groups <= 0 || node.input(0).shape()[1] % groups != 0)
    throw Error(ErrorCode::bad_graph, "the channels do not divide into the groups");
  const std::int64_t channels = node.input(0).shape()[1];
  for (std::size_t i : {1u, 2u}) {
    const Var column = node.emitter.reshape(node.input(i), {groups, 1});
    const Var repeated =
        node.emitter.emit1("Expand", {column, node.emitter.integers({groups, channels / groups})});
    node.set_input(i, node.emitter.reshape(repeated, {channels}));
  }
  return node.pass();
}

// The axis was an attribute (default 1) before operator set 20.
std::vector<Var> dft_axis(NodeImport& node) {
  const Var x = node.input(0), length = node.has(1) ? node.input(1) : Var();
  node.inputs = {x, length, node.emitter.constant(Tensor::scalar(node.take_integer("axis", 1)))};
  return node.pass();
}

std::vector<Var> grid_sample_modes(NodeImport& node) {
  const std::string mode = node.attributes.text("mode", "bilinear");
  if (mode == "bilinear") node.attributes.set("mode", std::string("linear"));
  if (mode == "bicubic") node.attributes.set("mode", std::string("cubic"));
  return node.pass();
}

std::vector<Var> roi_align_whole_pixels(NodeImport& node) {
  node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return node.pass();
}

// Recurrent layers said by an attribute whether they give the whole sequence; the output's presence says it.
std::vector<Var> recurrent(NodeImport& node) {
  node.attributes.erase("output_sequence");
  return node.pass();
}

constexpr std::int64_t oldest = 1;

constexpr Adapter table[] = {
    {"Gemm", oldest, 6, gemm},
    {"BatchNormalization", oldest, 13, batch_normalization},
    {"GroupNormalization", oldest, 20, group_normalization},
    {"DFT", oldest, 19, dft_axis},
    {"GridSample", oldest, 19, grid_sample_modes},
    {"RoiAlign", oldest, 15, roi_align_whole_pixels},
    {"RNN", oldest, 6, recurrent},
    {"GRU", oldest, 6, recurrent},
    {"LSTM", oldest, 6, recurrent},
};

}  // namespace

std::span<const Adapter> network_adapters() { return table; }

}  // namespace superstep::onnx
