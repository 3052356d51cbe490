// The target that computes nothing: checks, clears the outputs, keeps state. What a run costs here is the
// host's overhead.
#include <cstring>

#include "superstep/target/ports.h"
#include "superstep/target/states.h"

namespace superstep::target {
namespace {

class NullExecutable : public Executable {
 public:
  NullExecutable(const graph::Graph& graph, BatchedPorts ports, CompileOptions options)
      : ports_(std::move(ports)), options_(options), states_(graph) {}

  std::span<const Port> inputs() const override { return ports_.inputs; }
  std::span<const Port> outputs() const override { return ports_.outputs; }
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    check_ports("input", ports_.inputs, inputs);
    check_ports("output", ports_.outputs, outputs);
    for (Tensor& output : outputs) std::memset(output.bytes(), 0, output.byte_count());
  }
  std::vector<std::string> state_names() const override { return states_.names(); }
  Tensor state(std::string_view name) const override { return states_.get(name).clone(); }
  void set_state(std::string_view name, const Tensor& value) override { states_.set(name, value); }
  PlanSummary summary() const override {
    return {.batch = options_.batch, .micro_batch = options_.batch, .threads = options_.threads};
  }

 private:
  BatchedPorts ports_;
  CompileOptions options_;
  States states_;
};

class NullTarget : public Target {
 public:
  std::string_view name() const override { return "null"; }
  std::string_view summary() const override {
    return "computes nothing: what is left is the host's own overhead";
  }
  PassTable passes() const override {
    return {.of_graphs = [](const PassUse&) { return std::vector<transform::Pass>(); }};
  }
  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    refuse_parts(options, name());
    refuse_chips(options, name());
    return std::make_unique<NullExecutable>(
        model(options.batch), batched_ports(model, options.batch, options.micro_batch), options);
  }
};

}  // namespace

const Target& null_target() {
  static const NullTarget target;
  return target;
}

}  // namespace superstep::target
