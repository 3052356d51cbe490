// The tables of passes: none changes what a graph computes, and a target without the ones that may be left
// out still computes it.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/rows/normalization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/training/optimizer.h"
#include "superstep/target/cpu/cpu.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/passes.h"
#include "superstep/target/ports.h"
#include "superstep/transform/bisect.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/target/run.h"

namespace superstep::target {
namespace {

using transform::Pass;

constexpr const char* with_passes[] = {"cpu", "reference", "gc200", "bow", "gc2", "onnx"};

// Everything from a model to what a target plans.
std::vector<Pass> all_passes(const char* target, const std::vector<Pass>& between) {
  const PassTable table = pass_table(target);
  std::vector<Pass> passes = table.of_models ? table.of_models() : std::vector<Pass>();
  passes.insert(passes.end(), between.begin(), between.end());
  for (Pass& pass : table.of_graphs({})) passes.push_back(std::move(pass));
  return passes;
}

struct Model {
  std::string workload;
  std::vector<std::string> options;

  graph::Graph operator()(std::int64_t batch) const {
    return workload::build_model(workload::find_workload(workload), batch, options);
  }
  Pass training_step() const {
    const workload::Recipe& training = workload::find_workload(workload).training;
    return transform::training_step_pass(training.loss, training.optimizer);
  }
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.workload; }

std::vector<Model> zoo() {
  return {{"braggnn", {}},
          {"mlp", {}},
          {"ptychonn-64", {"window=16"}},
          {"uno", {"width=24", "dropout=0"}},
          {"unet-64", {"size=16", "width=4"}},
          {"mobilenet-v3-small", {"size=32", "classes=10"}},
          {"bert-small", {"layers=2", "width=32", "heads=2", "length=12", "vocabulary=80"}},
          {"lstm", {"steps=7", "inputs=5", "units=32"}}};
}

class PassesOfZoo : public ::testing::TestWithParam<Model> {};

void expect_no_wrong_pass(const Model& model, const char* target, const std::vector<Pass>& between) {
  const transform::Bisection found = transform::bisect(model(2), all_passes(target, between));
  if (const auto* wrong = found.wrong())
    ADD_FAILURE() << target << ": " << wrong->pass << " changes " << wrong->where << " by "
                  << wrong->difference << " of " << wrong->allowed;
}

TEST_P(PassesOfZoo, ChangeNothingThatIsServed) {
  for (const char* target : {"cpu", "gc200", "onnx"}) expect_no_wrong_pass(GetParam(), target, {});
}

// Random masks cannot be written to a file.
bool drops_out(const Model& model) {
  const Pass step = model.training_step();
  const graph::Graph graph = transform::run_passes(model(2), std::span(&step, 1));
  return std::ranges::find(graph.nodes(), "superstep.RandomMask", &graph::Node::op) != graph.nodes().end();
}

TEST_P(PassesOfZoo, ChangeNothingThatIsTrained) {
  for (const char* target : {"cpu", "gc200"})
    expect_no_wrong_pass(GetParam(), target, {GetParam().training_step()});
  if (!drops_out(GetParam())) expect_no_wrong_pass(GetParam(), "onnx", {GetParam().training_step()});
}

TEST_P(PassesOfZoo, ChangeNothingInReducedPrecision) {
  expect_no_wrong_pass(GetParam(), "cpu",
                       {transform::autocast_pass(ElementType::bf16), GetParam().training_step()});
  expect_no_wrong_pass(GetParam(), "cpu", {transform::autocast_pass(ElementType::f16)});
}

INSTANTIATE_TEST_SUITE_P(Zoo, PassesOfZoo, ::testing::ValuesIn(zoo()), [](const auto& test) {
  std::string name = test.param.workload;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(PassTable, NamesAndExplainsEveryPass) {
  for (const char* target : with_passes) {
    std::map<std::string_view, std::string_view> summaries;
    for (const Pass& pass : all_passes(target, {})) {
      EXPECT_FALSE(pass.summary.empty()) << target << ": " << pass.name;
      // The same name is the same pass, run again.
      EXPECT_EQ(summaries.emplace(pass.name, pass.summary).first->second, pass.summary) << pass.name;
    }
    EXPECT_FALSE(summaries.empty()) << target;
  }
  EXPECT_TRUE(pass_table("null").of_graphs({}).empty());
  EXPECT_THROW(pass_table("cpuu"), Error);
}

// Every target of `superstep list targets` has a table, and all that compute something run passes.
TEST(PassTable, CoversEveryTarget) {
  for (const Target* target : targets())
    EXPECT_EQ(pass_table(target->name()).of_graphs({}).empty(), target->name() == "null") << target->name();
  const auto standard = transform::standard_passes();
  EXPECT_EQ(pass_table("reference").of_graphs({}).size(), standard.size());
}

// ---- the CPU without a pass -----------------------------------------------------------------------------

// Normalisations behind convolutions, folded at inference and decomposed in training.
graph::Graph normalised(std::int64_t batch) {
  graph::Graph graph("normalised");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  op::Var y = b.input("x", ElementType::f32, {batch, 3, 6, 6});
  y = layers.conv(y, "conv", 8, 3);
  const auto state = [&](const char* name, double value) {
    return b.state(name, Tensor::full(ElementType::f32, {8}, value));
  };
  y = op::relu(op::batch_normalization(y, state("scale", 1.5), state("bias", 0.1), state("mean", 0.2),
                                       state("variance", 0.8)));
  b.output("y", layers.dense(op::flatten(y), "dense", 3));
  return graph;
}

struct Served {
  test::Case model;
  std::int64_t micro_batch;  // 0: the target's choice; asked for, samples would be normalised in its parts
};

std::vector<Served> served_models() {
  std::vector<Served> models{{{"normalised", normalised}, 0}};
  for (const test::Case& model : test::models()) models.push_back({model, 2});
  return models;
}

GraphAtBatch trained(const GraphAtBatch& model, const Target& target) {
  return [model, &target](std::int64_t batch) {
    return transform::make_training_step(target.suited(model(batch)), {},
                                         {.kind = transform::OptimizerKind::sgd});
  };
}

void expect_as_reference(const Target& target, const GraphAtBatch& model, const GraphAtBatch& plain,
                         double tolerance, const std::string& what, std::int64_t micro_batch) {
  const auto cpu = target.compile(model, {.batch = 4, .micro_batch = micro_batch, .threads = 2});
  const auto reference = find_target("reference").compile(plain, {.batch = 4});
  const std::vector<Tensor> inputs = test::inputs_of(*reference);
  std::vector<Tensor> outputs = test::outputs_of(*cpu), expected = test::outputs_of(*reference);
  for (int step = 0; step < 2; ++step) {
    cpu->run(inputs, outputs);
    reference->run(inputs, expected);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    test::expect_close(outputs[i], expected[i], tolerance, what + " output");
  for (const std::string& name : reference->state_names())
    test::expect_close(cpu->state(name), reference->state(name), tolerance, what + " " + name);
}

std::vector<Pass> passes_of_cpu() { return all_passes("cpu", {}); }

TEST(CpuWithout, AnyPassThatMayBeLeftOutResultsStayRight) {
  std::set<std::string_view> done;
  for (const Pass& pass : passes_of_cpu()) {
    if (!pass.required.empty() || !done.insert(pass.name).second) continue;
    const auto target = cpu::cpu_target_without({std::string(pass.name)});
    for (const auto& [model, micro_batch] : served_models()) {
      const std::string what = std::string(pass.name) + " of " + model.name;
      const GraphAtBatch suited = [&](std::int64_t batch) { return target->suited(model.model(batch)); };
      expect_as_reference(*target, suited, model.model, 1e-4, what, micro_batch);
      expect_as_reference(*target, trained(model.model, *target),
                          trained(model.model, find_target("reference")), 1e-3, what + ", trained",
                          micro_batch);
    }
  }
  EXPECT_GE(done.size(), 10u);
}

// All of them at once: what is left is the lowering with its kernels and the reference evaluation.
TEST(CpuWithout, AllPassesThatMayBeLeftOutResultsStayRight) {
  std::set<std::string> names;
  for (const Pass& pass : passes_of_cpu())
    if (pass.required.empty()) names.emplace(pass.name);
  const auto target = cpu::cpu_target_without({names.begin(), names.end()});
  for (const auto& [model, micro_batch] : served_models())
    expect_as_reference(*target, trained(model.model, *target),
                        trained(model.model, find_target("reference")), 1e-3, model.name, micro_batch);
}

// Leaving one out is seen in the plan: it is not the same target.
TEST(CpuWithout, DecompositionNormalisationsAreEvaluatedByDefinition) {
  const auto without = cpu::cpu_target_without({"decompose"});
  const auto count = [](const Target& target) {
    const auto steps = target.compile(trained(normalised, target), {.batch = 2})->summary().steps;
    return std::ranges::count(steps, "BatchNormalization", &PlanStep::op);
  };
  EXPECT_EQ(count(find_target("cpu")), 0);
  EXPECT_EQ(count(*without), 1);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(CpuWithout, RefusesWhatIsRequiredAndWhatIsNotThere) {
  EXPECT_TRUE(contains(error_of([] { cpu::cpu_target_without({"over_parts"}); }),
                       "over_parts: this pass cannot be left out: each part"));
  EXPECT_TRUE(contains(error_of([] { cpu::cpu_target_without({"decompos"}); }), "did you mean 'decompose'?"));
}

// ---- tiles without a pass -------------------------------------------------------------------------------

// Statistics of each sample's channels alone.
graph::Graph normalised_by_sample(std::int64_t batch) {
  graph::Graph graph("instances");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var x = layers.conv(b.input("x", ElementType::f32, {batch, 2, 5, 5}), "conv", 4, 3);
  const auto state = [&](const char* name, double value) {
    return b.state(name, Tensor::full(ElementType::f32, {4}, value));
  };
  const op::Var y = b.node1("InstanceNormalization", {x, state("scale", 1.5), state("bias", 0.1)});
  b.output("y", layers.dense(op::flatten(op::relu(y)), "dense", 3));
  return graph;
}

// ONNX's optimiser, of two tensors at once.
graph::Graph momentum_of_two(std::int64_t batch) {
  graph::Graph graph("momentum");
  op::Builder b(graph);
  const auto tensor = [&](const char* name, std::int64_t extent) {
    return b.input(name, ElementType::f32, {batch, extent});
  };
  const op::Var rate = b.constant(Tensor::scalar(0.1f)), count = b.constant(Tensor::scalar<std::int64_t>(3));
  const std::vector<op::Var> inputs{rate,
                                    count,
                                    tensor("x1", 3),
                                    tensor("x2", 5),
                                    tensor("g1", 3),
                                    tensor("g2", 5),
                                    tensor("v1", 3),
                                    tensor("v2", 5)};
  const auto results = b.node(
      "Momentum", inputs,
      {{"alpha", 0.9}, {"beta", 1.0}, {"norm_coefficient", 0.01}, {"mode", std::string("standard")}}, 4);
  for (std::size_t i = 0; i < results.size(); ++i) b.output("y" + std::to_string(i), results[i]);
  return graph;
}

// An optimiser whose step needs the norms of the whole tensor.
graph::Graph scaled_by_norms(std::int64_t batch) {
  graph::Graph graph("lamb");
  op::Builder b(graph);
  const auto tensor = [&](const char* name) { return b.input(name, ElementType::f32, {batch, 5}); };
  const op::Var p = tensor("p"), g = tensor("g"), m = tensor("m"), v = tensor("v");
  const op::AdamStep next = op::lamb(p, g, m, v * v, b.constant(Tensor::scalar<std::int64_t>(3)),
                                     b.constant(Tensor::scalar(0.1f)), {.weight_decay = 0.01});
  b.output("p'", next.parameter), b.output("m'", next.m), b.output("v'", next.v);
  return graph;
}

// The class of each sample.
graph::Graph classified(std::int64_t batch) {
  graph::Graph graph("classes");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 700});
  b.output("largest", op::argmax(x, 1, true));
  b.output("smallest", op::argmin(x, -1, false));
  return graph;
}

// Running sums of a few lines, one of a length that nothing divides.
graph::Graph summed_along(std::int64_t batch) {
  graph::Graph graph("scans");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 1200}),
                y = b.input("y", ElementType::f32, {batch, 1009, 2});
  b.output("sums", op::cumsum(x, 1));
  b.output("before", op::cumsum(x, -1, true));
  b.output("behind", op::cumsum(y, 1, false, true));
  b.output("last", op::cumsum(y, 1, true, true));
  return graph;
}

TEST(TilesWithout, AnyPassThatMayBeLeftOutResultsStayRight) {
  std::set<std::string_view> done;
  for (const Pass& pass : all_passes("gc200", {})) {
    if (!pass.required.empty() || !done.insert(pass.name).second) continue;
    const auto target = ipu::gc200_without({std::string(pass.name)});
    for (const GraphAtBatch& step : {GraphAtBatch(momentum_of_two), GraphAtBatch(scaled_by_norms),
                                     GraphAtBatch(classified), GraphAtBatch(summed_along)})
      expect_as_reference(*target, step, step, 1e-4, std::string(pass.name), 0);
    for (const GraphAtBatch& model : {GraphAtBatch(normalised), GraphAtBatch(normalised_by_sample)})
      expect_as_reference(*target, trained(model, *target), trained(model, find_target("reference")), 1e-3,
                          std::string(pass.name) + ", trained", 0);
  }
  EXPECT_EQ(done.size(), 12u);
}

// Each of the models above is one that a pass for tiles changes.
TEST(TilesWithout, ThePassesForTilesHaveSomethingToDo) {
  const auto changing = [](const graph::Graph& given) {
    std::set<std::string> names;
    graph::Graph graph = given;
    for (const auto& record : transform::run_pipeline(graph, all_passes("gc200", {})).records)
      if (record.changed) names.insert(record.pass);
    return names;
  };
  EXPECT_TRUE(changing(trained(normalised, find_target("gc200"))(4)).contains("normalize_by_moments"));
  EXPECT_TRUE(changing(normalised_by_sample(4)).contains("normalize_by_group_moments"));
  EXPECT_TRUE(changing(classified(4)).contains("find_with_its_value"));
  EXPECT_TRUE(changing(summed_along(4)).contains("scan_in_blocks"));
  EXPECT_TRUE(changing(momentum_of_two(4)).contains("optimize_apart"));
  EXPECT_TRUE(changing(scaled_by_norms(4)).contains("optimize_by_norms"));
}

TEST(TilesWithout, RefusesWhatIsNotThere) {
  EXPECT_TRUE(contains(error_of([] { ipu::gc200_without({"simplfy"}); }), "did you mean 'simplify'?"));
}

}  // namespace
}  // namespace superstep::target
