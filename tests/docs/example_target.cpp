// The target of docs/add-a-target.md, compiled against the interface and compared with the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/op/core/builder.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/target/ports.h"
#include "superstep/target/states.h"
#include "superstep/target/target.h"
#include "tests/contains.h"

namespace superstep::target {
namespace {

// [add-a-target]
// Runs the definitions and stops at the first output that is not finite: for finding where a model breaks.
class WatchfulExecutable : public Executable {
 public:
  WatchfulExecutable(graph::Graph graph, BatchedPorts ports, const CompileOptions& options)
      : graph_(std::move(graph)), ports_(std::move(ports)), options_(options), states_(graph_) {}

  std::span<const Port> inputs() const override { return ports_.inputs; }
  std::span<const Port> outputs() const override { return ports_.outputs; }

  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    check_ports("input", ports_.inputs, inputs);
    check_ports("output", ports_.outputs, outputs);
    op::Evaluation result = op::evaluate(graph_, inputs, states_.all());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      require_finite(result.outputs[i], ports_.outputs[i].name);
      std::memcpy(outputs[i].bytes(), result.outputs[i].bytes(), outputs[i].byte_count());
    }
    states_.replace(std::move(result.states));
  }

  std::vector<std::string> state_names() const override { return states_.names(); }
  Tensor state(std::string_view name) const override { return states_.get(name).clone(); }
  void set_state(std::string_view name, const Tensor& value) override { states_.set(name, value); }

  PlanSummary summary() const override {
    PlanSummary summary{.batch = options_.batch, .micro_batch = options_.batch, .threads = 1};
    summary.flops = op::cost(graph_).flops;
    for (const graph::Node& node : graph_.nodes())
      summary.steps.push_back({.node = node.name, .op = node.op, .kernel = "definition, watched"});
    return summary;
  }

 private:
  static void require_finite(const Tensor& tensor, const std::string& name) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      if (!std::isfinite(tensor.at(i)))
        throw Error(ErrorCode::diverged, fmt::format("element {} is {}", i, tensor.at(i)), "output " + name);
  }

  graph::Graph graph_;
  BatchedPorts ports_;
  CompileOptions options_;
  States states_;
};

class WatchfulTarget : public Target {
 public:
  std::string_view name() const override { return "watchful"; }
  std::string_view summary() const override {
    return "the definitions, stopping where a number is not finite";
  }
  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    return std::make_unique<WatchfulExecutable>(prepare_graph(model(options.batch)),
                                                batched_ports(model, options.batch), options);
  }
};

const Target& watchful_target() {
  static const WatchfulTarget target;
  return target;
}
// [end]

// [add-a-target]
// Far below zero softplus is zero in f32, and its logarithm minus infinity.
graph::Graph logarithms(std::int64_t batch) {
  graph::Graph graph("logarithms");
  op::Builder builder(graph);
  const op::Var x = builder.input("x", ElementType::f32, {batch, 3});
  builder.output("y", op::log(op::softplus(x)));
  return graph;
}

Tensor run_on(const Target& target, const Tensor& x) {
  const auto executable = target.compile(logarithms, {.batch = x.shape()[0]});
  std::vector<Tensor> outputs{Tensor(ElementType::f32, x.shape())};
  executable->run(std::vector{x}, outputs);
  return outputs[0];
}

TEST(Watchful, AgreesWithTheReference) {
  const Tensor x = Tensor::from<float>({2, 3}, {-2, -1, -0.5, 0.5, 1, 2});
  const Tensor expected = run_on(find_target("reference"), x), actual = run_on(watchful_target(), x);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(actual.at(i), expected.at(i));
}

TEST(Watchful, NamesTheOutputThatIsNotFinite) {
  const Tensor x = Tensor::from<float>({1, 3}, {0, -200, 1});
  EXPECT_FALSE(std::isfinite(run_on(find_target("reference"), x).at(1)));  // the reference carries on
  try {
    run_on(watchful_target(), x);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged);
    EXPECT_TRUE(contains(error.what(), "output y: element 1 is -inf"));
  }
}
// [end]

TEST(AddATarget, ChecksWhatItIsGiven) {
  const auto executable = watchful_target().compile(logarithms, {.batch = 2});
  std::vector<Tensor> outputs{Tensor(ElementType::f32, {2, 3})};
  try {
    executable->run(std::vector{Tensor(ElementType::f32, {2, 4})}, outputs);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "input x: is f32[2,4], the model wants f32[2,3]"));
  }
  EXPECT_EQ(executable->summary().steps.size(), 2U);
  EXPECT_EQ(executable->summary().steps.at(0).op, "Softplus");
}

}  // namespace
}  // namespace superstep::target
