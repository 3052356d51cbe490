// The target that evaluates by definition.
#include <algorithm>
#include <cstring>

#include "superstep/base/stopwatch.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/target/ports.h"
#include "superstep/target/states.h"

namespace superstep::target {
namespace {

class ReferenceExecutable : public Executable {
 public:
  ReferenceExecutable(graph::Graph graph, BatchedPorts ports, CompileOptions options, double compile_seconds)
      : graph_(std::move(graph)),
        ports_(std::move(ports)),
        options_(options),
        compile_seconds_(compile_seconds),
        states_(graph_) {}

  std::span<const Port> inputs() const override { return ports_.inputs; }
  std::span<const Port> outputs() const override { return ports_.outputs; }

  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    check_ports("input", ports_.inputs, inputs);
    check_ports("output", ports_.outputs, outputs);
    op::Evaluation result = op::evaluate(graph_, inputs, states_.all());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::memcpy(outputs[i].bytes(), result.outputs[i].bytes(), outputs[i].byte_count());
    states_.replace(std::move(result.states));
  }

  std::vector<std::string> state_names() const override { return states_.names(); }
  Tensor state(std::string_view name) const override { return states_.get(name).clone(); }
  void set_state(std::string_view name, const Tensor& value) override { states_.set(name, value); }

  PlanSummary summary() const override {
    PlanSummary summary{.batch = options_.batch, .micro_batch = options_.batch, .threads = 1};
    summary.flops = op::cost(graph_).flops;
    summary.compile_seconds = compile_seconds_;
    for (const auto& [name, tensor] : states_.all()) summary.state_bytes += tensor.byte_count();
    for (const graph::Node& node : graph_.nodes()) {
      const op::Cost cost = op::cost(graph_, node);
      summary.steps.push_back({.node = node.name,
                               .op = node.op,
                               .kernel = "reference evaluation",
                               .refusals = {},
                               .flops = cost.flops,
                               .bytes = cost.bytes});
    }
    return summary;
  }

 private:
  graph::Graph graph_;
  BatchedPorts ports_;
  CompileOptions options_;
  double compile_seconds_;
  States states_;
};

class ReferenceTarget : public Target {
 public:
  std::string_view name() const override { return "reference"; }
  std::string_view summary() const override {
    return "every operator by its definition: slow, exact, the oracle";
  }
  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    refuse_parts(options, name());
    refuse_chips(options, name());
    const Stopwatch watch;
    BatchedPorts ports = batched_ports(model, options.batch, options.micro_batch);
    graph::Graph graph = prepare_graph(model(options.batch));
    const double seconds = watch.seconds();
    return std::make_unique<ReferenceExecutable>(std::move(graph), std::move(ports), options, seconds);
  }
};

}  // namespace

const Target& reference_target() {
  static const ReferenceTarget target;
  return target;
}

}  // namespace superstep::target
