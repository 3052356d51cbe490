#include "superstep/onnx/wire/proto.h"

#include <fmt/format.h>

#include "superstep/onnx/wire/element.h"

// Field numbers are those of onnx.proto (ONNX 1.18, an Apache-2.0 project): the numbers are the format.
namespace superstep::onnx {
namespace {

constexpr std::size_t most_opset_imports = 1000;

std::string_view name_field(Bytes bytes, std::string_view message, int field) {
  std::string_view name;
  for (FieldReader reader(bytes, message); reader.next();)
    if (reader.field() == field) name = reader.text();
  return name;
}

NamedBytes named(Bytes bytes, std::string_view message, int field) {
  const NamedBytes result{name_field(bytes, message, field), bytes};
  if (result.name.empty())
    throw Error(ErrorCode::bad_file, fmt::format("a {} has no name", message), {},
                "the file is damaged, or not an ONNX file");
  return result;
}

TextPair parse_text_pair(Bytes bytes) {
  TextPair pair;
  for (FieldReader reader(bytes, "StringStringEntryProto"); reader.next();) {
    if (reader.field() == 1) pair.key = reader.text();
    if (reader.field() == 2) pair.value = reader.text();
  }
  return pair;
}

void append_pair(std::vector<TextPair>& pairs, Bytes bytes) {
  if (const TextPair pair = parse_text_pair(bytes); !pair.key.empty()) pairs.push_back(pair);
}

void append_opset(std::vector<OpsetImport>& opsets, const FieldReader& outer) {
  OpsetImport opset;
  for (FieldReader reader(outer.bytes(), "OperatorSetIdProto"); reader.next();) {
    if (reader.field() == 1) opset.domain = reader.text();
    if (reader.field() == 2) opset.version = reader.integer();
  }
  if (opset.domain == "ai.onnx") opset.domain = "";
  if (opsets.size() == most_opset_imports) outer.damaged("imports more operator sets than there can be");
  opsets.push_back(opset);
}

Dimension parse_dimension(Bytes bytes) {
  Dimension dimension;
  for (FieldReader reader(bytes, "TensorShapeProto.Dimension"); reader.next();) {
    if (reader.field() == 1) dimension.value = reader.integer();
    if (reader.field() == 2) dimension.symbol = reader.text();
  }
  return dimension;
}

void parse_tensor_type(Bytes bytes, TypeProto& type) {
  for (FieldReader reader(bytes, "TypeProto.Tensor"); reader.next();) {
    if (reader.field() == 1) type.element = reader.integer();
    if (reader.field() != 2) continue;
    type.has_shape = true;
    for (FieldReader shape(reader.bytes(), "TensorShapeProto"); shape.next();)
      if (shape.field() == 1) type.dimensions.push_back(parse_dimension(shape.bytes()));
  }
}

Bytes inner_type(Bytes bytes) {
  Bytes inner;
  for (FieldReader reader(bytes, "TypeProto"); reader.next();)
    if (reader.field() == 1) inner = reader.bytes();
  return inner;
}

// Files of IR versions before 5 may leave the type out: then the field that is there says it.
AttributeType type_of_field(int field) {
  switch (field) {
    case 2: return AttributeType::real;
    case 3: return AttributeType::integer;
    case 4: return AttributeType::text;
    case 5: return AttributeType::tensor;
    case 6: return AttributeType::graph;
    case 7: return AttributeType::reals;
    case 8: return AttributeType::integers;
    case 9: return AttributeType::texts;
    case 22: return AttributeType::sparse_tensor;
    default: return AttributeType::undefined;
  }
}

void read_attribute_field(const FieldReader& reader, AttributeProto& attribute) {
  switch (reader.field()) {
    case 1: attribute.name = reader.text(); return;
    case 2: attribute.real = reader.real(); return;
    case 3: attribute.integer = reader.integer(); return;
    case 4: attribute.text = reader.text(); return;
    case 5:
    case 6:
    case 22: attribute.message = reader.bytes(); return;
    case 7: reader.append(attribute.reals); return;
    case 8: reader.append(attribute.integers); return;
    case 9: attribute.texts.push_back(reader.text()); return;
    case 21: attribute.reference = reader.text(); return;
    default: return;
  }
}

}  // namespace

ModelProto parse_model(Bytes bytes) {
  ModelProto model;
  for (FieldReader reader(bytes, "ModelProto"); reader.next();) switch (reader.field()) {
      case 1: model.ir_version = reader.integer(); break;
      case 2: model.producer_name = reader.text(); break;
      case 3: model.producer_version = reader.text(); break;
      case 6: model.doc = reader.text(); break;
      case 7: model.graph = reader.bytes(), model.has_graph = true; break;
      case 8: append_opset(model.opsets, reader); break;
      case 14: append_pair(model.metadata, reader.bytes()); break;
      case 25: model.functions.push_back(reader.bytes()); break;
      default: break;
    }
  return model;
}

GraphProto parse_graph(Bytes bytes) {
  GraphProto graph;
  for (FieldReader reader(bytes, "GraphProto"); reader.next();) switch (reader.field()) {
      case 1: graph.nodes.push_back(reader.bytes()); break;
      case 2: graph.name = reader.text(); break;
      case 5: graph.initializers.push_back(named(reader.bytes(), "TensorProto", 8)); break;
      case 10: graph.doc = reader.text(); break;
      case 11: graph.inputs.push_back(named(reader.bytes(), "ValueInfoProto", 1)); break;
      case 12: graph.outputs.push_back(named(reader.bytes(), "ValueInfoProto", 1)); break;
      case 13: graph.value_infos.push_back(named(reader.bytes(), "ValueInfoProto", 1)); break;
      case 15: graph.sparse_initializers.push_back(reader.bytes()); break;
      default: break;
    }
  return graph;
}

FunctionProto parse_function(Bytes bytes) {
  FunctionProto function;
  for (FieldReader reader(bytes, "FunctionProto"); reader.next();) switch (reader.field()) {
      case 1: function.name = reader.text(); break;
      case 4: function.inputs.push_back(reader.text()); break;
      case 5: function.outputs.push_back(reader.text()); break;
      case 7: function.nodes.push_back(reader.bytes()); break;
      case 9: append_opset(function.opsets, reader); break;
      case 10: function.domain = reader.text(); break;
      case 11: function.attribute_defaults.push_back(reader.bytes()); break;
      case 13: function.overload = reader.text(); break;
      default: break;
    }
  if (function.domain == "ai.onnx") function.domain = "";
  return function;
}

NodeProto parse_node(Bytes bytes) {
  NodeProto node;
  for (FieldReader reader(bytes, "NodeProto"); reader.next();) switch (reader.field()) {
      case 1: node.inputs.push_back(reader.text()); break;
      case 2: node.outputs.push_back(reader.text()); break;
      case 3: node.name = reader.text(); break;
      case 4: node.op_type = reader.text(); break;
      case 5: node.attributes.push_back(reader.bytes()); break;
      case 7: node.domain = reader.text(); break;
      case 8: node.overload = reader.text(); break;
      default: break;
    }
  if (node.domain == "ai.onnx") node.domain = "";
  if (node.op_type.empty())
    throw Error(ErrorCode::bad_file, "a NodeProto names no operator", {}, "the file is damaged");
  return node;
}

AttributeProto parse_attribute(Bytes bytes) {
  AttributeProto attribute;
  AttributeType seen = AttributeType::undefined;
  for (FieldReader reader(bytes, "AttributeProto"); reader.next();) {
    read_attribute_field(reader, attribute);
    if (const AttributeType type = type_of_field(reader.field()); type != AttributeType::undefined)
      seen = type;
    if (reader.field() == 20) {
      const std::int64_t type = reader.integer();
      if (type < 0 || type > static_cast<int>(AttributeType::type_protos))
        reader.damaged("is of a type that ONNX does not have");
      attribute.type = static_cast<AttributeType>(type);
    }
  }
  if (attribute.type == AttributeType::undefined) attribute.type = seen;
  return attribute;
}

TensorProto parse_tensor(Bytes bytes) {
  TensorProto tensor;
  tensor.all = bytes;
  for (FieldReader reader(bytes, "TensorProto"); reader.next();) switch (reader.field()) {
      case 1: reader.append(tensor.dims); break;
      case 2: tensor.data_type = reader.integer(); break;
      case 3: tensor.has_segment = true; break;
      case 8: tensor.name = reader.text(); break;
      case 9: tensor.raw = reader.bytes(), tensor.has_raw = true; break;
      case 13: append_pair(tensor.external, reader.bytes()); break;
      case 14: tensor.is_external = reader.integer() == 1; break;
      default: break;
    }
  return tensor;
}

SparseTensorProto parse_sparse_tensor(Bytes bytes) {
  SparseTensorProto tensor;
  for (FieldReader reader(bytes, "SparseTensorProto"); reader.next();) switch (reader.field()) {
      case 1: tensor.values = reader.bytes(); break;
      case 2: tensor.indices = reader.bytes(); break;
      case 3: reader.append(tensor.dims); break;
      default: break;
    }
  return tensor;
}

TypeProto parse_type(Bytes bytes) {
  TypeProto type;
  for (FieldReader reader(bytes, "TypeProto"); reader.next();) switch (reader.field()) {
      case 1: type.kind = TypeKind::tensor, parse_tensor_type(reader.bytes(), type); break;
      case 4: type.kind = TypeKind::sequence, type.inner = inner_type(reader.bytes()); break;
      case 5: type.kind = TypeKind::map; break;
      case 7: type.kind = TypeKind::opaque; break;
      case 8: type.kind = TypeKind::sparse_tensor; break;
      case 9: type.kind = TypeKind::optional, type.inner = inner_type(reader.bytes()); break;
      default: break;
    }
  return type;
}

ValueInfoProto parse_value_info(Bytes bytes) {
  ValueInfoProto info;
  for (FieldReader reader(bytes, "ValueInfoProto"); reader.next();) switch (reader.field()) {
      case 1: info.name = reader.text(); break;
      case 2: info.type = parse_type(reader.bytes()); break;
      case 3: info.doc = reader.text(); break;
      default: break;
    }
  return info;
}

std::string to_string(const TypeProto& type) {
  std::string prefix;
  TypeProto inner = type;
  // Deeper nesting than this is not worth telling.
  for (int depth = 0; depth < 8; ++depth) switch (inner.kind) {
      case TypeKind::none: return prefix + "nothing";
      case TypeKind::tensor: return prefix + element_name(inner.element);
      case TypeKind::map: return prefix + "map";
      case TypeKind::opaque: return prefix + "opaque";
      case TypeKind::sparse_tensor: return prefix + "sparse tensor";
      case TypeKind::sequence: prefix += "sequence of ", inner = parse_type(Bytes(inner.inner)); break;
      case TypeKind::optional: prefix += "optional ", inner = parse_type(Bytes(inner.inner)); break;
    }
  return prefix + "...";
}

}  // namespace superstep::onnx
