// Runs ONNX models on targets, as tools/differ asks for it: a request on standard input, an answer on
// standard output, until the input ends. Numbers are little-endian; a text is a u32 length and its bytes.
//
//   request: model (text), targets (text, between commas), u32 inputs, each: name, tensor
//   answer, a target each: u8 done; if 0: error code (text), what (text); else u32 outputs, each: name,
//   tensor tensor: element type (text), u32 rank, i64 extents, elements
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/onnx/model.h"
#include "superstep/target/target.h"

namespace superstep {
namespace {

using NamedTensors = std::map<std::string, Tensor>;

bool read_bytes(void* to, std::size_t count) { return std::fread(to, 1, count, stdin) == count; }

template <class T>
T read_number() {
  T value{};
  if (!read_bytes(&value, sizeof value)) throw Error(ErrorCode::io, "the request ends in the middle");
  return value;
}

std::string read_text() {
  std::string text(read_number<std::uint32_t>(), '\0');
  if (!read_bytes(text.data(), text.size())) throw Error(ErrorCode::io, "the request ends in the middle");
  return text;
}

Tensor read_tensor() {
  const std::string name = read_text();
  const auto type = element_type_from_name(name);
  if (!type) throw Error(ErrorCode::invalid_argument, "is no element type", name);
  std::vector<std::int64_t> extents(read_number<std::uint32_t>());
  for (std::int64_t& extent : extents) extent = read_number<std::int64_t>();
  Tensor tensor(*type, Shape(extents));
  if (!read_bytes(tensor.bytes(), tensor.byte_count()))
    throw Error(ErrorCode::io, "the request ends in the middle");
  return tensor;
}

void write_bytes(const void* from, std::size_t count) { std::fwrite(from, 1, count, stdout); }

template <class T>
void write_number(T value) {
  write_bytes(&value, sizeof value);
}

void write_text(const std::string& text) {
  write_number(static_cast<std::uint32_t>(text.size()));
  write_bytes(text.data(), text.size());
}

void write_tensor(const Tensor& tensor) {
  write_text(name_of(tensor.type()));
  write_number(static_cast<std::uint32_t>(tensor.shape().rank()));
  for (const std::int64_t extent : tensor.shape()) write_number(extent);
  write_bytes(tensor.bytes(), tensor.byte_count());
}

struct Request {
  std::string model;
  std::vector<std::string> targets;
  NamedTensors inputs;
};

// Nothing where the input has ended.
std::optional<Request> read_request() {
  std::uint32_t length = 0;
  if (!read_bytes(&length, sizeof length)) return std::nullopt;
  Request request;
  request.model.resize(length);
  if (!read_bytes(request.model.data(), length)) throw Error(ErrorCode::io, "the request ends in the middle");
  const std::string targets = read_text();
  for (std::size_t begin = 0; begin <= targets.size();) {
    const std::size_t end = std::min(targets.find(',', begin), targets.size());
    request.targets.push_back(targets.substr(begin, end - begin));
    begin = end + 1;
  }
  for (auto left = read_number<std::uint32_t>(); left > 0; --left) {
    std::string name = read_text();
    request.inputs.emplace(std::move(name), read_tensor());
  }
  return request;
}

graph::Graph import(const Request& request) {
  std::vector<std::string> given;
  onnx::ImportOptions options;
  for (const auto& [name, tensor] : request.inputs) {
    given.push_back(name);
    options.shapes.emplace(name, tensor.shape().extents());
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(request.model.data());
  return onnx::Model::parse({bytes, request.model.size()}, "model", given).import(options);
}

void answer(const graph::Graph& graph, const std::string& target, const NamedTensors& given) {
  const auto executable = target::find_target(target).compile([&](std::int64_t) { return graph; },
                                                              {.batch = 1, .micro_batch = 1, .threads = 1});
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : executable->inputs()) inputs.push_back(given.at(port.name));
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  executable->run(inputs, outputs);
  write_number(std::uint8_t{1});
  write_number(static_cast<std::uint32_t>(outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    write_text(executable->outputs()[i].name);
    write_tensor(outputs[i]);
  }
}

void write_failure(const std::string& code, const std::string& what) {
  write_number(std::uint8_t{0});
  write_text(code);
  write_text(what);
}

void answer_all(const Request& request) {
  std::optional<graph::Graph> graph;
  for (const std::string& target : request.targets) try {
      if (!graph) graph = import(request);
      answer(*graph, target, request.inputs);
    } catch (const Error& error) {
      write_failure(name_of(error.code()), error.what());
    } catch (const std::exception& error) {
      write_failure("exception", error.what());
    }
  std::fflush(stdout);
}

}  // namespace
}  // namespace superstep

int main() {
  try {
    while (const auto request = superstep::read_request()) superstep::answer_all(*request);
  } catch (const std::exception& error) {
    std::cerr << "differ: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
