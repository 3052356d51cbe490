// The messages of an ONNX file as views of its bytes. A view holds texts, numbers and the bytes of nested
// messages; these are parsed when somebody asks, so that what a hostile file can make us allocate stays a
// small multiple of its size.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "superstep/onnx/wire/wire_reader.h"

namespace superstep::onnx {

// A nested message and the name it has.
struct NamedBytes {
  std::string_view name;
  Bytes bytes;
};

struct TextPair {
  std::string_view key, value;
};

struct TensorProto {
  std::string_view name;
  std::vector<std::int64_t> dims;
  std::int64_t data_type = 0;
  bool has_raw = false, is_external = false, has_segment = false;
  Bytes raw;
  std::vector<TextPair> external;  // location, offset, length
  Bytes all;                       // the whole message: typed fields are read from here
};

struct SparseTensorProto {
  Bytes values, indices;
  std::vector<std::int64_t> dims;
};

enum class AttributeType : std::uint8_t {
  undefined,
  real,
  integer,
  text,
  tensor,
  graph,
  reals,
  integers,
  texts,
  tensors,
  graphs,
  sparse_tensor,
  sparse_tensors,
  type_proto,
  type_protos
};

struct AttributeProto {
  std::string_view name;
  AttributeType type = AttributeType::undefined;
  float real = 0;
  std::int64_t integer = 0;
  std::string_view text;
  Bytes message;  // of a tensor, graph, sparse tensor
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
  std::string_view reference;  // the attribute of the enclosing function that gives the value
};

struct NodeProto {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Bytes> attributes;
};

struct Dimension {
  std::int64_t value = -1;  // -1: not given
  std::string_view symbol;
};

enum class TypeKind : std::uint8_t { none, tensor, sequence, map, opaque, sparse_tensor, optional };

struct TypeProto {
  TypeKind kind = TypeKind::none;
  std::int64_t element = 0;  // of a tensor
  bool has_shape = false;
  std::vector<Dimension> dimensions;
  Bytes inner;  // of a sequence or an optional: a TypeProto
};

struct ValueInfoProto {
  std::string_view name, doc;
  TypeProto type;
};

struct GraphProto {
  std::string_view name, doc;
  std::vector<Bytes> nodes;
  std::vector<NamedBytes> initializers;
  std::vector<Bytes> sparse_initializers;
  std::vector<NamedBytes> inputs, outputs, value_infos;
};

struct OpsetImport {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Bytes> nodes;
  std::vector<Bytes> attribute_defaults;
  std::vector<OpsetImport> opsets;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string_view producer_name, producer_version, doc;
  bool has_graph = false;
  Bytes graph;
  std::vector<OpsetImport> opsets;
  std::vector<TextPair> metadata;
  std::vector<Bytes> functions;
};

// All throw Error (bad_file).
ModelProto parse_model(Bytes bytes);
GraphProto parse_graph(Bytes bytes);
FunctionProto parse_function(Bytes bytes);
NodeProto parse_node(Bytes bytes);
AttributeProto parse_attribute(Bytes bytes);
TensorProto parse_tensor(Bytes bytes);
SparseTensorProto parse_sparse_tensor(Bytes bytes);
ValueInfoProto parse_value_info(Bytes bytes);
TypeProto parse_type(Bytes bytes);

// "f32", "sequence of f32", "string", for messages and ports.
std::string to_string(const TypeProto& type);

}  // namespace superstep::onnx
