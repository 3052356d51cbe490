#include "superstep/onnx/operator_sets.h"

#include <algorithm>

#include "superstep/op/core/definition.h"

namespace superstep::onnx {
namespace {

using graph::Attribute;
using graph::Graph;
using graph::Node;

// An attribute that an operator got after set 13, with what older sets do (an integer, or a word); nothing
// where every value of it needs the newer set. From the operators' history in ONNX 1.23.
struct Addition {
  std::string_view op, attribute;
  int since;
  std::optional<std::int64_t> usual = {};
  std::string_view usual_word = {};
};
constexpr Addition additions[] = {
    {"Attention", "left_window_size", 25, -1},
    {"Attention", "right_window_size", 25, -1},
    {"BatchNormalization", "training_mode", 14, 0},
    {"Cast", "round_mode", 24, {}, "up"},
    {"Cast", "saturate", 19, 1},
    {"CastLike", "round_mode", 24, {}, "up"},
    {"CastLike", "saturate", 19, 1},
    {"DequantizeLinear", "block_size", 21, 0},
    {"DequantizeLinear", "output_dtype", 23, 0},
    {"LpPool", "ceil_mode", 18, 0},
    {"QuantizeLinear", "block_size", 21, 0},
    {"QuantizeLinear", "output_dtype", 21, 0},
    {"QuantizeLinear", "precision", 23, 0},
    {"QuantizeLinear", "saturate", 19, 1},
    {"Range", "stash_type", 27, 1},
    {"ReduceL1", "noop_with_empty_axes", 18, 0},
    {"ReduceL2", "noop_with_empty_axes", 18, 0},
    {"ReduceLogSum", "noop_with_empty_axes", 18, 0},
    {"ReduceLogSumExp", "noop_with_empty_axes", 18, 0},
    {"ReduceMax", "noop_with_empty_axes", 18, 0},
    {"ReduceMean", "noop_with_empty_axes", 18, 0},
    {"ReduceMin", "noop_with_empty_axes", 18, 0},
    {"ReduceProd", "noop_with_empty_axes", 18, 0},
    {"ReduceSumSquare", "noop_with_empty_axes", 18, 0},
    {"Reshape", "allowzero", 14, 0},
    {"RoiAlign", "coordinate_transformation_mode", 16},
    {"ScatterElements", "reduction", 16, {}, "none"},
    {"ScatterND", "reduction", 16, {}, "none"},
    {"Shape", "end", 15},
    {"Shape", "start", 15, 0},
    {"SpaceToDepth", "mode", 28, {}, "DCR"},
    {"Split", "num_outputs", 18},
};

// The first set in which an operator takes bf16, where that is not 22, in which most do.
struct Bf16Since {
  std::string_view op;
  int since;
};
constexpr int most_take_bf16 = 22;
constexpr Bf16Since bf16_later[] = {
    {"Celu", 28},  {"Compress", 28},        {"Einsum", 28}, {"OneHot", 28},
    {"Range", 27}, {"ReverseSequence", 28}, {"TopK", 24},   {"Unique", 28},
};

// Operators whose words changed without a change of anything else.
constexpr int grid_sample_words = 20;  // linear and cubic, for bilinear and bicubic

const Addition* addition_of(std::string_view op, std::string_view attribute) {
  const auto found = std::ranges::find_if(
      additions, [&](const Addition& row) { return row.op == op && row.attribute == attribute; });
  return found == std::end(additions) ? nullptr : &*found;
}

bool says_nothing_new(const Addition& row, const Attribute& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return row.usual == *number;
  const auto* word = std::get_if<std::string>(&value);
  return word && !row.usual_word.empty() && *word == row.usual_word;
}

bool all_are(const Attribute& value, std::int64_t number) {
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value);
  return numbers && std::ranges::all_of(*numbers, [&](std::int64_t each) { return each == number; });
}

// Whether a target shape has a zero in it, which means the extent of the input unless the attribute says no.
bool has_zero(const Graph& graph, const Node& node) {
  const graph::Value& shape = graph.value(node.inputs.at(1));
  if (shape.kind != graph::ValueKind::constant) return true;
  for (std::int64_t i = 0; i < shape.data.element_count(); ++i)
    if (shape.data.at(i) == 0) return true;
  return false;
}

// Equal parts need no number before set 18.
bool is_split_evenly(const Graph& graph, const Node& node) {
  if (node.inputs.size() > 1 && node.inputs[1].valid()) return false;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const std::int64_t axis = node.attributes.integer("axis", 0);
  const std::int64_t extent = shape[static_cast<int>(axis < 0 ? axis + shape.rank() : axis)];
  return extent % static_cast<std::int64_t>(node.outputs.size()) == 0;
}

// Since when a file may have the attribute with this value; an older set that does what it says does without.
int opset_of_attribute(const Graph& graph, const Node& node, std::string_view name, const Attribute& value) {
  if (node.op == "Reshape" && name == "allowzero" && !has_zero(graph, node)) return oldest_written_opset;
  if (node.op == "Split" && name == "num_outputs" && is_split_evenly(graph, node))
    return oldest_written_opset;
  if (name == "dilations" && (node.op == "AveragePool" || node.op == "LpPool"))
    return all_are(value, 1) ? oldest_written_opset : node.op == "LpPool" ? 18 : 19;
  const Addition* row = addition_of(node.op, name);
  return !row || says_nothing_new(*row, value) ? oldest_written_opset : row->since;
}

int opset_of_types(const Graph& graph, const Node& node, const op::Definition& definition) {
  int opset = oldest_written_opset;
  for (graph::ValueId input : node.inputs)
    if (input.valid() && graph.type(input).element == ElementType::bf16) {
      const auto later = std::ranges::find(bf16_later, node.op, &Bf16Since::op);
      opset = std::max(opset, later == std::end(bf16_later) ? most_take_bf16 : later->since);
    }
  const int same_since = definition.traits.f32_since;
  const bool usual = node.inputs.empty() || !node.inputs[0].valid() ||
                     graph.type(node.inputs[0]).element == ElementType::f32 ||
                     graph.type(node.inputs[0]).element == ElementType::f64;
  return std::max(opset, same_since > 0 && usual ? same_since : definition.since_opset);
}

}  // namespace

bool has_axes_attribute(std::string_view op, int opset) { return opset < op::traits_of(op).axes_input_since; }

int opset_of(const Graph& graph, const Node& node) {
  if (!op::traits_of(node.op).domain.empty()) return oldest_written_opset;
  const bool reduces = has_axes_attribute(node.op, oldest_written_opset);
  int opset = reduces ? oldest_written_opset : opset_of_types(graph, node, op::get(node.op));
  if (node.op == "GridSample") opset = std::max(opset, grid_sample_words);
  if (node.op == "Pad" && node.inputs.size() > 3 && node.inputs[3].valid()) opset = std::max(opset, 18);
  if (node.op == "Pad" && node.attributes.text("mode", "constant") == "wrap") opset = std::max(opset, 19);
  for (const auto& [name, value] : node.attributes)
    opset = std::max(opset, opset_of_attribute(graph, node, name, value));
  return opset;
}

std::optional<Attribute> attribute_for(const Graph& graph, const Node& node, std::string_view name,
                                       const Attribute& value, int opset) {
  if (name == "over_parts" || name == "of_whole_batch") return std::nullopt;  // ours, about how a step is run
  const bool pools_plainly =
      name == "dilations" && all_are(value, 1) &&
      ((node.op == "AveragePool" && opset < 19) || (node.op == "LpPool" && opset < 18));
  if (pools_plainly) return std::nullopt;
  const Addition* row = addition_of(node.op, name);
  if (!row || opset >= row->since) return value;
  return opset_of_attribute(graph, node, name, value) <= opset ? std::nullopt : std::optional(value);
}

std::optional<std::int64_t> missing_part_count(const Node& node, int opset) {
  const bool says = node.attributes.has("num_outputs") || (node.inputs.size() > 1 && node.inputs[1].valid());
  if (node.op != "Split" || opset < 18 || says) return std::nullopt;
  return static_cast<std::int64_t>(node.outputs.size());
}

}  // namespace superstep::onnx
