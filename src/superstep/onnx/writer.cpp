#include "superstep/onnx/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "superstep/base/file.h"
#include "superstep/onnx/wire/wire.h"
#include "superstep/op/core/definition.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"

namespace superstep::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

// Field numbers of onnx.proto (ONNX 1.17, Apache-2.0 project; the numbers are the format).
namespace model_field {
constexpr int ir_version = 1, producer_name = 2, producer_version = 3, graph = 7, opset_import = 8;
}
namespace opset_field {
constexpr int domain = 1, version = 2;
}
namespace graph_field {
constexpr int node = 1, name = 2, initializer = 5, doc_string = 10, input = 11, output = 12, value_info = 13;
}
namespace node_field {
constexpr int input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7;
}
namespace attribute_field {
constexpr int name = 1, f = 2, i = 3, s = 4, t = 5, floats = 7, ints = 8, strings = 9, type = 20;
}
namespace tensor_field {
constexpr int dims = 1, data_type = 2, name = 8, raw_data = 9;
}

constexpr int oldest_opset = 13;
constexpr std::size_t largest_file = (std::size_t{1} << 31) - 1;  // of the wire format
constexpr int ir_version_of_opset_13 = 7, ir_version_of_opset_15 = 8, ir_version_of_opset_19 = 9;

int ir_version(int opset) {
  return opset <= 14 ? ir_version_of_opset_13 : opset <= 18 ? ir_version_of_opset_15 : ir_version_of_opset_19;
}

int onnx_type(ElementType type) {
  switch (type) {
    case ElementType::f32: return 1;
    case ElementType::u8: return 2;
    case ElementType::i8: return 3;
    case ElementType::u16: return 4;
    case ElementType::i16: return 5;
    case ElementType::i32: return 6;
    case ElementType::i64: return 7;
    case ElementType::boolean: return 9;
    case ElementType::f16: return 10;
    case ElementType::f64: return 11;
    case ElementType::u32: return 12;
    case ElementType::u64: return 13;
    case ElementType::bf16: return 16;
  }
  return 0;
}

// The elements stay where they are: the tensor outlives the message.
Message tensor_message(const Tensor& tensor, const std::string& name) {
  Message message;
  message.packed_integers(tensor_field::dims, tensor.shape().extents());
  message.integer(tensor_field::data_type, onnx_type(tensor.type()));
  if (!name.empty()) message.text(tensor_field::name, name);
  message.text_in_place(tensor_field::raw_data,
                        {reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count()});
  return message;
}

class AttributeWriter {
 public:
  explicit AttributeWriter(const std::string& name) { message_.text(attribute_field::name, name); }

  Message write(const graph::Attribute& attribute) {
    std::visit([&](const auto& value) { add(value); }, attribute);
    return std::move(message_);
  }

 private:
  void finish(int type) { message_.integer(attribute_field::type, type); }
  void add(std::int64_t value) { message_.integer(attribute_field::i, value), finish(2); }
  void add(double value) { message_.real(attribute_field::f, static_cast<float>(value)), finish(1); }
  void add(const std::string& value) { message_.text(attribute_field::s, value), finish(3); }
  void add(const Tensor& value) {
    message_.message(attribute_field::t, tensor_message(value, {})), finish(4);
  }
  void add(const std::vector<std::int64_t>& values) {
    for (std::int64_t value : values) message_.integer(attribute_field::ints, value);
    finish(7);
  }
  void add(const std::vector<double>& values) {
    for (double value : values) message_.real(attribute_field::floats, static_cast<float>(value));
    finish(6);
  }
  void add(const std::vector<std::string>& values) {
    for (const std::string& value : values) message_.text(attribute_field::strings, value);
    finish(8);
  }
  void add(const std::shared_ptr<const Graph>&) {
    throw Error(ErrorCode::unsupported, "graphs inside nodes cannot be written yet");
  }

  Message message_;
};

// Reductions took their axes as an attribute before they became an input.
bool has_axes_attribute(std::string_view op, int opset) { return opset < op::traits_of(op).axes_input_since; }

// Versions of the other domains whose operators are written: no older meaning of these operators is known.
constexpr int version_of_other_domains = 1;

// The operator set of the standard domain that a node needs; 13 is the oldest that is written.
int opset_of(const Node& node, int wanted) {
  if (!op::traits_of(node.op).domain.empty()) return oldest_opset;
  if (has_axes_attribute(node.op, wanted)) return oldest_opset;
  const op::Definition& definition = op::get(node.op);
  const int same_since = definition.traits.f32_since;
  return std::max(oldest_opset, same_since > 0 ? same_since : definition.since_opset);
}

int smallest_opset(const Graph& graph) {
  int opset = oldest_opset;
  for (const Node& node : graph.nodes()) opset = std::max(opset, opset_of(node, oldest_opset));
  return opset;
}

std::set<std::string_view> other_domains(const Graph& graph) {
  std::set<std::string_view> domains;
  for (const Node& node : graph.nodes()) domains.insert(op::traits_of(node.op).domain);
  domains.erase("");
  return domains;
}

Message opset_import(std::string_view domain, int version) {
  Message message;
  message.text(opset_field::domain, domain).integer(opset_field::version, version);
  return message;
}

class GraphWriter {
 public:
  GraphWriter(const Graph& one, const Graph& two, const WriteOptions& options)
      : one_(one), two_(two), options_(options) {}

  Message write() {
    Message graph;
    for (const Node& node : one_.nodes()) graph.message(graph_field::node, node_message(node));
    graph.text(graph_field::name, one_.name());
    for (const graph::Value& value : one_.values())
      if (value.kind == graph::ValueKind::constant || value.kind == graph::ValueKind::state)
        graph.message(graph_field::initializer, tensor_message(value.data, value.name));
    if (!one_.doc().empty()) graph.text(graph_field::doc_string, one_.doc());
    for (std::size_t i = 0; i < one_.inputs().size(); ++i)
      graph.message(graph_field::input, port(one_.value(one_.inputs()[i]).name, one_.type(one_.inputs()[i]),
                                             two_.type(two_.inputs()[i])));
    write_changing_states(graph);
    write_outputs(graph);
    write_value_infos(graph);
    return graph;
  }

 private:
  const std::string& name_of(ValueId id) const { return one_.value(id).name; }

  // An initialiser that is an input too can be fed: its elements are what it holds when it is not.
  void write_changing_states(Message& graph) const {
    for (const graph::Update& update : one_.updates())
      graph.message(graph_field::input,
                    port(name_of(update.state), one_.type(update.state), one_.type(update.state)));
  }

  void write_value_infos(Message& graph) const {
    for (std::size_t i = 0; i < one_.value_count(); ++i)
      if (const graph::Value& value = one_.values()[i];
          value.kind == graph::ValueKind::computed && !one_.find_output(value.name).valid())
        graph.message(graph_field::value_info, port(value.name, value.type, two_.values()[i].type));
  }

  // Outputs have names of their own in a graph, but are values in a file: an Identity gives a value the name
  // it goes out by.
  void write_outputs(Message& graph) {
    for (std::size_t i = 0; i < one_.outputs().size(); ++i)
      output(graph, one_.outputs()[i].name, one_.outputs()[i].value, two_.outputs()[i].value);
    for (std::size_t i = 0; i < one_.updates().size(); ++i)
      output(graph, name_of(one_.updates()[i].state) + ".next", one_.updates()[i].next,
             two_.updates()[i].next);
  }

  void output(Message& graph, const std::string& name, ValueId value, ValueId at_two) {
    if (name != name_of(value)) {
      Message node;
      node.text(node_field::input, name_of(value)).text(node_field::output, name);
      node.text(node_field::op_type, "Identity");
      graph.message(graph_field::node, node);
    }
    graph.message(graph_field::output, port(name, one_.type(value), two_.type(at_two)));
  }

  Message port(const std::string& name, const graph::ValueType& type, const graph::ValueType& at_two) const {
    Message shape;
    for (int axis = 0; axis < type.shape.rank(); ++axis) {
      Message dimension;
      if (type.shape[axis] != at_two.shape[axis])
        dimension.text(2, options_.batch_symbol);
      else
        dimension.integer(1, type.shape[axis]);
      shape.message(1, dimension);
    }
    Message tensor_type, value_type, value_info;
    tensor_type.integer(1, onnx_type(type.element)).message(2, shape);
    value_type.message(1, tensor_type);
    value_info.text(1, name).message(2, value_type);
    return value_info;
  }

  Message node_message(const Node& node) {
    const op::Definition& definition = op::get(node.op);
    const bool older_axes = has_axes_attribute(node.op, options_.opset);
    if (opset_of(node, options_.opset) > options_.opset)
      throw Error(ErrorCode::unsupported,
                  fmt::format("needs operator set {}, the file is written for {}", definition.since_opset,
                              options_.opset),
                  fmt::format("{} '{}'", node.op, node.name), "ask for a newer operator set");
    Message message;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (older_axes && i == 1) break;
      message.text(node_field::input, node.inputs[i].valid() ? name_of(node.inputs[i]) : "");
    }
    for (ValueId output : node.outputs)
      message.text(node_field::output, output.valid() ? name_of(output) : "");
    message.text(node_field::name, unique_name(node));
    message.text(node_field::op_type, node.op);
    for (const auto& [name, value] : node.attributes)
      if (name != "over_parts")  // ours, about how a step is run
        message.message(node_field::attribute, AttributeWriter(name).write(value));
    if (older_axes && node.inputs.size() > 1 && node.inputs[1].valid())
      message.message(node_field::attribute,
                      AttributeWriter("axes").write(constant_integers(node, node.inputs[1])));
    if (const std::string_view domain = op::traits_of(node.op).domain; !domain.empty())
      message.text(node_field::domain, domain);
    return message;
  }

  // Readers of ONNX files want every node's name once: "attention/MatMul", "attention/MatMul_1".
  std::string unique_name(const Node& node) {
    const std::string base = node.name.empty() ? node.op : node.name + "/" + node.op;
    const int serial = names_[base]++;
    return serial == 0 ? base : fmt::format("{}_{}", base, serial);
  }

  std::vector<std::int64_t> constant_integers(const Node& node, ValueId id) const {
    const graph::Value& value = one_.value(id);
    if (value.kind != graph::ValueKind::constant)
      throw Error(ErrorCode::unsupported, "axes that are computed need a newer operator set",
                  node.op + " '" + node.name + "'");
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < value.data.element_count(); ++i)
      result.push_back(static_cast<std::int64_t>(value.data.at(i)));
    return result;
  }

  const Graph &one_, &two_;
  const WriteOptions& options_;
  std::map<std::string, int> names_;
};

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

// Reads only as the target shape of a Reshape, where -1 stands for "what is left".
bool only_reshapes_read(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes())
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == id && (node.op != "Reshape" || i != 1)) return false;
  return true;
}

// A symbol for the batch is right only when nothing inside the graph was computed for one batch: target
// shapes of Reshape get -1 where they follow the batch, anything else that does is refused.
void open_batch(Graph& one, const Graph& two) {
  for (std::size_t i = 0; i < std::min(one.value_count(), two.value_count()); ++i) {
    const graph::Value &a = one.values()[i], &b = two.values()[i];
    if (a.kind != graph::ValueKind::constant || (b.kind == a.kind && same_tensor(a.data, b.data))) continue;
    std::vector<std::int64_t> follows;
    const bool comparable =
        b.kind == a.kind && a.data.type() == ElementType::i64 && a.data.shape() == b.data.shape();
    for (std::int64_t k = 0; comparable && k < a.data.element_count(); ++k)
      if (a.data.at(k) != b.data.at(k)) follows.push_back(k);
    if (follows.size() != 1 || !only_reshapes_read(one, ValueId(i)))
      throw Error(ErrorCode::unsupported, "depends on the batch, so the file cannot leave the batch open",
                  "constant %" + a.name, "write it for a fixed batch");
    Tensor shape = a.data.clone();
    shape.set(follows[0], -1);
    one.set_data(ValueId(i), std::move(shape));
  }
}

// A file and the graph whose elements it takes from where they are.
struct File {
  std::unique_ptr<const Graph> graph;
  Message message;
};

File make_file(const std::function<Graph(std::int64_t)>& model, const WriteOptions& given) {
  const auto plain = [&](std::int64_t batch) {
    return transform::run_passes(model(batch), transform::export_passes());
  };
  Graph one = plain(given.fixed_batch > 0 ? given.fixed_batch : 1);
  const Graph two = given.fixed_batch > 0 ? one : plain(2);
  open_batch(one, two);
  WriteOptions options = given;
  if (options.opset == 0) options.opset = smallest_opset(one);
  File file{std::make_unique<const Graph>(std::move(one)), {}};
  file.message.integer(model_field::ir_version, ir_version(options.opset))
      .text(model_field::producer_name, "superstep");
  if (!options.producer_version.empty())
    file.message.text(model_field::producer_version, options.producer_version);
  file.message.message(model_field::graph, GraphWriter(*file.graph, two, options).write());
  file.message.message(model_field::opset_import, opset_import("", options.opset));
  for (std::string_view domain : other_domains(*file.graph))
    file.message.message(model_field::opset_import, opset_import(domain, version_of_other_domains));
  if (file.message.size() > largest_file)
    throw Error(ErrorCode::unsupported, "would exceed the 2 GiB that an ONNX file may have",
                file.graph->name());
  return file;
}

}  // namespace

std::string to_onnx(const std::function<Graph(std::int64_t)>& model, const WriteOptions& options) {
  return make_file(model, options).message.bytes();
}

void write_onnx(const std::filesystem::path& path, const std::function<Graph(std::int64_t)>& model,
                const WriteOptions& options) {
  const File file = make_file(model, options);
  write_file_atomically(path, file.message.pieces());
}

}  // namespace superstep::onnx
