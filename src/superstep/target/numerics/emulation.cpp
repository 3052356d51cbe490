#include "superstep/target/numerics/emulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "superstep/base/stopwatch.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/strided.h"
#include "superstep/target/numerics/part.h"
#include "superstep/target/numerics/product.h"
#include "superstep/target/states.h"
#include "superstep/transform/expand.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target {

const Target& cpu_target();

namespace numerics {
namespace {

using graph::NodeId;
using graph::ValueId;
using graph::ValueKind;

// Attention and sums of products that decompose into products of matrices become those, so that they are
// emulated.
bool comes_apart(const graph::Node& node) {
  const op::Definition& definition = op::get(node.op);
  if (!definition.decompose || definition.traits.product_kind != op::ProductKind::none) return false;
  const op::WorkKind work = definition.traits.work;
  const bool products = work == op::WorkKind::attention || work == op::WorkKind::product;
  return products && definition.traits.elements == op::Elements::floating;
}

graph::Graph prepared(graph::Graph graph) {
  graph = prepare_graph(std::move(graph));
  for (int depth = 0; depth < 4 && std::ranges::any_of(graph.nodes(), comes_apart); ++depth)
    graph =
        transform::prune(transform::rewrite(graph, [](transform::Rewrite& rewrite, const graph::Node& node) {
          comes_apart(node) ? rewrite.replace(node, transform::decomposition(rewrite, node))
                            : rewrite.keep(node);
        }));
  return prepare_graph(std::move(graph));
}

// Types that somebody chose already would be rounded twice.
void require_f32(const graph::Graph& graph, const std::string& name) {
  for (const graph::Value& value : graph.values())
    if (value.type.element == ElementType::f16 || value.type.element == ElementType::bf16)
      throw Error(ErrorCode::unsupported,
                  fmt::format("'{}' is {} already, and an arithmetic is emulated on models in f32",
                              value.name, superstep::name_of(value.type.element)),
                  name, "use --precision f32; --numerics says what is computed in shorter types");
}

bool is_rounded_f32(const graph::Graph& graph, ValueId id) {
  return id.valid() && graph.type(id).element == ElementType::f32;
}

// A run of memory that is taken again: what is read whole or written whole need not be zeroed.
class Shelf {
 public:
  Tensor take(const graph::ValueType& type) {
    auto& free = free_[{static_cast<int>(type.element), type.shape.element_count()}];
    if (free.empty()) return Tensor(type.element, type.shape);
    Tensor tensor = std::move(free.back());
    free.pop_back();
    return tensor.reshaped(type.shape);
  }
  void put(Tensor tensor) {
    free_[{static_cast<int>(tensor.type()), tensor.element_count()}].push_back(std::move(tensor));
  }

 private:
  std::map<std::pair<int, std::int64_t>, std::vector<Tensor>> free_;
};

// A node, or the update of a training step, which is one step.
struct Step {
  NodeId node;
  Way way = Way::rounded;
  Arithmetic arithmetic;
  Emulated emulated;
  std::unique_ptr<Executable> executable;  // of rounded and updated ones
  std::vector<ValueId> inputs, outputs;    // of the executable
};

}  // namespace

const char* name_of(Way way) {
  static constexpr const char* names[] = {"emulated", "in f32, then rounded", "moved", "updated in f32"};
  return names[static_cast<std::size_t>(way)];
}

class Emulation::Plan {
 public:
  Plan(const GraphAtBatch& model, const CompileOptions& options, EmulationOptions emulation)
      : options_(options),
        emulation_(std::move(emulation)),
        ports_(batched_ports(model, options.batch, options.batch)),
        graph_(prepared(model(options.batch))),
        states_(graph_),
        pool_(options.threads) {
    const Stopwatch watch;
    require_f32(graph_, emulation_.name);
    make_steps();
    count_uses();
    compile_seconds_ = watch.seconds();
  }

  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  PlanSummary summary() const;
  Tensor state(std::string_view name) const;
  void set_state(std::string_view name, const Tensor& value);
  Step& step_of(NodeId node) { return steps_[step_of_node_[node.index()]]; }

  CompileOptions options_;
  EmulationOptions emulation_;
  BatchedPorts ports_;
  graph::Graph graph_;
  States states_;
  Watch watch_;
  std::uint32_t run_ = 0;

 private:
  void make_steps();
  Step step_for(NodeId id);
  Step compiled(std::span<const NodeId> nodes, bool with_states);
  void count_uses();

  void execute(Step& step);
  void execute_product(Step& step);
  void execute_part(Step& step);
  void keep(Step& step, std::size_t output, Tensor value, bool round);
  void find_parameters();
  void update_states();
  // What a step reads: parameters, constants and inputs as they are kept in its type.
  const Tensor& value(ValueId id) const { return values_[root_[id.index()]]; }
  Tensor read(ValueId id, const superstep::numerics::Narrowing& how, NodeId node);
  Tensor operand(const Step& step, int input, Stream stream);
  const float* bias_of(const Step& step);
  void give_back(const Step& step, int input, const Tensor& operand);
  void release(ValueId id);
  bool in_executable(std::string_view name) const { return update_ && owned_.contains(name); }
  std::uint64_t key(const Arithmetic& arithmetic) const {
    return (arithmetic.seed & 0xffffffffu) | std::uint64_t{run_} << 32;
  }
  static std::uint32_t stream(NodeId node, Stream which) {
    return static_cast<std::uint32_t>(node.index()) * streams_of_a_node + static_cast<std::uint32_t>(which);
  }

  ThreadPool pool_;
  std::vector<Step> steps_;
  std::vector<std::size_t> step_of_node_;
  Step* update_ = nullptr;
  std::set<std::string, std::less<>> owned_;                // states that the update keeps
  std::set<std::string, std::less<>> parameters_;           // those of them that the model reads
  std::vector<std::size_t> root_;                           // by value: the one whose memory it is
  std::vector<int> uses_, left_;                            // by root
  std::vector<Tensor> values_;                              // by root
  std::map<std::pair<std::size_t, int>, Tensor> narrowed_;  // of this run: parameters as they are kept
  Tensor bias_;
  Shelf shelf_;
  double compile_seconds_ = 0;
};

Step Emulation::Plan::compiled(std::span<const NodeId> nodes, bool with_states) {
  Part part = part_of(graph_, nodes, with_states);
  Step step;
  step.inputs = part.inputs, step.outputs = part.outputs;
  CompileOptions options;
  options.micro_batch = 1;
  options.threads = options_.threads;
  step.executable = cpu_target().compile([&](std::int64_t) { return part.graph; }, options);
  if (with_states)
    for (const ValueId id : part.states) owned_.insert(graph_.value(id).name);
  return step;
}

Step Emulation::Plan::step_for(NodeId id) {
  const graph::Node& node = graph_.node(id);
  const op::Traits& traits = op::traits_of(node.op);
  const bool is_view = (traits.view == op::View::same || traits.view == op::View::regroups) &&
                       node.outputs.size() == 1 && graph_.value(node.inputs[0]).kind == ValueKind::computed;
  Step step;
  Emulated emulated_node = numerics::emulated(graph_, node);
  if (is_view) {
    step.way = Way::moved;
  } else if (emulated_node.product) {
    step.way = Way::emulated;
    step.emulated = std::move(emulated_node);
  } else {
    step = compiled(std::span(&id, 1), false);
    step.way = traits.moves_bytes || traits.view != op::View::none ? Way::moved : Way::rounded;
  }
  step.node = id;
  step.arithmetic = emulation_.arithmetic_of(node);
  return step;
}

void Emulation::Plan::make_steps() {
  root_.resize(graph_.value_count());
  for (std::size_t i = 0; i < root_.size(); ++i) root_[i] = i;
  step_of_node_.resize(graph_.node_count());
  std::vector<NodeId> update;
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const NodeId id(static_cast<std::uint32_t>(i));
    if (graph_.node(id).phase == graph::Phase::update) {
      update.push_back(id);
      continue;
    }
    step_of_node_[i] = steps_.size();
    steps_.push_back(step_for(id));
    if (steps_.back().way == Way::moved && !steps_.back().executable)
      root_[graph_.node(id).outputs[0].index()] = root_[graph_.node(id).inputs[0].index()];
  }
  if (update.empty()) return;
  steps_.push_back(compiled(update, true));
  steps_.back().way = Way::updated;
  steps_.back().node = update.front();
  steps_.back().arithmetic = emulation_.base;
  for (const NodeId id : update) step_of_node_[id.index()] = steps_.size() - 1;
  update_ = &steps_.back();
  find_parameters();
}

// Not the optimizer's moments and counters: in f16 a second moment soon is zero, which the step divides by.
void Emulation::Plan::find_parameters() {
  for (const graph::Node& node : graph_.nodes()) {
    if (node.phase == graph::Phase::update) continue;
    for (const ValueId id : node.inputs)
      if (id.valid() && graph_.value(id).kind == ValueKind::state && owned_.contains(graph_.value(id).name))
        parameters_.insert(graph_.value(id).name);
  }
}

// How often each value is read by steps, outputs and updates.
void Emulation::Plan::count_uses() {
  uses_.assign(graph_.value_count(), 0);
  const auto count = [&](ValueId id) {
    if (id.valid()) ++uses_[root_[id.index()]];
  };
  for (const Step& step : steps_) {
    if (step.executable)
      for (const ValueId id : step.inputs) count(id);
    else
      for (const ValueId id : graph_.node(step.node).inputs) count(id);
  }
  for (const graph::Output& output : graph_.outputs()) count(output.value);
  for (const graph::Update& update : graph_.updates()) count(update.next);
}

void Emulation::Plan::release(ValueId id) {
  if (!id.valid()) return;
  const std::size_t root = root_[id.index()];
  if (--left_[root] > 0 || graph_.values()[root].kind != ValueKind::computed) return;
  if (values_[root].element_count() > 0) shelf_.put(std::move(values_[root]));
  values_[root] = Tensor();
}

Tensor Emulation::Plan::read(ValueId id, const superstep::numerics::Narrowing& how, NodeId node) {
  const graph::Value& described = graph_.value(id);
  const bool as_it_is =
      described.kind == ValueKind::computed || described.type.element != ElementType::f32 || how.keeps_all();
  if (as_it_is) {
    const Tensor& tensor = value(id);
    return tensor.shape() == described.type.shape ? tensor : tensor.reshaped(described.type.shape);
  }
  const int type = static_cast<int>(how.format) * 16 + static_cast<int>(how.rounding) * 4 + how.flushes * 2 +
                   how.saturates;
  auto [at, is_new] = narrowed_.try_emplace({id.index(), type});
  if (is_new) {
    at->second = shelf_.take(described.type);
    run_narrowing(value(id).as<float>().data(), at->second.as<float>().data(), at->second.element_count(),
                  how, stream(node, Stream::right), key(emulation_.base), pool_);
  }
  return at->second;
}

Tensor Emulation::Plan::operand(const Step& step, int input, Stream which) {
  const ValueId id = graph_.node(step.node).inputs[static_cast<std::size_t>(input)];
  const Arithmetic& a = step.arithmetic;
  const Tensor kept = read(id, a.results, step.node);
  if (a.operands.keeps_all() || a.operands == a.results) return kept;
  Tensor rounded = shelf_.take({ElementType::f32, kept.shape()});
  run_narrowing(kept.as<float>().data(), rounded.as<float>().data(), kept.element_count(), a.operands,
                stream(step.node, which), key(a), pool_);
  return rounded;
}

// The memory of an operand that was rounded for this step alone.
void Emulation::Plan::give_back(const Step& step, int input, const Tensor& operand) {
  if (input < 0) return;
  const ValueId id = graph_.node(step.node).inputs[static_cast<std::size_t>(input)];
  if (operand.bytes() != read(id, step.arithmetic.results, step.node).bytes()) shelf_.put(operand);
}

// Of a convolution as it is; of Gemm broadcast to the result and scaled.
const float* Emulation::Plan::bias_of(const Step& step) {
  if (step.emulated.bias < 0) return nullptr;
  const graph::Node& node = graph_.node(step.node);
  bias_ = read(node.inputs[static_cast<std::size_t>(step.emulated.bias)], step.arithmetic.results, step.node);
  if (!step.emulated.product->bias_by_place) return bias_.as<float>().data();
  const Shape& shape = graph_.type(node.outputs[0]).shape;
  const auto beta = static_cast<float>(node.attributes.number("beta", 1));
  Tensor whole(ElementType::f32, shape);
  const float* from = bias_.as<float>().data();
  float* to = whole.as<float>().data();
  op::for_each_strided(shape, op::broadcast_strides(bias_.shape(), shape), 0,
                       [&](std::int64_t i, std::int64_t at) { to[i] = beta * from[at]; });
  bias_ = std::move(whole);
  return bias_.as<float>().data();
}

void Emulation::Plan::keep(Step& step, std::size_t output, Tensor kept, bool round) {
  const ValueId id = graph_.node(step.node).outputs[output];
  if (round && is_rounded_f32(graph_, id) && !step.arithmetic.results.keeps_all())
    run_narrowing(
        kept.as<float>().data(), kept.as<float>().data(), kept.element_count(), step.arithmetic.results,
        stream(step.node, Stream::result) + static_cast<std::uint32_t>(output), key(step.arithmetic), pool_);
  if (watch_ && is_rounded_f32(graph_, id)) watch_(step.node, output, kept);
  if (left_[id.index()] == 0) return shelf_.put(std::move(kept));
  values_[root_[id.index()]] = std::move(kept);
}

void Emulation::Plan::execute_product(Step& step) {
  const Emulated& e = step.emulated;
  const graph::Node& node = graph_.node(step.node);
  const Tensor left = e.left < 0 ? Tensor() : operand(step, e.left, Stream::left);
  const Tensor right = operand(step, e.right, Stream::right);
  e.product->begin(e.left < 0 ? nullptr : left.as<float>().data(), right.as<float>().data());
  Tensor result = shelf_.take(graph_.type(node.outputs[0]));
  run_product(*e.product,
              {.arithmetic = &step.arithmetic,
               .stream = stream(step.node, Stream::sums),
               .key = key(step.arithmetic),
               .bias = bias_of(step),
               .result = result.as<float>().data()},
              pool_);
  give_back(step, e.left, left);
  give_back(step, e.right, right);
  keep(step, 0, std::move(result), false);
}

void Emulation::Plan::execute_part(Step& step) {
  std::vector<Tensor> inputs, outputs;
  const bool updates = step.way == Way::updated;
  for (const ValueId id : step.inputs)
    inputs.push_back(updates ? read(id, {}, step.node) : read(id, step.arithmetic.results, step.node));
  for (const ValueId id : step.outputs) outputs.push_back(shelf_.take(graph_.type(id)));
  step.executable->run(inputs, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (updates) {
      values_[root_[step.outputs[i].index()]] = std::move(outputs[i]);
      continue;
    }
    const graph::Node& node = graph_.node(step.node);
    const auto at = std::ranges::find(node.outputs, step.outputs[i]) - node.outputs.begin();
    keep(step, static_cast<std::size_t>(at), std::move(outputs[i]), step.way == Way::rounded);
  }
}

void Emulation::Plan::execute(Step& step) {
  if (step.executable) {
    execute_part(step);
    for (const ValueId id : step.inputs) release(id);
    return;
  }
  const graph::Node& node = graph_.node(step.node);
  if (step.way == Way::emulated) execute_product(step);
  if (step.way == Way::moved && watch_ && is_rounded_f32(graph_, node.outputs[0]))
    watch_(step.node, 0, read(node.outputs[0], {}, step.node));
  for (const ValueId id : node.inputs) release(id);
}

// States that the update keeps have been written by it.
void Emulation::Plan::update_states() {
  std::map<std::string, Tensor> after = states_.all();
  for (const graph::Update& update : graph_.updates()) {
    const std::string& name = graph_.value(update.state).name;
    const NodeId producer = graph_.value(update.next).producer;
    if (producer.valid() && graph_.node(producer).phase == graph::Phase::update) continue;
    const Tensor next = read(update.next, {}, NodeId()).clone();
    if (in_executable(name)) update_->executable->set_state(name, next);
    after[name] = next;
  }
  states_.replace(std::move(after));
  if (!update_ || emulation_.base.update.keeps_all()) return;
  std::uint32_t number = 0;
  for (const std::string& name : parameters_) {
    ++number;
    Tensor kept = update_->executable->state(name);
    if (kept.type() != ElementType::f32) continue;
    run_narrowing(kept.as<float>().data(), kept.as<float>().data(), kept.element_count(),
                  emulation_.base.update, stream(update_->node, Stream::result) + number * streams_of_a_node,
                  key(emulation_.base), pool_);
    update_->executable->set_state(name, kept);
  }
}

void Emulation::Plan::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  check_ports("input", ports_.inputs, inputs);
  check_ports("output", ports_.outputs, outputs);
  values_.assign(graph_.value_count(), Tensor());
  left_ = uses_;
  for (std::size_t i = 0; i < graph_.value_count(); ++i) {
    const graph::Value& described = graph_.values()[i];
    if (described.kind == ValueKind::constant) values_[i] = described.data;
    if (described.kind == ValueKind::state)
      values_[i] = in_executable(described.name) ? update_->executable->state_in_place(described.name)
                                                 : states_.get(described.name);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs()[i].index()] = inputs[i];
  for (Step& step : steps_) execute(step);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& result = value(graph_.outputs()[i].value);
    std::memcpy(outputs[i].bytes(), result.bytes(), outputs[i].byte_count());
  }
  update_states();
  for (auto& [at, tensor] : narrowed_) shelf_.put(std::move(tensor));
  narrowed_.clear();
  values_.clear();
  ++run_;
}

Tensor Emulation::Plan::state(std::string_view name) const {
  return in_executable(name) ? update_->executable->state(name) : states_.get(name).clone();
}

void Emulation::Plan::set_state(std::string_view name, const Tensor& value) {
  states_.set(name, value);
  if (in_executable(name)) update_->executable->set_state(name, value);
}

PlanSummary Emulation::Plan::summary() const {
  PlanSummary summary;
  summary.batch = summary.micro_batch = options_.batch;
  summary.threads = options_.threads;
  summary.compile_seconds = compile_seconds_;
  for (const auto& [name, tensor] : states_.all()) summary.state_bytes += tensor.byte_count();
  double emulated = 0;
  for (const Step& step : steps_) {
    const graph::Node& node = graph_.node(step.node);
    const op::Cost cost = op::cost(graph_, node);
    summary.flops += cost.flops;
    if (step.way == Way::emulated) emulated += cost.flops;
    const bool rounds = step.way != Way::moved && step.way != Way::updated;
    summary.steps.push_back(
        {.node = step.way == Way::updated ? "update" : node.name,
         .op = step.way == Way::updated ? "update" : node.op,
         .kernel = fmt::format("{}{}", name_of(step.way),
                               rounds ? ": " + superstep::numerics::to_string(step.arithmetic) : ""),
         .refusals = {},
         .flops = cost.flops,
         .bytes = cost.bytes});
  }
  summary.choice = fmt::format("{:.1f} % of the operations are products and sums, which are emulated",
                               summary.flops > 0 ? 100 * emulated / summary.flops : 0.0);
  return summary;
}

Emulation::Emulation(const GraphAtBatch& model, const CompileOptions& options, EmulationOptions emulation)
    : plan_(std::make_unique<Plan>(model, options, std::move(emulation))) {}
Emulation::~Emulation() = default;

std::span<const Executable::Port> Emulation::inputs() const { return plan_->ports_.inputs; }
std::span<const Executable::Port> Emulation::outputs() const { return plan_->ports_.outputs; }
void Emulation::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  plan_->run(inputs, outputs);
}
std::vector<std::string> Emulation::state_names() const { return plan_->states_.names(); }
Tensor Emulation::state(std::string_view name) const { return plan_->state(name); }
void Emulation::set_state(std::string_view name, const Tensor& value) { plan_->set_state(name, value); }
PlanSummary Emulation::summary() const { return plan_->summary(); }

const graph::Graph& Emulation::graph() const { return plan_->graph_; }
Way Emulation::way_of(graph::NodeId node) const { return plan_->step_of(node).way; }
const Arithmetic& Emulation::arithmetic_of(graph::NodeId node) const {
  return plan_->step_of(node).arithmetic;
}
void Emulation::set_arithmetic(graph::NodeId node, const Arithmetic& arithmetic) {
  plan_->step_of(node).arithmetic = arithmetic;
}
void Emulation::watch(Watch watch) { plan_->watch_ = std::move(watch); }
void Emulation::set_run(std::uint32_t number) { plan_->run_ = number; }

}  // namespace numerics
}  // namespace superstep::target
