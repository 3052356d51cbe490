// Archives of torch.export: made here by the published schema, read, evaluated, and refused where they are
// damaged or ask for more than is there. What PyTorch itself writes is in tests/python/test_exported.py.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/zip.h"
#include "superstep/onnx/exported/exported.h"
#include "superstep/onnx/model.h"
#include "superstep/op/core/evaluate.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::onnx {
namespace {

using nlohmann::json;

constexpr int f32 = 7, i64 = 5;  // of schema.py

// An archive under construction: what a test does not say is as torch.export.save writes it.
struct Archive {
  json inputs = json::array(), outputs = json::array(), nodes = json::array(), values = json::object();
  json weights = json::object();
  std::map<std::string, std::string> entries{
      {"archive_format", "pt2"}, {"archive_version", "0"}, {"byteorder", "little"}};
  int major = 8;

  void value(const std::string& name, const std::vector<json>& sizes, int type = f32) {
    json extents = json::array();
    for (const json& size : sizes)
      extents.push_back(
          size.is_string()
              ? json{{"as_expr", {{"expr_str", "Symbol('" + size.get<std::string>() + "', integer=True)"}}}}
              : json{{"as_int", size}});
    values[name] = {{"dtype", type}, {"sizes", extents}};
  }
  void input(const std::string& name, const std::vector<json>& sizes, int type = f32) {
    value(name, sizes, type);
    inputs.push_back({{"user_input", {{"arg", {{"as_tensor", {{"name", name}}}}}}}});
  }
  void weight(const std::string& name, const std::vector<std::int64_t>& extents,
              const std::vector<float>& elements, const std::vector<std::int64_t>& strides) {
    std::vector<json> sizes(extents.begin(), extents.end());
    value("p_" + name, sizes);
    inputs.push_back({{"parameter", {{"arg", {{"name", "p_" + name}}}, {"parameter_name", "net." + name}}}});
    json steps = json::array();
    for (const std::int64_t stride : strides) steps.push_back({{"as_int", stride}});
    weights["net." + name] = {{"path_name", name},
                              {"use_pickle", false},
                              {"tensor_meta",
                               {{"dtype", f32},
                                {"sizes", values["p_" + name]["sizes"]},
                                {"strides", steps},
                                {"storage_offset", {{"as_int", 0}}}}}};
    std::string bytes(elements.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), elements.data(), bytes.size());
    entries["data/weights/" + name] = bytes;
  }
  static json tensor(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }
  void node(const std::string& op, const std::vector<std::pair<std::string, json>>& arguments,
            const std::string& output, const std::vector<json>& sizes, int type = f32) {
    json list = json::array();
    for (const auto& [name, argument] : arguments)
      list.push_back({{"name", name}, {"arg", argument}, {"kind", 1}});
    value(output, sizes, type);
    nodes.push_back({{"target", "torch.ops." + op},
                     {"name", output},
                     {"inputs", list},
                     {"outputs", {{{"as_tensor", {{"name", output}}}}}},
                     {"metadata", {{"nn_module_stack", "L__self__,,Net;L__self__net,net,torch.nn.Linear"}}}});
  }
  void output(const std::string& name) { outputs.push_back({{"user_output", {{"arg", tensor(name)}}}}); }

  std::filesystem::path write(const std::filesystem::path& path) const {
    std::map<std::string, std::string> all = entries;
    const json graph{
        {"inputs", json::array()}, {"outputs", json::array()}, {"nodes", nodes}, {"tensor_values", values}};
    const json signature{{"input_specs", inputs}, {"output_specs", outputs}};
    if (!all.contains("models/model.json"))
      all["models/model.json"] = json{
          {"graph_module", {{"graph", graph}, {"signature", signature}}},
          {"schema_version", {{"major", major}, {"minor", 20}}},
          {"torch_version",
           "2.15.0"}}.dump();
    if (!all.contains("data/weights/model_weights_config.json"))
      all["data/weights/model_weights_config.json"] = json{{"config", weights}}.dump();
    data::ZipEntries packed;
    for (const auto& [name, text] : all) {
      const auto bytes = std::as_bytes(std::span(text));
      packed["net/" + name].assign(bytes.begin(), bytes.end());
    }
    data::write_zip(path, packed);
    return path;
  }
};

// y = gelu(x W' + b), the weight stored by columns; z = x[:, 1:].
Archive small() {
  Archive a;
  a.weight("weight", {2, 3}, {1, 4, 2, 5, 3, 6}, {1, 2});  // [[1, 2, 3], [4, 5, 6]]
  a.weight("bias", {2}, {0.5F, -0.5F}, {1});
  a.input("x", {"s0", 3});
  a.node("aten.linear.default",
         {{"input", Archive::tensor("x")},
          {"weight", Archive::tensor("p_weight")},
          {"bias", Archive::tensor("p_bias")}},
         "linear", {"s0", 2});
  a.node("aten.mul.Tensor", {{"self", Archive::tensor("linear")}, {"other", {{"as_float", 0.5}}}}, "mul",
         {"s0", 2});
  a.node("aten.slice.Tensor",
         {{"self", Archive::tensor("x")}, {"dim", {{"as_int", 1}}}, {"start", {{"as_int", 1}}}}, "slice_1",
         {"s0", 2});
  a.output("mul"), a.output("slice_1");
  return a;
}

class Exported : public ::testing::Test {
 protected:
  std::vector<Tensor> outputs(const Archive& archive, const Tensor& x) {
    const Model model = Model::open(archive.write(folder_ / "net.pt2"));
    ImportOptions options;
    options.shapes["x"] = x.shape().extents();
    const Tensor inputs[] = {x};
    return op::evaluate(model.import(options), inputs).outputs;
  }
  void refused(const Archive& archive, ErrorCode code, std::initializer_list<std::string> why) {
    expect_error(code, why, [&] { Model::open(archive.write(folder_ / "net.pt2")); });
  }
  ScratchFolder folder_;
};

TEST_F(Exported, AreModelsWithTheirWeightsNames) {
  const std::vector<Tensor> found = outputs(small(), Tensor::from<float>({2, 3}, {1, 0, 0, 0, 1, -1}));
  ASSERT_EQ(found.size(), 2U);
  const double products[] = {0.75, 1.75, -0.25, -0.75};
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(found[0].at(i)), static_cast<float>(products[i])) << i;
  EXPECT_EQ(found[1].at(3), -1);
  const Model model = Model::open(folder_ / "net.pt2");
  EXPECT_EQ(model.producer(), "torch.export 2.15.0");
  EXPECT_EQ(to_string(model.inputs().at(0)), "f32[s0,3]");
  EXPECT_EQ(model.outputs().at(1).name, "slice_1");
  const auto initializers = model.check({.parameters_as_state = true}).initializers;
  ASSERT_EQ(initializers.size(), 2U);
  for (const Initializer& each : initializers) {
    EXPECT_TRUE(each.name.starts_with("net.")) << each.name;
    EXPECT_EQ(each.kind, Initializer::Kind::trained) << each.name;
  }
}

TEST_F(Exported, OperatorsThatAreNotReadAreAllNamed) {
  Archive a = small();
  a.node("aten.fft_rfft.default", {{"self", Archive::tensor("mul")}}, "spectrum", {"s0", 2});
  a.node("aten.elu.default", {{"self", Archive::tensor("spectrum")}, {"scale", {{"as_float", 2.0}}}}, "elu",
         {"s0", 2});
  refused(a, ErrorCode::unsupported,
          {"spectrum (net): there is no aten.fft_rfft.default",
           "elu (net) (aten.elu.default): its scales are not 1", "torch.onnx.export"});
  a = small();
  a.nodes[1]["target"] = "mine.secret.default";
  refused(a, ErrorCode::unsupported, {"there is no mine.secret.default"});
}

// What is written in place is the argument from there on; of what has a view it is refused.
TEST_F(Exported, WritesInPlaceAreFollowedOrRefused) {
  Archive a = small();
  a.node("aten.add_.Tensor", {{"self", Archive::tensor("mul")}, {"other", {{"as_float", 1.0}}}}, "add_",
         {"s0", 2});
  EXPECT_FLOAT_EQ(static_cast<float>(outputs(a, Tensor::from<float>({2, 3}, {1, 0, 0, 0, 1, -1}))[0].at(0)),
                  1.75F);
  a = small();
  a.node("aten.add_.Tensor", {{"self", Archive::tensor("slice_1")}, {"other", {{"as_float", 1.0}}}}, "add_",
         {"s0", 2});
  refused(a, ErrorCode::unsupported, {"writes into 'slice_1', of which there is a view"});
  a = small();
  a.node("aten.mul_.Tensor", {{"self", Archive::tensor("p_bias")}, {"other", {{"as_float", 2.0}}}}, "mul_",
         {2});
  refused(a, ErrorCode::unsupported, {"writes into 'p_bias', a weight or a buffer"});
}

TEST_F(Exported, WhatIsDamagedOrOfAnotherVersionIsNamed) {
  Archive a = small();
  a.major = 9;
  refused(a, ErrorCode::unsupported, {"version 9 of the schema", "8 is read"});
  a = small();
  a.entries["archive_version"] = "1";
  refused(a, ErrorCode::unsupported, {"format 'pt2', version 1"});
  a = small();
  a.entries["byteorder"] = "big";
  refused(a, ErrorCode::unsupported, {"begin with their largest byte"});
  a = small();
  a.entries["data/weights/bias"].resize(4);
  refused(a, ErrorCode::bad_file, {"weight 'net.bias' has 4 bytes", "takes 8"});
  a = small();
  a.entries.erase("data/weights/bias");
  refused(a, ErrorCode::bad_file,
          {"weight 'net.bias' lies in entry 'data/weights/bias', which is not there"});
  a = small();
  a.weights["net.bias"]["use_pickle"] = true;
  refused(a, ErrorCode::unsupported, {"weight 'net.bias' is pickled"});
  a = small();
  a.weights["net.bias"]["tensor_meta"]["strides"][0]["as_int"] = -1;
  refused(a, ErrorCode::bad_file, {"weight 'net.bias' is damaged"});
  a = small();
  a.weights["net.weight"]["tensor_meta"]["strides"] = {{{"as_int", 1}}, {{"as_int", 1}}};
  refused(a, ErrorCode::bad_file, {"weight 'net.weight' has elements that lie over each other"});
  a = small();
  a.weights["net.weight"]["tensor_meta"]["sizes"] = {{{"as_int", 1LL << 40}}, {{"as_int", 1LL << 40}}};
  refused(a, ErrorCode::bad_file, {"weight 'net.weight' is damaged"});
  a = small();
  a.nodes[1]["outputs"] = json::array();
  refused(a, ErrorCode::bad_file, {"its graph is damaged: something is missing"});
  a = small();
  a.values["x"]["dtype"] = 10;
  refused(a, ErrorCode::unsupported, {"complex64"});
  a = small();
  a.nodes.erase(0);
  refused(a, ErrorCode::bad_file, {"it takes 'linear', which nothing before it gives"});
  a = small();
  a.entries["models/model.json"] = "{\"schema_version\": 8}";
  refused(a, ErrorCode::bad_file, {"its graph is damaged"});
  a.entries["models/model.json"] = "[1, 2";
  refused(a, ErrorCode::bad_file, {"'models/model.json' is no JSON"});
  a = small();
  a.entries["models/other.json"] = "{}";
  refused(a, ErrorCode::unsupported, {"holds 2 models"});
  a = small();
  a.outputs.push_back({{"buffer_mutation", {{"arg", {{"name", "mul"}}}, {"buffer_name", "memory"}}}});
  refused(a, ErrorCode::unsupported, {"changes what is kept between calls", "memory"});
  const std::string whole = read_text_file(small().write(folder_ / "whole.pt2"));
  for (const std::size_t size : {std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
    write_file_atomically(folder_ / "cut.pt2", std::string_view(whole).substr(0, size));
    expect_error(ErrorCode::bad_file, {"zip archive"}, [&] { Model::open(folder_ / "cut.pt2"); });
  }
  // What is no archive at all is not taken for ONNX: its name says what it was meant to be.
  for (const char* content : {"", "hello, this is a text"}) {
    write_file_atomically(folder_ / "text.pt2", std::string_view(content));
    expect_error(ErrorCode::bad_file, {"text.pt2", "no archive of torch.export"},
                 [&] { Model::open(folder_ / "text.pt2"); });
  }
}

}  // namespace
}  // namespace superstep::onnx
