#include "superstep/onnx/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "superstep/base/file.h"
#include "superstep/onnx/open_batch.h"
#include "superstep/onnx/operator_sets.h"
#include "superstep/onnx/own_functions.h"
#include "superstep/onnx/parameters.h"
#include "superstep/onnx/wire/wire.h"
#include "superstep/op/core/definition.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/training_form.h"

namespace superstep::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

// Field numbers of onnx.proto (ONNX 1.17, Apache-2.0 project; the numbers are the format).
namespace model_field {
constexpr int ir_version = 1, producer_name = 2, producer_version = 3, graph = 7, opset_import = 8,
              metadata = 14, function = 25;
}
namespace pair_field {
constexpr int key = 1, value = 2;
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

// A file that leaves the batch open is made of the graphs at these two: at 1 what follows the batch and what
// is broadcast cannot be told apart.
constexpr std::int64_t first_batch = 2, second_batch = 3;
constexpr std::size_t largest_file = (std::size_t{1} << 31) - 1;  // of the wire format

// The version of the file format that the first release of ONNX with an operator set wrote: a program that
// knows the set reads it (ONNX 1.23, helper.py).
struct FormatOf {
  int opset, ir_version;
};
constexpr FormatOf formats[] = {{14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}, {24, 12}, {27, 13}};
constexpr int ir_version_of_newest = 14;
constexpr int ir_version_of_functions = 8;  // the first with functions of a model

int ir_version(int opset) {
  for (const FormatOf& format : formats)
    if (opset <= format.opset) return format.ir_version;
  return ir_version_of_newest;
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

// Versions of the other domains whose operators are written: no older meaning of these operators is known.
constexpr int version_of_other_domains = 1;

int smallest_opset(const Graph& graph) {
  int opset = oldest_written_opset;
  for (const Node& node : graph.nodes()) opset = std::max(opset, opset_of(graph, node));
  return opset;
}

// An operator of a library has its domain in front of its name here, and beside it in a file.
std::string_view without_domain(std::string_view op) {
  const std::string_view domain = op::traits_of(op).domain;
  const bool in_front = !domain.empty() && op.size() > domain.size() && op.starts_with(domain);
  return in_front ? op.substr(domain.size() + 1) : op;
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
  GraphWriter(const Graph& one, const Graph& two, const std::map<ValueId, OpenConstant>& open,
              const WriteOptions& options)
      : one_(one), two_(two), open_(open), options_(options) {}

  Message write() {
    Message graph;
    write_open_constants(graph);
    for (const Node& node : one_.nodes()) graph.message(graph_field::node, node_message(node));
    graph.text(graph_field::name, one_.name());
    write_initializers(graph);
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

  void write_initializers(Message& graph) {
    const std::set<ValueId> read = constants_read();
    for (std::size_t i = 0; i < one_.value_count(); ++i) {
      const graph::Value& value = one_.values()[i];
      const bool is_read = value.kind == graph::ValueKind::constant && read.contains(ValueId(i));
      if ((is_read && !open_.contains(ValueId(i))) || value.kind == graph::ValueKind::state)
        graph.message(graph_field::initializer, tensor_message(value.data, value.name));
    }
    for (const auto& [name, tensor] : made_)
      graph.message(graph_field::initializer, tensor_message(tensor, name));
  }

  // All that nodes and outputs read, but for axes that are written as attributes.
  std::set<ValueId> constants_read() const {
    std::set<ValueId> read;
    for (const Node& node : one_.nodes()) {
      const bool older_axes = has_axes_attribute(node.op, options_.opset);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (!(older_axes && i == 1)) read.insert(node.inputs[i]);
    }
    for (const graph::Output& output : one_.outputs()) read.insert(output.value);
    for (const graph::Update& update : one_.updates()) read.insert(update.next);
    return read;
  }

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
      if (type.shape[axis] == at_two.shape[axis])
        dimension.integer(1, type.shape[axis]);
      else
        dimension.text(2, symbol_of(type.shape[axis], at_two.shape[axis]));
      shape.message(1, dimension);
    }
    Message tensor_type, value_type, value_info;
    tensor_type.integer(1, onnx_type(type.element)).message(2, shape);
    value_type.message(1, tensor_type);
    value_info.text(1, name).message(2, value_type);
    return value_info;
  }

  // Extents that follow the batch in the same way have the same name.
  std::string symbol_of(std::int64_t at_one, std::int64_t at_two) const {
    const auto factor = factor_of_batch(at_one, at_two, first_batch);
    if (factor == 1) return options_.batch_symbol;
    const std::int64_t times = at_two - at_one, more = at_one - times * first_batch;
    return more == 0 ? fmt::format("{}*{}", times, options_.batch_symbol)
                     : fmt::format("{}*{}{:+}", times, options_.batch_symbol, more);
  }

  Message node_message(const Node& node) {
    const bool older_axes = has_axes_attribute(node.op, options_.opset);
    if (const int needed = opset_of(one_, node); needed > options_.opset)
      throw Error(ErrorCode::unsupported,
                  fmt::format("needs operator set {}, the file is written for {}", needed, options_.opset),
                  fmt::format("{} '{}'", node.op, node.name), "ask for a newer operator set");
    Message message;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (older_axes && i == 1) break;
      message.text(node_field::input, node.inputs[i].valid() ? name_of(node.inputs[i]) : "");
    }
    for (ValueId output : node.outputs)
      message.text(node_field::output, output.valid() ? name_of(output) : "");
    message.text(node_field::name, unique_name(node));
    const std::string_view own = own_function(node.op);
    message.text(node_field::op_type, own.empty() ? without_domain(node.op) : own);
    if (!own.empty()) message.text(node_field::domain, own_domain);
    for (const auto& [name, value] : node.attributes)
      if (const auto written = attribute_for(one_, node, name, value, options_.opset))
        message.message(node_field::attribute, AttributeWriter(name).write(*written));
    if (const auto parts = missing_part_count(node, options_.opset))
      message.message(node_field::attribute, AttributeWriter("num_outputs").write(*parts));
    if (older_axes && node.inputs.size() > 1 && node.inputs[1].valid())
      message.message(node_field::attribute,
                      AttributeWriter("axes").write(constant_integers(node, node.inputs[1])));
    if (const std::string_view domain = op::traits_of(node.op).domain; !domain.empty())
      message.text(node_field::domain, domain);
    return message;
  }

  // --- constants that follow the batch: computed from the extent of an input

  void write_open_constants(Message& graph) {
    if (open_.empty()) return;
    const std::string batch = write_batch(graph);
    for (const auto& [id, constant] : open_) {
      const graph::Value& value = one_.value(id);
      if (!constant.part) {
        write_line(graph, constant.values, batch, value.name, &value.data);
        continue;
      }
      const std::string shape = free_name(value.name + ".shape"), part = free_name(value.name + ".part");
      write_line(graph, constant.values, batch, shape, nullptr);
      made_.emplace_back(part, *constant.part);
      simple_node(graph, "Expand", {part, shape}, value.name);
    }
  }

  // The batch as a vector of one i64.
  std::string write_batch(Message& graph) {
    for (std::size_t i = 0; i < one_.inputs().size(); ++i) {
      const Shape &here = one_.type(one_.inputs()[i]).shape, &there = two_.type(two_.inputs()[i]).shape;
      for (int axis = 0; axis < here.rank(); ++axis) {
        if (factor_of_batch(here[axis], there[axis], first_batch) != 1) continue;
        const std::string shape = free_name("batch.shape"), batch = free_name("batch.extent");
        simple_node(graph, "Shape", {name_of(one_.inputs()[i])}, shape);
        simple_node(graph, "Gather", {shape, made({axis}, "batch.axis")}, batch);
        return batch;
      }
    }
    throw Error(ErrorCode::unsupported, "has no input with the batch for an extent", one_.name(),
                "write it for a fixed batch: --batch N");
  }

  // factors * batch + offsets, of the type and shape of `like`; without it a vector of i64.
  void write_line(Message& graph, const OfBatch& line, const std::string& batch, const std::string& name,
                  const Tensor* like) {
    const std::string product = free_name(name + ".times"), sum = like ? free_name(name + ".sum") : name;
    simple_node(graph, "Mul", {batch, made(line.factors, name + ".factors")}, product);
    simple_node(graph, "Add", {product, made(line.offsets, name + ".offsets")}, sum);
    if (!like) return;
    const bool narrow = like->type() != ElementType::i64;
    const std::string shaped = narrow ? free_name(name + ".wide") : name;
    simple_node(graph, "Reshape", {sum, made(like->shape().extents(), name + ".extents")}, shaped);
    if (narrow) simple_node(graph, "Cast", {shaped}, name, {{"to", std::int64_t{onnx_type(like->type())}}});
  }

  std::string made(const std::vector<std::int64_t>& values, const std::string& name) {
    Tensor tensor(ElementType::i64, {static_cast<std::int64_t>(values.size())});
    std::ranges::copy(values, tensor.as<std::int64_t>().begin());
    made_.emplace_back(free_name(name), std::move(tensor));
    return made_.back().first;
  }

  std::string free_name(std::string name) {
    while (one_.find_value(name).valid() || !taken_.insert(name).second) name += "_";
    return name;
  }

  void simple_node(Message& graph, const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& output, const graph::Attributes& attributes = {}) {
    Message node;
    for (const std::string& input : inputs) node.text(node_field::input, input);
    node.text(node_field::output, output);
    const int serial = names_[op]++;
    node.text(node_field::name, serial == 0 ? op : fmt::format("{}_{}", op, serial));
    node.text(node_field::op_type, op);
    for (const auto& [name, value] : attributes)
      node.message(node_field::attribute, AttributeWriter(name).write(value));
    graph.message(graph_field::node, node);
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
  const std::map<ValueId, OpenConstant>& open_;
  const WriteOptions& options_;
  std::map<std::string, int> names_;
  std::set<std::string> taken_;
  std::deque<std::pair<std::string, Tensor>> made_;  // messages point into them
};

// A file and the graph whose elements it takes from where they are.
struct File {
  std::unique_ptr<const Graph> graph;
  std::unique_ptr<GraphWriter> writer;
  WriteOptions options;
  Message message;
};

Message text_pair(std::string_view key, const std::vector<std::string>& names) {
  Message message;
  message.text(pair_field::key, key).text(pair_field::value, fmt::format("{}", fmt::join(names, "\n")));
  return message;
}

// Which of the states of a model are trained and which are not: a factor that is learnt looks like any other.
// A graph with updates is a training step, whose states are its inputs.
void write_trained(const Graph& graph, Message& file) {
  if (!graph.updates().empty()) return;
  std::vector<std::string> trained, kept;
  for (const ValueId id : transform::trainable_states(graph)) trained.push_back(graph.value(id).name);
  const std::set<std::string> all(trained.begin(), trained.end());
  for (const ValueId id : graph.states())
    if (const std::string& name = graph.value(id).name; !all.contains(name)) kept.push_back(name);
  if (!trained.empty()) file.message(model_field::metadata, text_pair(trained_key, trained));
  if (!trained.empty() && !kept.empty()) file.message(model_field::metadata, text_pair(kept_key, kept));
}

void finish(File& file) {
  const WriteOptions& options = file.options;
  const std::vector<Message> functions = own_functions(*file.graph, options.opset);
  const int version = std::max(ir_version(options.opset), functions.empty() ? 0 : ir_version_of_functions);
  file.message.integer(model_field::ir_version, version).text(model_field::producer_name, "superstep");
  if (!options.producer_version.empty())
    file.message.text(model_field::producer_version, options.producer_version);
  file.message.message(model_field::graph, file.writer->write());
  file.message.message(model_field::opset_import, opset_import("", options.opset));
  for (std::string_view domain : other_domains(*file.graph))
    file.message.message(model_field::opset_import, opset_import(domain, version_of_other_domains));
  write_trained(*file.graph, file.message);
  for (const Message& function : functions) file.message.message(model_field::function, function);
  if (!functions.empty())
    file.message.message(model_field::opset_import, opset_import(own_domain, version_of_other_domains));
  if (file.message.size() > largest_file)
    throw Error(ErrorCode::unsupported, "would exceed the 2 GiB that an ONNX file may have",
                file.graph->name());
}

File make_file(const std::function<Graph(std::int64_t)>& model, const WriteOptions& given) {
  const auto plain = [&](std::int64_t batch) {
    return transform::run_passes(model(batch), transform::export_passes());
  };
  const bool fixed = given.fixed_batch > 0;
  Graph one = plain(fixed ? given.fixed_batch : first_batch);
  const Graph two = fixed ? one : plain(second_batch);
  const auto open = fixed ? std::map<ValueId, OpenConstant>() : open_batch(one, two, first_batch, plain);
  File file{std::make_unique<const Graph>(std::move(one)), nullptr, given, {}};
  if (file.options.opset == 0) file.options.opset = smallest_opset(*file.graph);
  file.writer = std::make_unique<GraphWriter>(*file.graph, two, open, file.options);
  finish(file);
  return file;
}

}  // namespace

std::string to_onnx(const std::function<Graph(std::int64_t)>& model, const WriteOptions& options) {
  return make_file(model, options).message.bytes();
}

std::string why_batch_is_fixed(const std::function<Graph(std::int64_t)>& model) {
  try {
    make_file(model, {});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::bad_graph) throw;
    return Error(error.code(), error.message(), error.where()).what();
  }
  return {};
}

void require_writable(const std::function<Graph(std::int64_t)>& model, const WriteOptions& options) {
  make_file(model, options);
}

void write_onnx(const std::filesystem::path& path, const std::function<Graph(std::int64_t)>& model,
                const WriteOptions& options) {
  const File file = make_file(model, options);
  write_file_atomically(path, file.message.pieces());
}

}  // namespace superstep::onnx
