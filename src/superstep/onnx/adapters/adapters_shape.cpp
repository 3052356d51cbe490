// Operators on shapes and places: constants, attributes that became inputs, old names.
#include <fmt/format.h>

#include "superstep/onnx/adapters/adapters.h"
#include "superstep/onnx/bounded/selection.h"
#include "superstep/onnx/wire/tensor_data.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

Tensor reals(const std::vector<double>& values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, {values.begin(), values.end()});
}

Tensor constant_tensor(const Attributes& attributes) {
  for (std::string_view name : {"value", "sparse_value"})
    if (attributes.has(name)) return attributes.tensor(name);
  if (attributes.has("value_float"))
    return Tensor::scalar<float>(static_cast<float>(attributes.number("value_float")));
  if (attributes.has("value_int")) return Tensor::scalar<std::int64_t>(attributes.integer("value_int"));
  if (const graph::Attribute* list = attributes.find("value_floats"))
    return std::holds_alternative<std::vector<double>>(*list) ? reals(std::get<std::vector<double>>(*list))
                                                              : Tensor(ElementType::f32, {0});
  if (attributes.has("value_ints")) {
    const std::vector<std::int64_t> values = attributes.integers("value_ints");
    return Tensor::from<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
  }
  if (attributes.has("value_string") || attributes.has("value_strings"))
    refuse_node("holds strings, and a graph holds numbers alone");
  throw Error(ErrorCode::bad_graph, "holds no value");
}

std::vector<Var> constant(NodeImport& node) {
  return {node.emitter.constant(constant_tensor(node.attributes))};
}

// axes: an attribute before operator set 13.
std::vector<Var> axes_attribute(NodeImport& node) {
  node.inputs.resize(1);
  if (node.attributes.has("axes")) node.set_input(1, node.emitter.integers(node.take_integers("axes")));
  return node.pass();
}

std::vector<Var> slice_attributes(NodeImport& node) {
  node.inputs.resize(1);
  node.set_input(1, node.emitter.integers(node.take_integers("starts")));
  node.set_input(2, node.emitter.integers(node.take_integers("ends")));
  if (node.attributes.has("axes")) node.set_input(3, node.emitter.integers(node.take_integers("axes")));
  return node.pass();
}

// Without lengths the parts are equal, or nearly: operator set 18 says how many there are by an attribute.
std::vector<Var> split(NodeImport& node) {
  if (node.attributes.has("split")) {
    node.inputs.resize(1);
    node.set_input(1, node.emitter.integers(node.take_integers("split")));
  }
  if (node.has(1)) node.attributes.erase("num_outputs");
  return node.pass();
}

std::vector<Var> pad_attributes(NodeImport& node) {
  node.inputs.resize(1);
  const double value = node.take_number("value", 0);
  node.set_input(1, node.emitter.integers(node.take_integers("pads")));
  if (node.attributes.text("mode", "constant") == "constant")
    node.set_input(2, node.emitter.scalar(node.input(0).element(), value));
  return node.pass();
}

std::vector<Var> topk_attribute(NodeImport& node) {
  node.inputs.resize(1);
  node.set_input(1, node.emitter.integers({node.take_integer("k", 0)}));
  return node.pass();
}

std::vector<Var> scatter(NodeImport& node) { return node.pass("ScatterElements"); }

std::vector<Var> upsample_attributes(NodeImport& node) {
  const graph::Attribute* scales = node.attributes.find("scales");
  if (!scales || !std::holds_alternative<std::vector<double>>(*scales))
    throw Error(ErrorCode::bad_graph, "attribute 'scales' is missing");
  const Tensor values = reals(std::get<std::vector<double>>(*scales));
  node.attributes.erase("scales");
  node.set_input(1, node.emitter.constant(values));
  return node.pass();
}

// The first Upsample scaled the last two axes of a picture.
std::vector<Var> upsample_picture(NodeImport& node) {
  const double height = node.take_number("height_scale", 1), width = node.take_number("width_scale", 1);
  if (node.attributes.text("mode", "nearest") == "bilinear")
    node.attributes.set("mode", std::string("linear"));
  node.set_input(1, node.emitter.constant(reals({1, 1, height, width})));
  return node.pass();
}

// Operator sets before 6 repeated along one axis.
std::vector<Var> tile_axis(NodeImport& node) {
  const Var x = node.input(0);
  const std::int64_t tiles = node.known_integer(1, "tiles"), axis = node.known_integer(2, "axis");
  std::vector<std::int64_t> repeats(static_cast<std::size_t>(x.shape().rank()), 1);
  const int at = op::checked_axis(axis, x.shape().rank());
  repeats[static_cast<std::size_t>(at)] = tiles;
  node.inputs = {x, node.emitter.integers(repeats)};
  return node.pass();
}

std::vector<Var> concat_default_axis(NodeImport& node) {
  node.attributes.set("axis", node.attributes.integer("axis", 1));
  return node.pass();
}

std::vector<Var> pad_paddings(NodeImport& node) {
  if (const graph::Attribute* paddings = node.attributes.find("paddings"))
    node.attributes.set("pads", graph::Attribute(*paddings));
  node.attributes.erase("paddings");
  return pad_attributes(node);
}

// The first Resize had Upsample's meaning: places are divided by the scale, the nearest is the one below.
std::vector<Var> resize_scales(NodeImport& node) {
  const Var x = node.input(0), scales = node.input(1);
  node.inputs = {x, Var(), scales};
  node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attributes.set("nearest_mode", std::string("floor"));
  return node.pass();
}

// Before operator set 13 an input that was left out stood as an empty tensor.
std::vector<Var> resize(NodeImport& node) {
  const bool crops =
      node.attributes.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    if (node.has(i) && ((i == 1 && !crops) || node.input(i).shape().element_count() == 0))
      node.inputs[i] = Var();
  return node.pass();
}

// Operator set 8 measured the output by the shape alone; both forms take the shape as an input since 5.
std::vector<Var> reshape(NodeImport& node) {
  if (node.attributes.has("shape") && !node.has(1))
    node.set_input(1, node.emitter.integers(node.take_integers("shape")));
  return node.pass();
}

std::vector<Var> constant_of_shape(NodeImport& node) {
  if (node.emitter.follows_bounds(node.input(0))) return node.pass();
  const Tensor& shape = node.known(0, "input");
  node.set_input(0, node.emitter.constant(shape));
  return node.pass();
}

constexpr std::int64_t oldest = 1;

constexpr Adapter table[] = {
    {"Constant", oldest, any_later, constant},
    {"ConstantOfShape", oldest, any_later, constant_of_shape},
    {"Squeeze", oldest, 12, axes_attribute},
    {"Unsqueeze", oldest, 12, axes_attribute},
    {"Slice", oldest, 9, slice_attributes},
    {"Split", oldest, any_later, split},
    {"Pad", oldest, 1, pad_paddings},
    {"Pad", 2, 10, pad_attributes},
    {"Concat", oldest, 3, concat_default_axis},
    {"Tile", oldest, 5, tile_axis},
    {"TopK", oldest, 9, topk_attribute},
    {"TopK", 10, any_later, bounded_top_k},
    {"NonZero", oldest, any_later, bounded_nonzero},
    {"Compress", oldest, any_later, bounded_compress},
    {"NonMaxSuppression", oldest, any_later, bounded_boxes},
    {"Scatter", oldest, any_later, scatter},
    {"Upsample", oldest, 6, upsample_picture},
    {"Upsample", 7, 8, upsample_attributes},
    {"Resize", oldest, 10, resize_scales},
    {"Resize", 11, any_later, resize},
    {"Reshape", oldest, any_later, reshape},
};

}  // namespace

std::span<const Adapter> shape_adapters() { return table; }

}  // namespace superstep::onnx
