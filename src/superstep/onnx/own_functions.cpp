#include "superstep/onnx/own_functions.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

#include "superstep/op/core/definition.h"

namespace superstep::onnx {
namespace {

// Field numbers of onnx.proto (ONNX 1.17, Apache-2.0 project; the numbers are the format).
namespace function_field {
constexpr int name = 1, input = 4, output = 5, attribute = 6, node = 7, opset_import = 9, domain = 10;
}
namespace node_field {
constexpr int input = 1, output = 2, name = 3, op_type = 4, attribute = 5;
}
namespace attribute_field {
constexpr int name = 1, integer = 3, integers = 8, type = 20, reference = 21;
}
constexpr int type_integer = 2, type_integers = 7;

using Names = std::initializer_list<std::string_view>;

class FunctionWriter {
 public:
  FunctionWriter(std::string_view name, Names inputs, Names outputs, Names attributes, int opset) {
    function_.text(function_field::name, name);
    for (std::string_view input : inputs) function_.text(function_field::input, input);
    for (std::string_view output : outputs) function_.text(function_field::output, output);
    for (std::string_view attribute : attributes) function_.text(function_field::attribute, attribute);
    Message import;
    import.text(1, "").integer(2, opset);
    function_.message(function_field::opset_import, import);
    function_.text(function_field::domain, own_domain);
  }

  void node(std::string_view op, Names inputs, std::string_view output,
            std::optional<Message> attribute = {}) {
    Message node;
    for (std::string_view input : inputs) node.text(node_field::input, input);
    node.text(node_field::output, output).text(node_field::name, output).text(node_field::op_type, op);
    if (attribute) node.message(node_field::attribute, *attribute);
    function_.message(function_field::node, node);
  }

  // An attribute whose value is that of one of the function's.
  static Message reference(std::string_view name, std::string_view of) {
    Message attribute;
    attribute.text(attribute_field::name, name).integer(attribute_field::type, type_integer);
    attribute.text(attribute_field::reference, of);
    return attribute;
  }
  static Message integer(std::string_view name, std::int64_t value) {
    Message attribute;
    attribute.text(attribute_field::name, name).integer(attribute_field::integer, value);
    attribute.integer(attribute_field::type, type_integer);
    return attribute;
  }
  static Message integers(std::string_view name, std::initializer_list<std::int64_t> values) {
    Message attribute;
    attribute.text(attribute_field::name, name);
    for (std::int64_t value : values) attribute.integer(attribute_field::integers, value);
    attribute.integer(attribute_field::type, type_integers);
    return attribute;
  }

  Message take() { return std::move(function_); }

 private:
  Message function_;
};

// Boxes that NonMaxSuppression keeps, as many as there is room for, zeros behind them, and their number.
Message kept_boxes(int opset) {
  using F = FunctionWriter;
  F f("KeptBoxes", {"boxes", "scores", "limit", "overlap", "score"}, {"chosen", "found"},
      {"bound", "center_point_box"}, opset);
  f.node("NonMaxSuppression", {"boxes", "scores", "limit", "overlap", "score"}, "kept",
         F::reference("center_point_box", "center_point_box"));
  f.node("Shape", {"kept"}, "extents");
  f.node("Constant", {}, "first", F::integer("value_int", 0));
  f.node("Gather", {"extents", "first"}, "found");
  f.node("Constant", {}, "begin", F::integers("value_ints", {0}));
  f.node("Constant", {}, "width", F::integers("value_ints", {3}));
  f.node("Constant", {}, "room", F::reference("value_int", "bound"));
  f.node("Unsqueeze", {"room", "begin"}, "end");
  f.node("Concat", {"end", "width"}, "spare", F::integer("axis", 0));
  f.node("Expand", {"first", "spare"}, "zeros");
  f.node("Concat", {"kept", "zeros"}, "all", F::integer("axis", 0));
  f.node("Slice", {"all", "begin", "end", "begin"}, "chosen");
  return f.take();
}

struct OwnFunction {
  std::string_view op, name;
  Message (*write)(int opset);
};
constexpr OwnFunction table[] = {{"superstep.KeptBoxes", "KeptBoxes", kept_boxes}};

}  // namespace

std::string_view own_function(std::string_view op) {
  for (const OwnFunction& function : table)
    if (function.op == op) return function.name;
  return {};
}

std::vector<Message> own_functions(const graph::Graph& graph, int opset) {
  std::vector<Message> functions;
  for (const OwnFunction& function : table)
    if (std::ranges::any_of(graph.nodes(), [&](const graph::Node& node) { return node.op == function.op; }))
      functions.push_back(function.write(opset));
  return functions;
}

}  // namespace superstep::onnx
