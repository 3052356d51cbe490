#include "superstep/target/pjrt/stablehlo/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/creation.h"
#include "superstep/target/pjrt/stablehlo/inlined.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/target/pjrt/stablehlo/preparation.h"
#include "superstep/transform/expand.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::stablehlo {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

using transform::Rewrite;
using transform::Var;

bool is_reduced(ElementType element) { return element == ElementType::f16 || element == ElementType::bf16; }

// Products keep narrow types, which devices multiply faster and sum in f32 anyway.
bool is_widened(const Graph& graph, const Node& node) {
  const op::WorkKind work = op::traits_of(node.op).work;
  if (work == op::WorkKind::product || work == op::WorkKind::attention || work == op::WorkKind::recurrent)
    return false;
  return std::ranges::any_of(node.inputs,
                             [&](ValueId id) { return id.valid() && is_reduced(graph.type(id).element); });
}

Var in_f32(Var value) {
  return value.valid() && is_reduced(value.element()) ? op::cast(value, ElementType::f32) : value;
}

// The parts in f32, so that f16 and bf16 are rounded once, at the end. What a decomposition asks of its
// outputs, which are not there yet, nodes say that nobody reads.
std::vector<Var> widened_parts(Rewrite& rewrite, const Node& node) {
  std::vector<Var> inputs, outputs;
  for (Var input : rewrite.now(node.inputs)) inputs.push_back(in_f32(input));
  for (ValueId id : node.outputs) {
    const graph::ValueType type = id.valid() ? rewrite.old().type(id) : graph::ValueType{};
    const ElementType element = is_reduced(type.element) ? ElementType::f32 : type.element;
    outputs.push_back(id.valid() ? op::constant_of_shape(rewrite.builder(), element, type.shape) : Var());
  }
  std::vector<Var> results =
      op::get(node.op).decompose({rewrite.builder(), node.attributes, inputs, outputs});
  results.resize(node.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].valid() && node.outputs[i].valid())
      results[i] = op::cast(results[i], rewrite.old().type(node.outputs[i]).element);
  return results;
}

// Parts may be made of parts themselves.
Graph in_parts(const Graph& graph) {
  Graph result = graph;
  const auto has_parts = [&](const Node& node) { return is_made_of_parts(result, node); };
  while (std::ranges::any_of(result.nodes(), has_parts))
    result = transform::rewrite(result, [](Rewrite& rewrite, const Node& node) {
      if (!is_made_of_parts(rewrite.old(), node)) return rewrite.keep(node);
      std::vector<Var> results = is_widened(rewrite.old(), node) ? widened_parts(rewrite, node)
                                                                 : transform::decomposition(rewrite, node);
      results.resize(node.outputs.size());
      rewrite.replace(node, results);
    });
  return transform::prune(result);
}

// MLIR's names of functions are letters, digits and underscores.
std::string module_name(const std::string& name) {
  std::string text;
  for (char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text.empty() ? "graph" : text;
}

// The attributes of an argument or a result, behind its type.
std::string in_braces(const std::vector<std::string>& attributes) {
  return attributes.empty() ? "" : fmt::format(" {{{}}}", fmt::join(attributes, ", "));
}

// `placed`: the results' types, with where they lie.
std::string module_text(const std::string& name, int devices, std::string_view signature,
                        std::string_view placed, std::string_view body, const std::vector<Value>& results) {
  std::string names, types;
  for (const Value& result : results) {
    names += (names.empty() ? " " : ", ") + result.name;
    types += (types.empty() ? " : " : ", ") + to_text(result.type);
  }
  return fmt::format(
      "module @{} attributes {{mhlo.num_partitions = {} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
      "  func.func public @main({}) -> ({}) {{\n{}    func.return{}{}\n  }}\n}}\n",
      module_name(name), devices, signature, placed, body, names, types);
}

std::string joined(const std::string& list, const std::string& next) {
  return list.empty() ? next : list + ", " + next;
}

class Writer {
 public:
  Writer(const Graph& graph, const ProgramOptions& options)
      : graph_(graph), options_(options), nodes_(emit_, graph, options.first_row) {}

  Program write() {
    for (const graph::Update& update : graph_.updates()) program_.changed.push_back(update.state);
    take_arguments();
    if (options_.prepared)
      nodes_.prepare_by(preparation_.emplace(graph_, program_.constants, options_.first_row));
    nodes_.lower();
    std::vector<Value> results;
    for (const graph::Output& output : graph_.outputs()) results.push_back(nodes_.value(output.value));
    for (const graph::Update& update : graph_.updates()) results.push_back(nodes_.value(update.next));
    if (!emit_.refusals().empty()) results.push_back(truths_of(emit_, program_.refusals));
    if (preparation_) finish_preparation();
    finish(results);
    return std::move(program_);
  }

 private:
  void take_arguments() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      take_argument(graph_.inputs()[i], axis(&Sharding::inputs, i));
    for (std::size_t i = 0; i < graph_.states().size(); ++i)
      take_argument(graph_.states()[i], axis(&Sharding::states, i));
    const std::vector<int> uses = graph_.use_counts();
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const graph::Value& value = graph_.values()[i];
      const bool large =
          options_.constants_as_arguments_above > 0 && value.type.shape.element_count() > 0 &&
          static_cast<std::size_t>(value.type.shape.element_count()) * size_in_bytes(value.type.element) >
              options_.constants_as_arguments_above;
      if (value.kind != graph::ValueKind::constant || uses[i] == 0 || !large) continue;
      program_.constants.push_back(ValueId(static_cast<std::uint32_t>(i)));
      take_argument(program_.constants.back(), whole);
    }
  }

  int devices() const { return options_.sharding ? options_.sharding->devices : 1; }
  int axis(std::vector<int> Sharding::*axes, std::size_t index) const {
    return devices() > 1 ? (options_.sharding->*axes)[index] : whole;
  }

  // Where there are several devices each argument and result says how it lies on them.
  std::vector<std::string> placement(int axis, const Type& type) const {
    if (devices() == 1) return {};
    return {fmt::format("mhlo.sharding = \"{}\"", sharding_text(axis, type.shape.rank(), devices()))};
  }

  void take_argument(ValueId id, int axis) {
    const graph::Value& value = graph_.value(id);
    const Type type{value.type.element, value.type.shape};
    const std::string name = fmt::format("%arg{}", arguments_++);
    std::vector<std::string> attributes = placement(axis, type);
    const auto changed = std::ranges::find(program_.changed, id);
    if (value.kind == graph::ValueKind::state && changed != program_.changed.end())
      attributes.push_back(fmt::format(
          "tf.aliasing_output = {} : i32",
          graph_.outputs().size() + static_cast<std::size_t>(changed - program_.changed.begin())));
    signature_ = joined(signature_, fmt::format("{}: {}{}", name, to_text(type), in_braces(attributes)));
    nodes_.set(id, emit_.argument(name, type));
  }

  void finish_preparation() {
    for (const Value& argument : preparation_->arguments())
      signature_ = joined(signature_, argument.name + ": " + to_text(argument.type));
    if (preparation_->arguments().empty()) return;
    const Preparation::Text text = preparation_->finish();
    std::string signature, placed;
    for (const auto& [name, type] : text.arguments)
      signature = joined(signature, name + ": " + to_text(type));
    for (const Value& result : text.results) placed = joined(placed, to_text(result.type));
    program_.prepared = {
        .text = module_text(graph_.name() + "_prepared", 1, signature, placed, text.body, text.results),
        .results = preparation_->arguments().size(),
        .refusals = text.refusals};
  }

  // Outputs, then states, then the truths of refusals, which every device knows.
  int axis_of_result(std::size_t index) const {
    const std::size_t outputs = graph_.outputs().size();
    if (index < outputs) return axis(&Sharding::outputs, index);
    if (index >= outputs + program_.changed.size()) return whole;
    const auto state = std::ranges::find(graph_.states(), program_.changed[index - outputs]);
    return axis(&Sharding::states, static_cast<std::size_t>(state - graph_.states().begin()));
  }

  void finish(const std::vector<Value>& results) {
    std::string placed;
    for (std::size_t i = 0; i < results.size(); ++i)
      placed =
          joined(placed, to_text(results[i].type) + in_braces(placement(axis_of_result(i), results[i].type)));
    program_.text = module_text(graph_.name(), devices(), signature_, placed, emit_.take(), results);
  }

  const Graph& graph_;
  const ProgramOptions& options_;
  Emitter emit_;
  NodesInProgram nodes_;
  std::optional<Preparation> preparation_;
  Program program_;
  std::string signature_;
  int arguments_ = 0;
};

}  // namespace

std::vector<transform::Pass> program_passes() {
  std::vector<transform::Pass> passes = {{.name = "made_of_parts",
                                          .run = transform::rebuild(in_parts),
                                          .summary = "operators without a lowering as what they are made of",
                                          .required = "there is no other way to run them",
                                          .rounding = transform::Pass::sums}};
  const auto standard = transform::standard_passes();
  passes.insert(passes.end(), standard.begin(), standard.end());
  return passes;
}

Program write_program(const Graph& graph, const ProgramOptions& options) {
  return Writer(graph, options).write();
}

}  // namespace superstep::target::stablehlo
