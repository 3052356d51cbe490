// The derivative of every model's loss by all of its parameters, in f64: forward mode, reverse mode and
// central differences along one direction must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "superstep/base/random.h"
#include "superstep/base/wildcard.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/core/gradient_check.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using op::Builder;
using op::Var;

struct Model {
  const char* workload;
  std::vector<std::string> options;
  std::int64_t batch;
  // Parameters that change nothing: a derivative of zero has no relative error, and is looked at by itself.
  std::vector<std::string> without_slope = {};
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.workload; }

Tensor wide(const Tensor& tensor) {
  return is_floating(tensor.type()) ? tensor.converted(ElementType::f64) : tensor;
}

// Biases begin as zeros, where activations have their kinks.
Tensor without_zeros(Tensor tensor, std::uint64_t seed) {
  RandomStream random(seed + 1000);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (tensor.at(i) == 0) tensor.set(i, random.uniform(-0.1, 0.1));
  return tensor;
}

// Of inputs that are whole numbers: how many there are.
std::uint64_t numbers_of(const std::string& name) {
  if (name == "token_type_ids" || name == "next_labels") return 2;
  return name.ends_with("_positions") || name == "start_label" || name == "end_label" ? 6 : 10;
}

// Inputs of the training step, as good as any: labels below 10, masks of ones.
Tensor random_input(const graph::Value& value, std::uint64_t seed) {
  if (value.name == "attention_mask") return Tensor::full(value.type.element, value.type.shape, 1);
  Tensor tensor(value.type.element, value.type.shape);
  RandomStream random(seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, is_integer(value.type.element) ? static_cast<double>(random.below(numbers_of(value.name)))
                                                 : random.uniform(0, 1));
  return wide(tensor);
}

// Builds the forward part of a training step again in f64, with the parameters as the function's inputs.
class WideForward {
 public:
  WideForward(const Graph& step, std::vector<ValueId> parameters)
      : step_(step), parameters_(std::move(parameters)), loss_(step.find_output("loss")) {}

  std::vector<Var> operator()(Builder& b, std::span<const Var> x) const {
    std::map<ValueId, Var> now;
    for (std::size_t i = 0; i < parameters_.size(); ++i) now[parameters_[i]] = x[i];
    for (std::size_t i = 0; i < step_.value_count(); ++i) {
      const graph::Value& value = step_.values()[i];
      const ValueId id(i);
      if (now.contains(id) || value.kind == graph::ValueKind::computed) continue;
      now[id] =
          b.constant(value.kind == graph::ValueKind::input ? random_input(value, i + 1) : wide(value.data));
    }
    for (const Node& node : step_.nodes())
      if (node.phase == graph::Phase::forward) copy(b, node, now);
    return {now.at(loss_)};
  }

 private:
  static void copy(Builder& b, const Node& node, std::map<ValueId, Var>& now) {
    std::vector<Var> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id.valid() ? now.at(id) : Var());
    graph::Attributes attributes = node.attributes;
    if (node.op == "Cast" && attributes.integer("to") == op::onnx_number(ElementType::f32))
      attributes.set("to", op::onnx_number(ElementType::f64));
    if (attributes.has("value")) attributes.set("value", wide(attributes.tensor("value")));
    const auto outputs = b.node(node.op, inputs, attributes, static_cast<int>(node.outputs.size()));
    // Masks of dropout are f32 whatever they are multiplied with.
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      now[node.outputs[i]] =
          outputs[i].element() == ElementType::f32 ? op::cast(outputs[i], ElementType::f64) : outputs[i];
  }

  const Graph& step_;
  std::vector<ValueId> parameters_;
  ValueId loss_;
};

// The loss is the same wherever these parameters stand, and its gradient by them zero, but for rounding.
void expect_no_slope(const Graph& step, const std::vector<ValueId>& parameters) {
  Graph graph("loss");
  Builder b(graph);
  std::vector<Var> x;
  std::vector<Tensor> here, there;
  for (const ValueId id : parameters) {
    x.push_back(b.input(step.value(id).name, ElementType::f64, step.type(id).shape));
    here.push_back(wide(step.value(id).data));
    there.push_back(without_zeros(here.back(), there.size()));
  }
  const std::size_t first = op::mark(b);
  const std::vector<Var> loss = WideForward(step, parameters)(b, x);
  const Var one[] = {b.constant(Tensor::full(ElementType::f64, loss[0].shape(), 1))};
  const std::vector<Var> gradient = op::reverse(b, first, loss, one, x);
  b.output("loss", loss[0]);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (gradient[i].valid()) b.output("by " + step.value(parameters[i]).name, gradient[i]);
  const std::vector<Tensor> before = op::evaluate(graph, here).outputs,
                            after = op::evaluate(graph, there).outputs;
  const double rounding = 1e-10 * std::abs(before[0].at(0));
  EXPECT_NEAR(before[0].at(0), after[0].at(0), rounding);
  for (std::size_t i = 1; i < after.size(); ++i)
    for (std::int64_t k = 0; k < after[i].element_count(); ++k) EXPECT_NEAR(after[i].at(k), 0, rounding);
}

class WholeModel : public ::testing::TestWithParam<Model> {};

TEST_P(WholeModel, HasTheDerivativesThatDifferencesHave) {
  const Model& given = GetParam();
  const Workload& workload = find_workload(given.workload);
  const Graph model = build_model(workload, given.batch, given.options);
  const Graph step =
      transform::make_training_step(model, workload.training.loss, {.kind = transform::OptimizerKind::sgd});
  std::vector<ValueId> parameters, flat;
  std::vector<Tensor> values;
  for (ValueId id : transform::trainable_states(model)) {
    const std::string& name = model.value(id).name;
    if (std::ranges::any_of(given.without_slope, [&](const auto& some) { return fits(some, name); })) {
      flat.push_back(step.find_value(name));
      continue;
    }
    parameters.push_back(step.find_value(name));
    values.push_back(without_zeros(wide(step.value(parameters.back()).data), values.size()));
  }
  // Kinks within a step of the difference cost more than its rounding: small steps, and a tolerance for a
  // few.
  const op::GradientCheckOptions options{.step = 1e-7, .tolerance = 1e-5, .directions = 1};
  const Status status = op::check_gradients(WideForward(step, parameters), values, options);
  EXPECT_TRUE(status) << (status ? "" : status.error().what());
  EXPECT_EQ(flat.empty(), given.without_slope.empty());
  if (!flat.empty()) expect_no_slope(step, flat);
}

// What is added before a normalisation over the batch changes nothing behind it, and what is added to all
// keys, or to all places of an answer, changes no softmax.
INSTANTIATE_TEST_SUITE_P(
    Models, WholeModel,
    ::testing::Values(
        Model{"ptychonn-64", {"window=16"}, 1}, Model{"uno", {"width=6"}, 2},
        Model{"cookienetae", {"size=8", "width=2"}, 2},
        Model{"pca-compress-128", {"side=6", "components=4"}, 2},
        Model{"sobel-800", {"side=9", "start=random"}, 2},
        Model{"image-autoencoder", {"size=8", "width=2", "bottleneck=2", "bits=0"}, 2},
        Model{"gravity-wave-drag", {"levels=13", "width=6", "layers=2"}, 3},
        Model{"conductivity", {"side=16", "width=2"}, 3},
        Model{"conductivity", {"side=16", "width=2", "size=heavy"}, 3},
        Model{
            "polymer-gcn", {"atoms=12", "edges=20", "polymers=10", "width=4", "layers=2"}, 3, {"conv?.bias"}},
        Model{"polymer-mpnn", {"atoms=12", "edges=20", "polymers=10", "width=4", "layers=2"}, 3},
        Model{"gin",
              {"atoms=12", "edges=20", "molecules=10", "width=4", "layers=2", "dropout=0"},
              3,
              {"*.in.bias", "*.out.bias"}},
        Model{"schnet", {"atoms=12", "edges=20", "clusters=10", "width=4", "blocks=2", "gaussians=5"}, 2},
        Model{"deepmd", {"atoms=10", "sel=6", "cutoff=2", "embedding=2,4", "axis=2", "fitting=4,4"}, 2},
        Model{"yieldgnn", {"atoms=12", "edges=20", "reactions=10", "largest=12", "width=4", "dropout=0"}, 2},
        Model{"yieldgnn",
              {"atoms=12", "edges=20", "reactions=10", "largest=12", "width=4", "dropout=0", "chem=3",
               "chem-dropout=0"},
              2},
        Model{"unet-64", {"size=8", "width=2"}, 2}, Model{"autophasenn", {"size=16", "width=2"}, 3},
        Model{"bert-small",
              {"layers=1", "width=16", "heads=2", "length=6", "vocabulary=64"},
              2,
              {"*attention.key.bias"}},
        Model{"bert-large",
              {"layers=1", "width=16", "heads=2", "length=6", "vocabulary=64", "sequences=2"},
              2,
              {"*attention.key.bias"}},
        Model{"bert-base-squad",
              {"layers=1", "width=16", "heads=2", "length=6", "vocabulary=64"},
              2,
              {"*attention.key.bias", "layer0.norm.bias", "answer.bias"}},
        Model{"gpt2", {"layers=1", "width=16", "heads=2", "length=6", "positions=8", "vocabulary=64"}, 2},
        Model{"llama", {"layers=1", "width=16", "inner=20", "length=6", "vocabulary=64"}, 2},
        Model{"lstm", {"steps=4", "inputs=3", "units=5"}, 2}));

}  // namespace
}  // namespace superstep::workload
