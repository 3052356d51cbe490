// Opening and describing files.
#include <unistd.h>

#include <fstream>

#include "superstep/base/file.h"
#include "tests/onnx/support.h"
#include "tests/scratch.h"

namespace superstep::onnx {
namespace {

using testing::contains;
using testing::error_of;
using testing::f32;
using testing::graph;
using testing::GraphParts;
using testing::model_bytes;
using testing::node;
using testing::parse;
using testing::port;

GraphParts relu_parts() {
  return {.nodes = {node("Relu", {"x"}, {"y"})},
          .inputs = {port("x", f32, {"batch", "3", "?"})},
          .outputs = {port("y", f32, {"batch", "3", "?"})}};
}

TEST(Model, SaysWhatTheFileSays) {
  Message file;
  file.integer(1, 8).text(2, "maker").text(3, "1.2").text(6, "what it does");
  file.message(7, graph(relu_parts(), "the graph")).message(8, testing::opset_import(17));
  file.message(8, testing::opset_import(3, "ai.onnx.ml"));
  file.message(14, Message().text(1, "author").text(2, "somebody"));
  const Model model = parse(file.bytes());
  EXPECT_EQ(model.ir_version(), 8);
  EXPECT_EQ(model.producer(), "maker 1.2");
  EXPECT_EQ(model.doc(), "what it does");
  EXPECT_EQ(model.graph_name(), "the graph");
  EXPECT_EQ(model.opsets().at(""), 17);
  EXPECT_EQ(model.opsets().at("ai.onnx.ml"), 3);
  EXPECT_EQ(model.metadata().at("author"), "somebody");
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(to_string(model.inputs()[0]), "f32[batch,3,?]");
  EXPECT_EQ(model.inputs()[0].extents[0].symbol, "batch");
  EXPECT_EQ(model.outputs()[0].name, "y");
}

TEST(Model, InputsWithAnInitializerAreNoInputs) {
  GraphParts parts = relu_parts();
  parts.nodes = {node("Add", {"x", "w"}, {"y"})};
  parts.inputs.push_back(port("w", f32, {"1"}));
  parts.initializers = {testing::floats("w", {1}, {2})};
  const Model model = parse(parts);
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.import().inputs().size(), 1u);
}

TEST(Model, TypesWithoutAPlaceAreNamed) {
  const auto info = [](const Message& type) { return Message().text(1, "x").message(2, type); };
  const Message tensor = Message().message(1, Message().integer(1, 1));
  const Message sequence = Message().message(4, Message().message(1, tensor));
  const Message optional = Message().message(9, Message().message(1, sequence));
  const auto named = [&](const Message& type) {
    GraphParts parts = relu_parts();
    parts.inputs = {info(type)};
    return to_string(parse(parts).inputs()[0]);
  };
  EXPECT_EQ(named(sequence), "sequence of f32");
  EXPECT_EQ(named(optional), "optional sequence of f32");
  EXPECT_EQ(named(Message().message(1, Message().integer(1, 8))), "string");
  EXPECT_EQ(named(tensor), "f32[...]");
  EXPECT_EQ(named(Message()), "nothing");
}

// y = x + c, where c is an input that has an initialiser.
TEST(Model, AnInputWithAnInitialiserIsThatUnlessItIsGiven) {
  const GraphParts parts{.nodes = {node("Add", {"x", "c"}, {"y"})},
                         .inputs = {port("x", f32, {"2"}), port("c", f32, {"2"})},
                         .outputs = {port("y", f32, {"2"})},
                         .initializers = {testing::floats("c", {2}, {10, 20})}};
  const std::string bytes = model_bytes(graph(parts));
  const std::span<const std::byte> span{reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
  const Model model = Model::parse(span);
  ASSERT_EQ(model.inputs().size(), 1U);
  ASSERT_EQ(model.defaults().size(), 1U);
  EXPECT_EQ(model.defaults()[0].name, "c");
  const Tensor x = testing::values({1, 2}), c = testing::values({100, 200});
  EXPECT_EQ(testing::elements(testing::run(model, {x})[0]), (std::vector<double>{11, 22}));
  const Model given = Model::parse(span, "model", {"c"});
  ASSERT_EQ(given.inputs().size(), 2U);
  EXPECT_TRUE(given.defaults().empty());
  EXPECT_EQ(testing::elements(testing::run(given, {x, c})[0]), (std::vector<double>{101, 202}));
  EXPECT_TRUE(contains(error_of([&] { Model::parse(span, "model", {"d"}); }), "the model has no such input"));
}

TEST(Model, NestedTypesEnd) {
  Message type = Message().message(1, Message().integer(1, 1));
  for (int depth = 0; depth < 2000; ++depth) type = Message().message(4, Message().message(1, type));
  GraphParts parts = relu_parts();
  parts.inputs = {Message().text(1, "x").message(2, type)};
  EXPECT_TRUE(contains(to_string(parse(parts).inputs()[0]), "..."));
}

std::string refusal(const std::string& bytes) {
  return error_of([&] { parse(bytes); });
}

TEST(Model, RefusesWhatIsNoModel) {
  EXPECT_TRUE(contains(refusal(""), "test.onnx: has no graph"));
  EXPECT_TRUE(contains(refusal("hello, this is text"), "not an ONNX file"));
  EXPECT_TRUE(contains(refusal("\x89HDF\r\n\x1a\n"), "not an ONNX file"));
  const std::string whole = model_bytes(graph(relu_parts()));
  EXPECT_TRUE(contains(refusal(whole.substr(0, whole.size() / 2)), "claims"));
}

TEST(Model, RefusesVersionsItDoesNotKnow) {
  EXPECT_TRUE(contains(refusal(model_bytes(graph(relu_parts()), newest_opset + 1)),
                       "operator set 29 is outside those that are read, 1 to 28"));
  Message newer;
  newer.integer(1, newest_ir_version + 1).message(7, graph(relu_parts()));
  EXPECT_TRUE(contains(refusal(newer.bytes()), "IR version 15 is newer than the newest that is read, 14"));
}

TEST(Model, RefusesPartsWithoutNames) {
  GraphParts parts = relu_parts();
  parts.initializers = {testing::floats("", {1}, {2})};
  EXPECT_TRUE(contains(refusal(model_bytes(graph(parts))), "a TensorProto has no name"));
  parts = relu_parts();
  parts.outputs.push_back(port("", f32, {}));
  EXPECT_TRUE(contains(refusal(model_bytes(graph(parts))), "a ValueInfoProto has no name"));
}

TEST(Model, OpenSaysWhichFile) {
  const ScratchFolder scratch;
  EXPECT_TRUE(
      contains(error_of([&] { Model::open(scratch / "absent.onnx"); }), "absent.onnx: there is no such"));
  EXPECT_TRUE(contains(error_of([&] { Model::open(scratch / ""); }), "this is a folder, not a file"));
  write_file_atomically(scratch / "broken.onnx", "bad");
  EXPECT_TRUE(contains(error_of([&] { Model::open(scratch / "broken.onnx"); }), "broken.onnx: "));
}

// Bytes of memory that are ours alone: pages of a mapped file that were read count too.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// A model with one initialiser of `size` bytes, at the end of the file, where the disk has nothing but a
// hole.
void write_large(const std::filesystem::path& path, std::uint64_t size) {
  const auto extent = static_cast<std::int64_t>(size / 4);
  const std::string head = Message().integer(1, extent).integer(2, 1).text(8, "w").bytes();
  const auto with_length = [](int field, std::uint64_t length, std::string inner) {
    std::string bytes = Message().integer(1, static_cast<std::int64_t>(length)).bytes().substr(1);
    return std::string(1, static_cast<char>(field << 3 | 2)) + bytes + std::move(inner);
  };
  const std::string data = with_length(9, size, "");
  const std::string tensor = with_length(5, head.size() + data.size() + size, head + data);
  GraphParts parts = relu_parts();
  parts.nodes = {node("ReduceSum", {"w"}, {"total"}), node("Add", {"x", "total"}, {"y"})};
  const std::string start = graph(parts).bytes();
  const std::string front = Message().integer(1, 8).message(8, testing::opset_import(17)).bytes();
  write_file_atomically(path, front + with_length(7, start.size() + tensor.size() + size, start + tensor));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + size);
}

TEST(Model, AFileOfGigabytesIsOpenedWithoutReadingItsTensors) {
  const ScratchFolder scratch;
  constexpr std::uint64_t size = std::uint64_t{5} << 29;  // 2.5 GiB: beyond what protobuf's own reader takes
  write_large(scratch / "large.onnx", size);
  const std::size_t before = resident_bytes();
  const Model model = Model::open(scratch / "large.onnx");
  const Findings findings = model.check();
  EXPECT_TRUE(findings.importable());
  EXPECT_EQ(findings.parameter_bytes, static_cast<std::int64_t>(size));
  EXPECT_LT(resident_bytes(), before + (std::size_t{16} << 20));
}

}  // namespace
}  // namespace superstep::onnx
