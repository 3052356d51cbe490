// An opened file: the bytes, and what the top of the model says.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "superstep/base/system/mapped_file.h"
#include "superstep/onnx/port.h"
#include "superstep/onnx/wire/proto.h"
#include "superstep/onnx/wire/tensor_data.h"

namespace superstep::onnx {

// Operator sets by domain.
using Opsets = std::map<std::string, std::int64_t, std::less<>>;

struct File : std::enable_shared_from_this<File> {
  std::string path;
  std::unique_ptr<MappedFile> mapping;  // null when the bytes are our own
  std::vector<std::byte> copy;
  ModelProto model;
  GraphProto graph;
  std::map<std::string, std::int64_t> opsets;
  std::map<std::string, std::string> metadata;
  std::vector<Port> inputs, outputs;
  std::vector<Port> defaults;              // inputs that nobody gives: they have initialisers
  std::set<std::string_view> initialized;  // names that have an initialiser
  std::map<std::string, FunctionProto, std::less<>> functions;  // by function_key()
  std::unique_ptr<ExternalData> external;
};

// Parses the top of a model and checks versions. Throws Error (bad_file, unsupported).
void describe(File& file, Bytes bytes, const std::vector<std::string>& given = {});

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload);

Port make_port(const ValueInfoProto& info);

}  // namespace superstep::onnx
