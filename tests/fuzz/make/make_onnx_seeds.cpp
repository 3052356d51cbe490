// Small ONNX files, each with another part of the format, for the fuzzer to start from.
#include <cstdio>

#include "superstep/base/file.h"
#include "tests/onnx/proto_builder.h"

namespace superstep::onnx::testing {
namespace {

std::string dense() {
  return model_bytes(graph(
      {.nodes = {node("Gemm", {"x", "w", "b"}, {"h"}, {attribute("transB", 1), attribute("alpha", 0.5f)}),
                 node("Softmax", {"h"}, {"y"}, {attribute("axis", -1)})},
       .inputs = {port("x", f32, {"batch", "2"})},
       .outputs = {port("y", f32, {"batch", "3"})},
       .initializers = {floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}), floats("b", {3}, {1, 2, 3})}}));
}

std::string picture() {
  const std::vector<std::int64_t> kernel{3, 3}, pads{1, 1, 1, 1}, strides{2, 2};
  return model_bytes(
      graph({.nodes = {node("Conv", {"x", "w"}, {"c"},
                            {attribute("kernel_shape", kernel), attribute("pads", pads)}),
                       node("BatchNormalization", {"c", "s", "s", "s", "s"}, {"n"}),
                       node("MaxPool", {"n"}, {"p"},
                            {attribute("kernel_shape", kernel), attribute("strides", strides)}),
                       node("GlobalAveragePool", {"p"}, {"y"})},
             .inputs = {port("x", f32, {"1", "1", "6", "6"})},
             .outputs = {port("y", f32, {})},
             .initializers = {floats("w", {2, 1, 3, 3}, std::vector<float>(18, 0.5f)),
                              floats("s", {2}, {1, 2})}}),
      9);
}

std::string shapes() {
  return model_bytes(
      graph({.nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "k"}, {"n"}),
                       node("Unsqueeze", {"n"}, {"n1"}, {attribute("axes", std::vector<std::int64_t>{0})}),
                       node("Concat", {"n1", "m"}, {"t"}, {attribute("axis", 0)}),
                       node("Reshape", {"x", "t"}, {"r"}), node("Slice", {"r", "k1", "m1"}, {"y"}),
                       node("Range", {"k", "n", "n"}, {"g"}), node("ConstantOfShape", {"n1"}, {"c"}),
                       node("Cast", {"c"}, {"i"}, {attribute("to", 7)})},
             .inputs = {port("x", f32, {"a", "2", "3"})},
             .outputs = {port("y", f32, {}), port("g", i64, {}), port("i", i64, {})},
             .initializers = {integers("k", {}, {0}), integers("m", {1}, {-1}), integers("k1", {1}, {0}),
                              integers("m1", {1}, {1})}}),
      11);
}

std::string branches() {
  const Message a = graph({.nodes = {node("Neg", {"x"}, {"a"})}, .outputs = {port("a", f32, {})}});
  const Message b = graph({.nodes = {node("Exp", {"x"}, {"b"})}, .outputs = {port("b", f32, {})}});
  return model_bytes(
      graph({.nodes = {node("If", {"c"}, {"y"},
                            {graph_attribute("then_branch", a), graph_attribute("else_branch", b)})},
             .inputs = {port("x", f32, {"2"}), port("c", boolean_type, {})},
             .outputs = {port("y", f32, {})}}));
}

std::string loops() {
  const Message body =
      graph({.nodes = {node("Add", {"v", "x"}, {"w"}), node("Less", {"w", "x"}, {"d"}),
                       node("Identity", {"i"}, {"o"})},
             .inputs = {port("i", i64, {}), port("c", boolean_type, {}), port("v", f32, {})},
             .outputs = {port("c", boolean_type, {}), port("w", f32, {}), port("o", i64, {})}});
  const Message step = graph({.nodes = {node("Mul", {"s", "e"}, {"t"})},
                              .inputs = {port("s", f32, {}), port("e", f32, {})},
                              .outputs = {port("t", f32, {}), port("t", f32, {})}});
  return model_bytes(
      graph({.nodes = {node("Loop", {"m", "", "x"}, {"l", "all"}, {graph_attribute("body", body)}),
                       node("Scan", {"l", "q"}, {"y", "z"},
                            {graph_attribute("body", step), attribute("num_scan_inputs", 1)})},
             .inputs = {port("x", f32, {"2"}), port("q", f32, {"3", "2"})},
             .outputs = {port("y", f32, {}), port("z", f32, {}), port("all", i64, {})},
             .initializers = {integers("m", {}, {3})}}));
}

std::string functions() {
  Message function;
  function.text(1, "F").text(4, "v").text(5, "r").text(6, "k");
  function.message(7, node("Constant", {}, {"c"}, {attribute_reference("value_float", "k", 1)}));
  function.message(7, node("Pow", {"v", "c"}, {"r"}));
  function.message(9, opset_import(17)).text(10, "d");
  return model_bytes(graph({.nodes = {node("F", {"x"}, {"h"}, {attribute("k", 2.0f)}, "d"),
                                      node("F", {"h"}, {"y"}, {attribute("k", 3.0f)}, "d")},
                            .inputs = {port("x", f32, {"2"})},
                            .outputs = {port("y", f32, {})}}),
                     17, {function}, {"d"});
}

std::string sequences() {
  return model_bytes(
      graph({.nodes = {node("SplitToSequence", {"x"}, {"s"}), node("SequenceAt", {"s", "k"}, {"a"}),
                       node("SequenceInsert", {"s", "a"}, {"t"}),
                       node("ConcatFromSequence", {"t"}, {"y"}, {attribute("axis", 0)})},
             .inputs = {port("x", f32, {"2", "2"})},
             .outputs = {port("y", f32, {})},
             .initializers = {integers("k", {}, {-1})}}));
}

std::string old_forms() {
  const std::vector<std::int64_t> axes{0};
  const std::vector<float> scales{1, 2};
  return model_bytes(
      graph({.nodes = {node("Add", {"x", "b"}, {"a"}), node("Clip", {"a"}, {"c"}, {attribute("min", 0.0f)}),
                       node("ReduceSum", {"c"}, {"r"}, {attribute("axes", axes)}),
                       node("Softmax", {"r"}, {"s"}),
                       node("Upsample", {"s"}, {"y"}, {attribute("scales", scales)})},
             .inputs = {port("x", f32, {"2", "3"})},
             .outputs = {port("y", f32, {})},
             .initializers = {floats("b", {3}, {1, 2, 3})}}),
      7);
}

std::string small_types() {
  Message sparse;
  sparse.message(1, floats("z", {1}, {5})).message(2, integers("", {1}, {1})).integer(3, 4);
  Message graph_message =
      graph({.nodes = {node("DequantizeLinear", {"q", "s"}, {"d"}), node("Add", {"d", "z"}, {"y"})},
             .outputs = {port("y", f32, {})},
             .initializers = {tensor("q", 22, {4}, "\x8f\x07"), floats("s", {}, {0.5f})}});
  graph_message.message(15, sparse);
  return model_bytes(graph_message, 21);
}

}  // namespace
}  // namespace superstep::onnx::testing

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]), 2;
  using namespace superstep::onnx::testing;
  const std::pair<const char*, std::string (*)()> seeds[] = {
      {"dense", dense},         {"picture", picture},     {"shapes", shapes},
      {"branches", branches},   {"loops", loops},         {"functions", functions},
      {"sequences", sequences}, {"old_forms", old_forms}, {"small_types", small_types}};
  superstep::make_folder(arguments[1]);
  for (const auto& [name, make] : seeds)
    superstep::write_file_atomically(std::filesystem::path(arguments[1]) / name, make());
}
