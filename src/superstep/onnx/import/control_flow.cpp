// If, Loop and Scan, resolved at import: a graph has no control flow, so that every target and every
// derivative works with what they compute.
//
// If: a condition that is known takes its branch; else both branches are computed and the results selected.
// Loop: unrolled while its condition is known. From the first trip on whose condition depends on the data,
// the remaining trips, up to the known maximum, are computed and their results masked.
// Scan: unrolled.
#include <fmt/format.h>

#include "superstep/onnx/adapters/adapters.h"
#include "superstep/onnx/bounded/rules.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

Bytes subgraph(const NodeImport& node, std::string_view name) {
  const auto found = node.subgraphs.find(name);
  if (found == node.subgraphs.end())
    throw Error(ErrorCode::bad_graph, fmt::format("attribute '{}' is missing", name));
  return found->second;
}

Var as_scalar(NodeImport& node, Var x, std::string_view what) {
  if (x.shape().element_count() != 1)
    throw Error(ErrorCode::bad_graph, fmt::format("{} must have one element", what));
  return node.emitter.reshape(x, Shape{});
}

Var select(NodeImport& node, Var condition, Var a, Var b, std::string_view what) {
  if (a.id() == b.id()) return a;
  if (node.emitter.bounds().any()) return select_bounded(node.emitter, condition, a, b);
  if (a.type() != b.type())
    refuse_node(fmt::format("{} is {} one way and {} the other, and the condition depends on the data", what,
                            graph::to_string(a.type()), graph::to_string(b.type())));
  return node.emitter.emit1("Where", {condition, a, b});
}

std::vector<Var> run_branch(NodeImport& node, const char* name) {
  return node.run_subgraph(subgraph(node, name), {}, name);
}

std::vector<Var> import_if(NodeImport& node) {
  const Var condition = as_scalar(node, node.input(0), "the condition");
  if (const Tensor* known = node.emitter.known(condition))
    return run_branch(node, known->at(0) != 0 ? "then_branch" : "else_branch");
  const std::vector<Var> a = run_branch(node, "then_branch"), b = run_branch(node, "else_branch");
  if (a.size() != b.size())
    throw Error(ErrorCode::bad_graph, "its branches give different numbers of outputs");
  std::vector<Var> outputs;
  for (std::size_t i = 0; i < a.size(); ++i)
    outputs.push_back(select(node, condition, a[i], b[i], fmt::format("output {}", i)));
  return outputs;
}

// The values of one output of a scan or loop, a trip each, put together along a new axis.
Var stack(NodeImport& node, const std::vector<Var>& parts, std::int64_t axis) {
  std::vector<Var> rows;
  for (Var part : parts)
    rows.push_back(node.emitter.emit1("Unsqueeze", {part, node.emitter.integers({axis})}));
  if (rows.size() == 1) return rows[0];
  const int at = op::checked_axis(axis, rows[0].shape().rank());
  return node.emitter.emit1("Concat", std::move(rows), {{"axis", std::int64_t{at}}});
}

class LoopImport {
 public:
  explicit LoopImport(NodeImport& node) : node_(node), body_(subgraph(node, "body")) {
    if (node.inputs.size() < 2) node.inputs.resize(2);
    carried_.assign(node.inputs.begin() + 2, node.inputs.end());
    for (const Var& value : carried_)
      if (!value.valid()) throw Error(ErrorCode::bad_graph, "a carried value is missing");
    const auto outputs = static_cast<std::size_t>(node.output_count());
    if (outputs > carried_.size()) scans_.resize(outputs - carried_.size());
  }

  std::vector<Var> run() {
    read_limits();
    for (std::int64_t trip = 0; trip < most_trips_; ++trip) {
      if (!continues()) break;
      if (trip == longest_loop)
        refuse_node(fmt::format("takes more than {} trips, and loops are unrolled", longest_loop));
      take_trip(trip);
    }
    std::vector<Var> outputs = carried_;
    for (std::size_t i = 0; i < scans_.size(); ++i) outputs.push_back(scan_output(i));
    return outputs;
  }

 private:
  static constexpr std::int64_t longest_loop = 100000;

  void read_limits() {
    bounded_ = node_.has(0);
    if (bounded_) most_trips_ = node_.known_integer(0, "M");
    if (node_.has(1)) condition_ = as_scalar(node_, node_.input(1), "the condition");
  }

  // Another trip? Once the condition depends on the data, all trips are taken and masked.
  bool continues() {
    if (active_.valid() || !condition_.valid()) return true;
    if (const Tensor* known = node_.emitter.known(condition_)) return known->at(0) != 0;
    if (!bounded_ || most_trips_ > longest_loop)
      refuse_node("its condition depends on the data, and no maximum of trips is known",
                  "a loop can be unrolled when its input M is constant");
    active_ = condition_;
    return true;
  }

  void take_trip(std::int64_t trip) {
    std::vector<Var> arguments{
        node_.emitter.constant(Tensor::scalar<std::int64_t>(trip)),
        active_.valid() || !condition_.valid() ? node_.emitter.constant(Tensor::scalar(true)) : condition_};
    arguments.insert(arguments.end(), carried_.begin(), carried_.end());
    const std::vector<Var> results = node_.run_subgraph(body_, arguments, fmt::format("body[{}]", trip));
    if (results.size() < 1 + carried_.size() + scans_.size())
      throw Error(ErrorCode::bad_graph, "its body gives fewer outputs than it has");
    keep(results);
  }

  void keep(const std::vector<Var>& results) {
    const Var next_condition = as_scalar(node_, results[0], "the condition");
    for (std::size_t i = 0; i < carried_.size(); ++i)
      carried_[i] = active_.valid() ? select(node_, active_, results[1 + i], carried_[i],
                                             fmt::format("carried value {}", i))
                                    : results[1 + i];
    if (active_.valid() && !scans_.empty())
      refuse_node("how often it runs depends on the data, so its scan outputs have no fixed size");
    for (std::size_t i = 0; i < scans_.size(); ++i) scans_[i].push_back(results[1 + carried_.size() + i]);
    if (active_.valid()) active_ = node_.emitter.emit1("And", {active_, next_condition});
    condition_ = next_condition;
  }

  Var scan_output(std::size_t index) {
    if (scans_[index].empty()) {
      if (!node_.wants(carried_.size() + index)) return {};
      refuse_node("runs no trip, so the shape of its scan outputs is not known");
    }
    return stack(node_, scans_[index], 0);
  }

  NodeImport& node_;
  Bytes body_;
  bool bounded_ = false;
  std::int64_t most_trips_ = INT64_MAX;
  Var condition_, active_;  // active: whether the present trip counts, once that depends on the data
  std::vector<Var> carried_;
  std::vector<std::vector<Var>> scans_;
};

std::vector<Var> import_loop(NodeImport& node) { return LoopImport(node).run(); }

// One sequence of a Scan: which axis of each input is scanned and which way, and where outputs are stacked.
class ScanImport {
 public:
  ScanImport(NodeImport& node, std::vector<Var> states, std::vector<Var> inputs)
      : node_(node), body_(subgraph(node, "body")), states_(std::move(states)), inputs_(std::move(inputs)) {
    const std::size_t scan_outputs = static_cast<std::size_t>(node.output_count()) - states_.size();
    input_axes_ = list("scan_input_axes", inputs_.size());
    input_backwards_ = list("scan_input_directions", inputs_.size());
    output_axes_ = list("scan_output_axes", scan_outputs);
    output_backwards_ = list("scan_output_directions", scan_outputs);
    scans_.resize(scan_outputs);
  }

  std::vector<Var> run() {
    const std::int64_t trips = length();
    for (std::int64_t trip = 0; trip < trips; ++trip) take_trip(trip, trips);
    std::vector<Var> outputs = states_;
    for (std::size_t i = 0; i < scans_.size(); ++i) outputs.push_back(scan_output(i));
    return outputs;
  }

 private:
  std::vector<std::int64_t> list(const char* name, std::size_t size) const {
    std::vector<std::int64_t> values =
        node_.attributes.has(name) ? node_.attributes.integers(name) : std::vector<std::int64_t>(size, 0);
    if (values.size() != size)
      throw Error(ErrorCode::bad_graph,
                  fmt::format("attribute '{}' has {} entries, expected {}", name, values.size(), size));
    return values;
  }

  std::int64_t length() const {
    std::int64_t trips = -1;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const int axis = op::checked_axis(input_axes_[i], inputs_[i].shape().rank(), "scan axis");
      if (trips >= 0 && inputs_[i].shape()[axis] != trips)
        throw Error(ErrorCode::bad_graph, "its scanned inputs have different lengths");
      trips = inputs_[i].shape()[axis];
    }
    return trips;
  }

  void take_trip(std::int64_t trip, std::int64_t trips) {
    std::vector<Var> arguments = states_;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::int64_t at = input_backwards_[i] ? trips - 1 - trip : trip;
      const Var index = node_.emitter.constant(Tensor::scalar<std::int64_t>(at));
      arguments.push_back(node_.emitter.emit1("Gather", {inputs_[i], index}, {{"axis", input_axes_[i]}}));
    }
    const std::vector<Var> results = node_.run_subgraph(body_, arguments, fmt::format("body[{}]", trip));
    if (results.size() < states_.size() + scans_.size())
      throw Error(ErrorCode::bad_graph, "its body gives fewer outputs than it has");
    std::copy_n(results.begin(), states_.size(), states_.begin());
    for (std::size_t i = 0; i < scans_.size(); ++i) scans_[i].push_back(results[states_.size() + i]);
  }

  Var scan_output(std::size_t index) {
    std::vector<Var>& parts = scans_[index];
    if (parts.empty()) refuse_node("scans nothing, so the shape of its outputs is not known");
    if (output_backwards_[index]) std::ranges::reverse(parts);
    return stack(node_, parts, output_axes_[index]);
  }

  NodeImport& node_;
  Bytes body_;
  std::vector<Var> states_, inputs_;
  std::vector<std::int64_t> input_axes_, input_backwards_, output_axes_, output_backwards_;
  std::vector<std::vector<Var>> scans_;
};

void split_scan_inputs(NodeImport& node, std::size_t first, std::vector<Var>& states,
                       std::vector<Var>& scanned) {
  const std::int64_t count = node.take_integer("num_scan_inputs", 0);
  const auto given = static_cast<std::int64_t>(node.inputs.size() - first);
  if (count < 1 || count > given || static_cast<std::int64_t>(node.output_count()) < given - count)
    throw Error(ErrorCode::bad_graph, "attribute num_scan_inputs does not fit the inputs");
  for (std::size_t i = first; i < node.inputs.size(); ++i) {
    const bool is_state = static_cast<std::int64_t>(i - first) < given - count;
    (is_state ? states : scanned).push_back(node.input(i));
  }
}

std::vector<Var> import_scan(NodeImport& node) {
  std::vector<Var> states, scanned;
  split_scan_inputs(node, 0, states, scanned);
  return ScanImport(node, states, scanned).run();
}

Var sample(NodeImport& node, Var x, std::int64_t index) {
  return node.emitter.emit1("Gather", {x, node.emitter.constant(Tensor::scalar(index))},
                            {{"axis", std::int64_t{0}}});
}

// The Scan of operator set 8 had a batch axis in front of everything, and lengths a sample as its first
// input.
std::vector<Var> import_batched_scan(NodeImport& node) {
  if (node.has(0)) refuse_node("lengths of sequences (its first input) are not supported");
  if (node.attributes.has("directions")) {
    node.attributes.set("scan_input_directions", node.attributes.integers("directions"));
    node.attributes.erase("directions");
  }
  std::vector<Var> states, scanned;
  split_scan_inputs(node, 1, states, scanned);
  if (scanned[0].shape().rank() == 0) throw Error(ErrorCode::bad_graph, "a scanned input has no batch axis");
  std::vector<std::vector<Var>> outputs(static_cast<std::size_t>(node.output_count()));
  for (std::int64_t i = 0; i < scanned[0].shape()[0]; ++i) {
    std::vector<Var> one_states, one_scanned;
    for (Var state : states) one_states.push_back(sample(node, state, i));
    for (Var input : scanned) one_scanned.push_back(sample(node, input, i));
    const std::vector<Var> results = ScanImport(node, one_states, one_scanned).run();
    for (std::size_t k = 0; k < outputs.size(); ++k) outputs[k].push_back(results.at(k));
  }
  std::vector<Var> stacked;
  for (const std::vector<Var>& parts : outputs) {
    if (parts.empty()) refuse_node("scans an empty batch");
    stacked.push_back(stack(node, parts, 0));
  }
  return stacked;
}

constexpr std::int64_t oldest = 1;

constexpr Adapter table[] = {
    {"If", oldest, any_later, import_if},
    {"Loop", oldest, any_later, import_loop},
    {"Scan", oldest, 8, import_batched_scan},
    {"Scan", 9, any_later, import_scan},
};

}  // namespace

std::span<const Adapter> control_flow_adapters() { return table; }

}  // namespace superstep::onnx
