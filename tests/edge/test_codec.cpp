// The wire form of requests and answers: every type both ways, and everything wrong is named.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/edge/protocol/datatype.h"
#include "superstep/edge/protocol/infer_codec.h"
#include "tests/expect_error.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

ServedPorts ports_of(ElementType type) {
  return {.inputs = {{"x", type, {2, 3}}}, .outputs = {{"y", type, {2, 3}}, {"z", type, {}}}};
}

Tensor random_tensor(ElementType type, const Shape& shape, std::uint64_t seed) {
  RandomStream random(seed);
  Tensor tensor(type, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, is_floating(type)              ? random.normal()
                  : type == ElementType::boolean ? random.below(2)
                                                 : random.below(100));
  return tensor;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::equal(a.bytes(), a.bytes() + a.byte_count(), b.bytes());
}

InferRequest decode(const ServedPorts& ports, const std::string& body,
                    std::optional<std::size_t> json_bytes = {}) {
  return decode_infer_request(ports, body, json_bytes, [](std::int64_t) {});
}

json input_of(const Tensor& tensor, const char* name = "x") {
  return {{"name", name}, {"datatype", datatype_of(tensor.type())}, {"shape", tensor.shape().extents()}};
}

TEST(Codec, CarriesEveryTypeInBothForms) {
  for (const ElementType type : all_element_types) {
    const ServedPorts ports = ports_of(type);
    const Tensor x = random_tensor(type, {4, 2, 3}, 1);
    // What we write as an answer is read as a request with the same data.
    const std::vector<Tensor> outputs{x, random_tensor(type, {4}, 2)};
    for (const bool binary : {false, true}) {
      const std::vector<WantedOutput> wanted{{0, binary}};
      const InferAnswer answer = encode_infer_answer(ports, "m", "v", "id \"7\"", wanted, outputs);
      EXPECT_EQ(answer.json_bytes.has_value(), binary);
      const std::size_t size = answer.json_bytes.value_or(answer.body.size());
      json read = json::parse(answer.body.substr(0, size));
      EXPECT_EQ(read["id"], "id \"7\"");
      EXPECT_EQ(read["model_version"], "v");
      read["inputs"] = read["outputs"];
      read["inputs"][0]["name"] = "x";
      read.erase("outputs");
      const std::string head = read.dump();
      const InferRequest request = decode(ports, head + answer.body.substr(size), head.size());
      EXPECT_EQ(request.rows, 4);
      EXPECT_TRUE(same(request.inputs[0], x)) << name_of(type) << (binary ? " binary" : " json");
    }
  }
}

TEST(Codec, TakesNestedAndFlatData) {
  const ServedPorts ports = ports_of(ElementType::i32);
  json input = input_of(Tensor(ElementType::i32, {1, 2, 3}));
  for (const char* data : {"[1,2,3,4,5,6]", "[[[1,2,3],[4,5,6]]]"}) {
    input["data"] = json::parse(data);
    const InferRequest request = decode(ports, json{{"inputs", {input}}}.dump());
    EXPECT_EQ(request.inputs[0].at(4), 5);
    EXPECT_EQ(request.outputs.size(), 2U) << "all outputs, where none are named";
  }
}

TEST(Codec, UnderstandsWhatIsAskedFor) {
  const ServedPorts ports = ports_of(ElementType::u8);
  json input = input_of(Tensor(ElementType::u8, {1, 2, 3}));
  input["data"] = {1, 2, 3, 4, 5, 255};
  const json request{
      {"inputs", {input}},
      {"id", "a"},
      {"parameters", {{"binary_data_output", true}, {"timeout", 1500}}},
      {"outputs", {{{"name", "z"}}, {{"name", "y"}, {"parameters", {{"binary_data", false}}}}}}};
  const InferRequest read = decode(ports, request.dump());
  ASSERT_EQ(read.outputs.size(), 2U);
  EXPECT_EQ(read.outputs[0].port, 1U);
  EXPECT_TRUE(read.outputs[0].binary);
  EXPECT_FALSE(read.outputs[1].binary);
  EXPECT_EQ(read.timeout->count(), 1500);
}

// A request that is right, changed in one place.
void expect_refused(const std::vector<std::string>& parts, const std::function<void(json&)>& change,
                    ElementType type = ElementType::u8) {
  json input = input_of(Tensor(type, {1, 2, 3}));
  input["data"] = {1, 2, 3, 4, 5, 6};
  json request{{"inputs", {input}}};
  change(request);
  try {
    decode(ports_of(type), request.dump());
    ADD_FAILURE() << "was taken: " << request.dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << part << " is not in " << error.what();
  }
}

TEST(Codec, NamesWhatIsWrong) {
  const auto in = [](json& request) -> json& { return request["inputs"][0]; };
  expect_refused({"inputs"}, [](json& r) { r.erase("inputs"); });
  expect_refused({"inputs"}, [](json& r) { r["inputs"] = 3; });
  expect_refused({"objects"}, [](json& r) { r["inputs"] = {1}; });
  expect_refused({"'x'", "missing"}, [](json& r) { r["inputs"] = json::array(); });
  expect_refused({"'x'", "twice"}, [&](json& r) { r["inputs"].push_back(r["inputs"][0]); });
  expect_refused({"no input 'w'"}, [&](json& r) { in(r)["name"] = "w"; });
  expect_refused({"'x'", "FP32", "UINT8"}, [&](json& r) { in(r)["datatype"] = "FP32"; });
  expect_refused({"'x'", "[N,2,3]"}, [&](json& r) { in(r)["shape"] = {1, 3, 2}; });
  expect_refused({"'x'", "[N,2,3]"}, [&](json& r) { in(r)["shape"] = {0, 2, 3}; });
  expect_refused({"'x'", "[N,2,3]"}, [&](json& r) { in(r)["shape"] = {-1, 2, 3}; });
  expect_refused({"'x'", "[N,2,3]"}, [&](json& r) { in(r)["shape"] = {18446744073709551615ULL, 2, 3}; });
  expect_refused({"'x'", "whole"}, [&](json& r) { in(r)["shape"] = {1.5, 2, 3}; });
  expect_refused({"'x'", "shape"}, [&](json& r) { in(r).erase("shape"); });
  expect_refused({"'x'", "5 values"}, [&](json& r) { in(r)["data"] = {1, 2, 3, 4, 5}; });
  expect_refused({"'x'", "more than the 6"}, [&](json& r) { in(r)["data"].push_back(7); });
  expect_refused({"'x'", "256"}, [&](json& r) { in(r)["data"][0] = 256; });
  expect_refused({"'x'", "-1"}, [&](json& r) { in(r)["data"][0] = -1; });
  expect_refused({"'x'", "1.5"}, [&](json& r) { in(r)["data"][0] = 1.5; });
  expect_refused({"'x'", "no 'data'"}, [&](json& r) { in(r).erase("data"); });
  expect_refused({"'x'", "both"}, [&](json& r) { in(r)["parameters"] = {{"binary_data_size", 6}}; });
  expect_refused({"'x'", "shared memory"}, [&](json& r) {
    in(r)["parameters"] = {{"shared_memory_region", "a"}};
  });
  expect_refused({"no output 'q'"}, [](json& r) { r["outputs"] = {{{"name", "q"}}}; });
  expect_refused({"'y'", "twice"}, [](json& r) { r["outputs"] = {{{"name", "y"}}, {{"name", "y"}}}; });
  expect_refused({"timeout"}, [](json& r) { r["parameters"] = {{"timeout", -1}}; });
  expect_refused({"'id'"}, [](json& r) { r["id"] = 7; });
  expect_refused(
      {"no number"}, [&](json& r) { in(r)["data"][0] = "1"; }, ElementType::f32);
}

TEST(Codec, RefusesBytesThatDoNotAddUp) {
  const ServedPorts ports = ports_of(ElementType::boolean);
  json input = input_of(Tensor(ElementType::boolean, {1, 2, 3}));
  input["parameters"] = {{"binary_data_size", 6}};
  const std::string head = json{{"inputs", {input}}}.dump();
  const auto refused = [&](std::initializer_list<std::string> parts, const std::string& tensors,
                           std::size_t size) {
    expect_error(ErrorCode::invalid_argument, parts, [&] { decode(ports, head + tensors, size); });
  };
  EXPECT_EQ(decode(ports, head + std::string("\0\1\0\1\0\1", 6), head.size()).inputs[0].at(1), 1);
  refused({"ends before"}, "12345", head.size());
  refused({"1 bytes are left"}, std::string(7, '\1'), head.size());
  refused({"neither 0 nor 1"}, std::string(6, '\2'), head.size());
  refused({"Inference-Header-Content-Length"}, "", head.size() + 1);
  refused({"no JSON object"}, "", head.size() - 1);
  input["parameters"] = {{"binary_data_size", 7}};
  const std::string wrong = json{{"inputs", {input}}}.dump();
  expect_error(ErrorCode::invalid_argument, {"binary_data_size", "6 bytes"},
               [&] { decode(ports, wrong + "1234567", wrong.size()); });
}

TEST(Codec, SaysWhatJsonCannot) {
  const ServedPorts ports = ports_of(ElementType::f32);
  Tensor y(ElementType::f32, {1, 2, 3});
  y.set(3, std::numeric_limits<double>::infinity());
  const std::vector<Tensor> outputs{y, Tensor(ElementType::f32, {1})};
  const std::vector<WantedOutput> text{{0, false}}, binary{{0, true}};
  expect_error(ErrorCode::invalid_argument, {"'y'", "binary_data"},
               [&] { encode_infer_answer(ports, "m", "v", "", text, outputs); });
  EXPECT_NO_THROW(encode_infer_answer(ports, "m", "v", "", binary, outputs));
}

// Whatever is nested deep is refused, wherever it stands: nothing of it is copied level by level.
TEST(Codec, RefusesWhatIsNestedDeep) {
  const ServedPorts ports = ports_of(ElementType::u8);
  std::string deep, lists(50'000, '[');
  for (int i = 0; i < 50'000; ++i) deep += R"({"a":)";
  deep += "1" + std::string(50'000, '}');
  lists += "1" + std::string(50'000, ']');
  const std::string head = R"({"name":"x","datatype":"UINT8","shape":[1,2,3])";
  for (const std::string& what : {deep, lists})
    for (const std::string& body :
         {R"({"parameters":)" + what + R"(,"inputs":[]})",
          R"({"inputs":[)" + head + R"(,"parameters":)" + what + "}]}",
          R"({"inputs":[)" + head + R"(,"data":)" + what + "}]}",
          R"({"outputs":[{"name":"y","parameters":)" + what + "}]}", R"({"inputs":)" + what + "}", what,
          R"({"inputs":[)" + head + R"(,"data":[1,2,3,4,5,)" + what + "]}]}"})
      expect_error(ErrorCode::invalid_argument, {"deep"}, [&] { decode(ports, body); });
}

TEST(Codec, LimitsWhatStandsBesideTheData) {
  const ServedPorts ports = ports_of(ElementType::u8);
  const std::string head =
      R"({"inputs":[{"name":"x","datatype":"UINT8","shape":[1,2,3],"data":[1,2,3,4,5,6]}])";
  std::string many = "[0";
  for (int i = 0; i < 20'000; ++i) many += ",0";
  expect_error(ErrorCode::invalid_argument, {"more than"},
               [&] { decode(ports, head + R"(,"junk":)" + many + "]}"); });
  expect_error(ErrorCode::invalid_argument, {"more than"},
               [&] { decode(ports, head + R"(,"id":")" + std::string(2 << 20, 'a') + "\"}"); });
  expect_error(ErrorCode::invalid_argument, {"'inputs'", "twice"},
               [&] { decode(ports, head + R"(,"inputs":[]})"); });
  EXPECT_EQ(decode(ports, head + "}").inputs[0].at(5), 6);
}

// The members of an input come in any order: data before the shape, too.
TEST(Codec, TakesMembersInAnyOrder) {
  const ServedPorts ports = ports_of(ElementType::f32);
  const std::string body =
      R"({"inputs":[{"data":[[1,2,3],[4,5,6.5]],"parameters":{"data":[7]},"shape":[1,2,3],"name":"x","datatype":"FP32"}]})";
  const InferRequest read = decode(ports, body);
  EXPECT_EQ(read.inputs[0].at(0), 1);
  EXPECT_EQ(read.inputs[0].at(5), 6.5);
}

// Memory is asked for when all shapes are known, before any is taken.
TEST(Codec, AsksBeforeItTakesMemory) {
  const ServedPorts ports = ports_of(ElementType::u8);
  json input = input_of(Tensor(ElementType::u8, {1, 2, 3}));
  input["shape"] = {std::int64_t{1} << 40, 2, 3};
  input["data"] = {1};
  expect_error(ErrorCode::out_of_memory, {"1099511627776"}, [&] {
    decode_infer_request(ports, json{{"inputs", {input}}}.dump(), {}, [](std::int64_t rows) {
      throw Error(ErrorCode::out_of_memory, std::to_string(rows));
    });
  });
}

}  // namespace
}  // namespace superstep::edge
