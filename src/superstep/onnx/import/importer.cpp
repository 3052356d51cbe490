#include "superstep/onnx/import/importer.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/base/wildcard.h"
#include "superstep/graph/verify.h"
#include "superstep/onnx/adapters/adapters.h"
#include "superstep/onnx/attribute_names.h"
#include "superstep/onnx/import/attribute_values.h"
#include "superstep/onnx/import/census.h"
#include "superstep/onnx/import/node_order.h"
#include "superstep/onnx/own_functions.h"
#include "superstep/onnx/parameters.h"
#include "superstep/onnx/serving_form.h"
#include "superstep/onnx/wire/element.h"
#include "superstep/transform/rewrite.h"

namespace superstep::onnx {
namespace {

constexpr int deepest_scope = 64;
constexpr std::size_t most_findings = 1000;
constexpr std::int64_t steps_a_node = 10;
// Initialisers from this size on are not read where types are enough.
constexpr double large_bytes = 1 << 20;

struct SubgraphProto {
  GraphProto graph;
  std::vector<NodeProto> nodes;
};

std::string operator_name(const NodeProto& node) {
  return node.domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", node.domain, node.op_type);
}

std::string place(const NodeProto& node, const Scope& scope) {
  if (!node.name.empty()) return fmt::format("node '{}{}'", scope.prefix(), node.name);
  for (std::string_view output : node.outputs)
    if (!output.empty()) return fmt::format("the node that gives '{}{}'", scope.prefix(), output);
  return "a node without name and outputs";
}

class Importer {
 public:
  Importer(const File& file, const ImportOptions& options, ImportMode mode)
      : file_(file),
        options_(options),
        mode_(mode),
        graph_(file.graph.name.empty() ? "model" : std::string(file.graph.name)),
        emitter_(graph_, options.most_nodes) {
    for (const auto& [domain, version] : file.opsets) opsets_[domain] = version;
    opsets_.try_emplace("", newest_opset);
    graph_.set_doc(std::string(file.graph.doc.empty() ? file.model.doc : file.graph.doc));
  }

  Imported run() {
    check_options();
    findings_.operators = count_operators(file_);
    Scope scope(nullptr, opsets_);
    guard("model", [&] {
      add_inputs(scope);
      add_initializers(file_.graph, scope, file_.inputs);
      for (const NodeProto& node : ordered_nodes(file_.graph.nodes)) import_node(node, scope);
      add_outputs(scope);
    });
    require_bounds_met();
    if (findings_.importable()) guard("model", [&] { finish(); });
    if (wrong_choice_) throw Error(*wrong_choice_);
    if (!findings_.importable()) count_unread_parameters();
    return {std::move(graph_), std::move(findings_)};
  }

 private:
  // Runs a part of the import; an error in it becomes a finding. Memory that a file asks for and that is not
  // there is the file's fault as well.
  template <class Part>
  bool guard(const std::string& where, Part&& part, const std::string& op = {}, std::int64_t opset = 0) {
    try {
      part();
      return true;
    } catch (const AlreadyReported&) {
    } catch (const Error& error) {
      report({where, op, opset, reason_of(error, op)});
    } catch (const std::bad_alloc&) {
      report({where, op, opset, "needs more memory than there is"});
    } catch (const std::length_error&) {
      report({where, op, opset, "needs more memory than there is"});
    } catch (const std::exception& error) {
      report({where, op, opset, fmt::format("the importer cannot take it: {}", error.what())});
    }
    return false;
  }

  // Without the operator and the node's name in front: the finding has both.
  static std::string reason_of(const Error& error, const std::string& op) {
    const bool says_node = !op.empty() && (error.where() == op || error.where().starts_with(op + " '"));
    return says_node ? Error(error.code(), error.message(), {}, error.hint()).what() : error.what();
  }

  void report(Finding finding) {
    if (findings_.unsupported.size() == most_findings) return;
    for (std::string* text : {&finding.where, &finding.op, &finding.reason}) *text = printable(*text);
    const auto same = [&](const Finding& other) {
      return other.where == finding.where && other.reason == finding.reason;
    };
    if (std::ranges::none_of(findings_.unsupported, same))
      findings_.unsupported.push_back(std::move(finding));
  }

  void check_options() const {
    std::vector<std::string> names;
    for (const Port& port : file_.inputs) names.push_back(port.name);
    const auto check = [&](const std::string& name) {
      if (std::ranges::find(names, name) == names.end())
        throw Error(ErrorCode::invalid_argument, "the model has no such input", name,
                    unknown_name_hint(name, names));
    };
    for (const auto& [name, shape] : options_.shapes) check(name);
    for (const auto& [name, value] : options_.values) check(name);
  }

  // --- inputs, initialisers, outputs

  void add_inputs(Scope& scope) {
    std::size_t next = 0;  // ports are the graph's inputs, in their order, without some
    for (const NamedBytes& input : file_.graph.inputs) {
      if (next == file_.inputs.size() || file_.inputs[next].name != input.name) continue;
      const Port& port = file_.inputs[next++];
      Entry entry = Entry::failure();
      guard(fmt::format("input '{}'", port.name), [&] { entry = Entry::of(add_input(port)); });
      scope.set(input.name, entry);
    }
  }

  Var add_input(const Port& port) {
    if (!port.element) refuse_node(fmt::format("is of type {}, which has no place in a graph", port.type));
    graph::ValueType type{*port.element, input_shape(port)};
    if (graph_.find_value(port.name).valid()) refuse_node("another input has this name");
    const Var input = emitter_.builder().input(port.name, type.element, type.shape);
    if (const auto value = options_.values.find(port.name); value != options_.values.end()) {
      if (graph::ValueType{value->second.type(), value->second.shape()} != type)
        refuse_node(fmt::format("is given as {}{}, and is {}", name_of(value->second.type()),
                                superstep::to_string(value->second.shape()), graph::to_string(type)));
      emitter_.set_known(input.id(), value->second);
    }
    return input;
  }

  Shape input_shape(const Port& port) const {
    const auto given = options_.shapes.find(port.name);
    const auto value = options_.values.find(port.name);
    if (!port.has_shape) {
      if (given != options_.shapes.end()) return Shape(given->second);
      if (value != options_.values.end()) return value->second.shape();
      refuse_node("has no declared shape", "give its extents");
    }
    std::vector<std::int64_t> extents;
    for (const Extent& extent : port.extents) extents.push_back(extent_of(extent));
    if (value != options_.values.end()) fill(extents, value->second.shape().extents(), port);
    if (given != options_.shapes.end()) fill(extents, given->second, port);
    return Shape(extents);
  }

  void fill(std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& given,
            const Port& port) const {
    if (given.size() != extents.size())
      refuse_node(fmt::format("is {}, and is given {} extents", onnx::to_string(port), given.size()));
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] < 0) continue;
      if (port.extents[i].value >= 0 && port.extents[i].value != given[i])
        refuse_node(
            fmt::format("is {}, and is given extent {} for axis {}", onnx::to_string(port), given[i], i));
      extents[i] = given[i];
    }
  }

  std::int64_t extent_of(const Extent& extent) const {
    if (extent.value >= 0) return extent.value;
    const auto symbol = options_.symbols.find(extent.symbol);
    return symbol == options_.symbols.end() ? options_.default_extent : symbol->second;
  }

  // Of a name that is an input which is given, nothing: that is the value.
  static void add_initializers(const GraphProto& graph, Scope& scope, std::span<const Port> given = {}) {
    const auto add = [&](std::string_view name, Entry::Kind kind, Bytes bytes) {
      if (std::ranges::find(given, name, &Port::name) == given.end())
        scope.set(name, {.kind = kind, .value = {}, .initializer = bytes});
    };
    for (const NamedBytes& initializer : graph.initializers)
      add(initializer.name, Entry::Kind::initializer, initializer.bytes);
    for (Bytes bytes : graph.sparse_initializers)
      add(parse_tensor(parse_sparse_tensor(bytes).values).name, Entry::Kind::sparse_initializer, bytes);
  }

  Var load(const Entry& entry, const std::string& name) {
    if (entry.kind == Entry::Kind::sparse_initializer)
      return added_initializer(emitter_.builder().constant(
          read_sparse_tensor(parse_sparse_tensor(entry.initializer), *file_.external), name));
    const TensorProto proto = parse_tensor(entry.initializer);
    const graph::ValueType type = tensor_type(proto);
    const double size =
        static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
    if (mode_ == ImportMode::whole || size < large_bytes)
      return added_initializer(
          emitter_.builder().constant(read_tensor_later(proto, *file_.external, mapped_file()), name));
    const Var stand_in = emitter_.builder().input(name, type.element, type.shape);
    emitter_.set_loader(stand_in.id(), [proto, this] { return read_tensor(proto, *file_.external); });
    return added_initializer(stand_in);
  }

  // The file, mapped, which keeps everything that belongs to it; null where the bytes are our own.
  std::shared_ptr<const MappedFile> mapped_file() const {
    if (!file_.mapping) return nullptr;
    return {file_.weak_from_this().lock(), file_.mapping.get()};
  }

  Var added_initializer(Var value) {
    if (!is_floating(value.element())) return value;
    findings_.parameters += value.shape().element_count();
    findings_.parameter_bytes +=
        value.shape().element_count() * static_cast<std::int64_t>(size_in_bytes(value.element()));
    if (options_.parameters_as_state) emitter_.mark_parameter(value.id());
    parameters_.insert(value.id());
    return value;
  }

  void add_outputs(Scope& scope) {
    for (const NamedBytes& output : file_.graph.outputs)
      guard(fmt::format("output '{}'", output.name), [&] {
        const Var value = read(output.name, scope);
        require_tensors({value});
        add_output(std::string(output.name), value);
      });
    add_beyond();
    if (file_.graph.outputs.empty()) report({"model", "", 0, "has no outputs"});
  }

  // What is not taken of a bounded axis is zero, and how much is taken goes out beside it.
  void add_output(const std::string& name, Var value) {
    const BoundedAxes axes = emitter_.bounds().of(value);
    const Var out = filled(emitter_, value, 0);
    if (out.id() != value.id()) {
      if (graph_.value(value.id()).name == name) graph_.rename(value.id(), name + ".places");
      if (!graph_.find_value(name).valid()) graph_.rename(out.id(), name);
    }
    emitter_.builder().output(name, out);
    for (const auto& [axis, bounded] : axes)
      emitter_.builder().output(axes.size() == 1 ? name + ".count" : fmt::format("{}.count.{}", name, axis),
                                taken(emitter_, bounded));
  }

  void add_beyond() {
    Var all;
    for (Var beyond : emitter_.bounds().beyond())
      all = all.valid() ? emitter_.plain1("Add", {all, beyond}) : beyond;
    if (all.valid()) emitter_.builder().output(std::string(beyond_bounds), all);
  }

  // What could not be imported was not read either, and yet belongs to the file.
  void count_unread_parameters() {
    const ParameterCount count = count_parameters(file_);
    findings_.parameters = count.elements;
    findings_.parameter_bytes = count.bytes;
  }

  void finish() {
    findings_.nodes = 0;
    std::set<std::string> names;  // ids change when nodes are left out
    for (graph::ValueId id : parameters_) names.insert(graph_.value(id).name);
    graph_ = transform::prune(graph_);
    if (options_.parameters_as_state) choose_parameters(names);
    value_or_throw(graph::verify(graph_, op::infer_types));
    findings_.nodes = static_cast<std::int64_t>(graph_.node_count());
    if (mode_ == ImportMode::whole) return;  // who computes the graph asks what it costs elsewhere
    const op::Cost cost = op::cost(graph_);
    findings_.flops = cost.flops;
    findings_.bytes = cost.bytes;
  }

  void choose_parameters(const std::set<std::string>& names) {
    std::set<graph::ValueId> read;
    for (const graph::Node& node : graph_.nodes())
      for (graph::ValueId input : node.inputs)
        if (input.valid() && names.contains(graph_.value(input).name)) read.insert(input);
    try {
      findings_.initializers =
          choose_trained(graph_, read, said_of_initializers(file_.metadata), options_.choice);
    } catch (const Error& error) {
      wrong_choice_ = error;
      throw AlreadyReported();
    }
    graph_ = serving_form(parameters_to_states(graph_, findings_.initializers));
  }

  // --- names

  // The value of a name. Throws AlreadyReported when what should have given it failed.
  Var read(std::string_view name, Scope& scope) {
    Entry* entry = scope.find(name);
    if (!entry)
      throw Error(ErrorCode::bad_file, fmt::format("reads '{}', which nothing gives", name), {},
                  "the file is damaged, or its nodes are on a cycle");
    if (entry->kind == Entry::Kind::failed) throw AlreadyReported();
    if (entry->kind == Entry::Kind::absent)
      refuse_node(fmt::format("reads '{}', an output that its node does not give here", name));
    if (entry->kind == Entry::Kind::value) return entry->value;
    const Entry initializer = *entry;
    *entry = Entry::failure();
    const Var value = load(initializer, std::string(name));
    *entry = Entry::of(value);
    return value;
  }

  // --- nodes

  void import_node(const NodeProto& node, Scope& scope) {
    count_step();
    if (std::ranges::all_of(node.outputs, &std::string_view::empty)) return;  // nobody can read what it gives
    for (std::string_view output : node.outputs)
      if (!output.empty()) scope.set(output, Entry::failure());
    const std::int64_t opset = opset_of(node, scope);
    guard(
        place(node, scope), [&] { take(node, opset, scope); }, operator_name(node), opset);
  }

  // Graphs and functions inside each other can ask for more steps than anybody can wait for, without ever
  // adding a node.
  void count_step() {
    if (++steps_ <= steps_a_node * options_.most_nodes) return;
    report({"model", "", 0, "its loops and functions take more steps than an import may"});
    throw AlreadyReported();
  }

  static std::int64_t opset_of(const NodeProto& node, const Scope& scope) {
    const auto found = scope.opsets().find(node.domain);
    return found == scope.opsets().end() ? 1 : found->second;
  }

  void take(const NodeProto& node, std::int64_t opset, Scope& scope) {
    const auto function = file_.functions.find(function_key(node.domain, node.op_type, node.overload));
    const bool is_ours = node.domain == own_domain && find_adapter(own_domain, node.op_type, opset);
    const bool is_function = function != file_.functions.end() && !is_ours;
    const Adapt adapt = is_function ? nullptr : find_adapter(node.domain, node.op_type, opset);
    if (!is_function && !adapt) refuse_node(reason_without_adapter(node.domain, node.op_type));
    CallAttributes attributes;
    for (Bytes bytes : node.attributes)
      add_attribute(parse_attribute(bytes), scope.call(), *file_.external, attributes);
    if (!is_function && node.domain.empty()) check_attributes(node.op_type, attributes);
    attributes.values.erase("consumed_inputs");  // a hint about memory, gone since operator set 6
    std::vector<Var> inputs;
    for (std::string_view name : node.inputs) inputs.push_back(name.empty() ? Var() : read(name, scope));
    const std::size_t first_fresh = graph_.value_count();
    const std::vector<Var> outputs =
        is_function ? call(function->second, node, std::move(inputs), std::move(attributes), scope)
                    : adapt_node(node, opset, adapt, std::move(inputs), std::move(attributes), scope);
    name_outputs(node, outputs, first_fresh, scope);
  }

  static void check_attributes(std::string_view op, const CallAttributes& attributes) {
    auto known = attribute_names(op);
    if (!known) return;
    known->push_back("consumed_inputs");
    const auto check = [&](const std::string& name) {
      if (std::ranges::find(*known, name) == known->end())
        refuse_node(fmt::format("has an attribute '{}', which {} has in no operator set", name, op),
                    unknown_name_hint(name, *known));
    };
    for (const auto& [name, value] : attributes.values) check(name);
    for (const auto& [name, bytes] : attributes.graphs) check(name);
  }

  std::vector<Var> adapt_node(const NodeProto& node, std::int64_t opset, Adapt adapt, std::vector<Var> inputs,
                              CallAttributes attributes, Scope& scope) {
    NodeImport imported{.emitter = emitter_,
                        .op = node.op_type,
                        .domain = node.domain,
                        .opset = opset,
                        .inputs = std::move(inputs),
                        .wanted = {},
                        .attributes = std::move(attributes.values),
                        .subgraphs = std::move(attributes.graphs),
                        .run_subgraph = {}};
    imported.bound = bound_for(node, scope);
    for (std::string_view output : node.outputs) imported.wanted.push_back(!output.empty());
    while (imported.wanted.size() > 1 && !imported.wanted.back()) imported.wanted.pop_back();
    imported.run_subgraph = [&](Bytes graph, const std::vector<Var>& arguments, const std::string& label) {
      const std::string_view owner = node.name.empty() ? node.op_type : node.name;
      return run_subgraph(graph, arguments, fmt::format("{}{}/{}/", scope.prefix(), owner, label), scope);
    };
    emitter_.builder().set_name(node.name.empty() ? std::string() : scope.prefix() + std::string(node.name));
    if (!takes_sequences(node.domain, node.op_type)) require_tensors(imported.inputs);
    return adapt(imported);
  }

  // What the call says of results of this node.
  std::optional<std::int64_t> bound_for(const NodeProto& node, const Scope& scope) {
    for (std::size_t i = 0; i < options_.bounds.size(); ++i) {
      const auto named = [&](std::string_view name) {
        return !name.empty() && fits(options_.bounds[i].name, scope.prefix() + std::string(name));
      };
      if (!named(node.name) && std::ranges::none_of(node.outputs, named)) continue;
      bounds_met_.insert(i);
      return options_.bounds[i].most;
    }
    return {};
  }

  void require_bounds_met() {
    for (std::size_t i = 0; i < options_.bounds.size(); ++i)
      if (!bounds_met_.contains(i))
        wrong_choice_ = Error(ErrorCode::invalid_argument, "no node of the model has this name, or gives it",
                              "--bound " + options_.bounds[i].name,
                              "superstep onnx check names the nodes whose results depend on the data");
  }

  void require_tensors(const std::vector<Var>& inputs) const {
    for (const Var& input : inputs)
      if (emitter_.sequence(input)) refuse_node("reads a sequence, and works on tensors alone");
  }

  void name_outputs(const NodeProto& node, const std::vector<Var>& outputs, std::size_t first_fresh,
                    Scope& scope) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= outputs.size() || !outputs[i].valid()) {
        scope.set(node.outputs[i], Entry::absence());
        continue;
      }
      if (outputs[i].id().index() >= first_fresh)
        graph_.rename(outputs[i].id(), scope.prefix() + std::string(node.outputs[i]));
      scope.set(node.outputs[i], Entry::of(outputs[i]));
    }
  }

  // --- graphs inside: subgraphs and functions

  const SubgraphProto& parsed(Bytes bytes) {
    auto& entry = subgraphs_[bytes.data()];
    if (!entry) {
      auto subgraph = std::make_unique<SubgraphProto>();
      subgraph->graph = parse_graph(bytes);
      subgraph->nodes = ordered_nodes(subgraph->graph.nodes);
      entry = std::move(subgraph);
    }
    return *entry;
  }

  static void check_depth(const Scope& scope) {
    if (scope.depth() >= deepest_scope)
      refuse_node(fmt::format("graphs or functions are nested deeper than {}", deepest_scope));
  }

  std::vector<Var> run_subgraph(Bytes bytes, const std::vector<Var>& arguments, std::string prefix,
                                const Scope& outer) {
    check_depth(outer);
    const SubgraphProto& subgraph = parsed(bytes);
    if (arguments.size() > subgraph.graph.inputs.size())
      refuse_node(fmt::format("its graph takes {} inputs, and is given {}", subgraph.graph.inputs.size(),
                              arguments.size()));
    Scope scope(&outer, outer.opsets(), std::move(prefix));
    add_initializers(subgraph.graph, scope);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      scope.set(subgraph.graph.inputs[i].name, Entry::of(arguments[i]));
    for (const NodeProto& node : subgraph.nodes) import_node(node, scope);
    std::vector<Var> outputs;
    for (const NamedBytes& output : subgraph.graph.outputs) outputs.push_back(read(output.name, scope));
    return outputs;
  }

  std::vector<Var> call(const FunctionProto& function, const NodeProto& node, const std::vector<Var>& inputs,
                        CallAttributes attributes, const Scope& caller) {
    check_depth(caller);
    if (inputs.size() > function.inputs.size())
      refuse_node(fmt::format("the function takes {} inputs, and is given {}", function.inputs.size(),
                              inputs.size()));
    for (Bytes bytes : function.attribute_defaults) {
      const AttributeProto proto = parse_attribute(bytes);
      if (!attributes.values.has(proto.name) && !attributes.graphs.contains(proto.name))
        add_attribute(proto, nullptr, *file_.external, attributes);
    }
    Opsets opsets;
    for (const OpsetImport& opset : function.opsets) opsets[std::string(opset.domain)] = opset.version;
    const std::string label(node.name.empty() ? node.op_type : node.name);
    Scope scope =
        Scope::of_function(caller, opsets, attributes, fmt::format("{}{}/", caller.prefix(), label));
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
      scope.set(function.inputs[i], Entry::of(i < inputs.size() ? inputs[i] : Var()));
    for (const NodeProto& inner : ordered_nodes(function.nodes)) import_node(inner, scope);
    std::vector<Var> outputs;
    for (std::size_t i = 0; i < std::min(function.outputs.size(), node.outputs.size()); ++i)
      outputs.push_back(node.outputs[i].empty() ? Var() : read(function.outputs[i], scope));
    return outputs;
  }

  const File& file_;
  const ImportOptions& options_;
  ImportMode mode_;
  graph::Graph graph_;
  Emitter emitter_;
  Opsets opsets_;
  Findings findings_;
  std::int64_t steps_ = 0;
  std::optional<Error> wrong_choice_;  // of what is trained: the call's fault
  std::set<graph::ValueId> parameters_;
  std::set<std::size_t> bounds_met_;  // by number of the call's
  std::map<const std::byte*, std::unique_ptr<SubgraphProto>> subgraphs_;
};  // namespace

}  // namespace

Imported import_file(const File& file, const ImportOptions& options, ImportMode mode) {
  return Importer(file, options, mode).run();
}

}  // namespace superstep::onnx
