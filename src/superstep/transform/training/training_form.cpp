#include "superstep/transform/training/training_form.h"

#include <algorithm>

#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/quantization.h"
#include "superstep/op/rows/normalization.h"

namespace superstep::transform {
namespace {

bool is_state(const Graph& graph, ValueId id) { return graph.value(id).kind == graph::ValueKind::state; }

bool normalises_with_running_statistics(const Graph& graph, const Node& node) {
  return node.op == "BatchNormalization" && node.attributes.integer("training_mode", 0) == 0 &&
         is_state(graph, node.inputs[3]) && is_state(graph, node.inputs[4]);
}

// ONNX's default where the ratio is left out.
double drop_ratio(Rewrite& rewrite, const Node& node) {
  if (node.inputs.size() < 2 || !node.inputs[1].valid()) return 0.5;
  const graph::Value& ratio = rewrite.old().value(node.inputs[1]);
  if (ratio.kind != graph::ValueKind::constant)
    throw Error(ErrorCode::unsupported, "the ratio of a Dropout must be constant", describe(node));
  return ratio.data.at(0);
}

}  // namespace

namespace {

// The QuantizeLinear that a DequantizeLinear takes back, with one scale or one a slice of an axis; else null.
const Node* quantizer_of(const Graph& graph, const Node& node) {
  if (node.op != "DequantizeLinear" || node.attributes.integer("block_size", 0) != 0) return nullptr;
  const graph::Value& bytes = graph.value(node.inputs[0]);
  if (bytes.kind != graph::ValueKind::computed) return nullptr;
  const Node& quantizer = graph.node(bytes.producer);
  const bool pair = quantizer.op == "QuantizeLinear" && quantizer.inputs[1] == node.inputs[1] &&
                    quantizer.attributes.integer("axis", 1) == node.attributes.integer("axis", 1);
  const bool same_type = graph.type(quantizer.inputs[0]).element == graph.type(node.outputs[0]).element;
  return pair && same_type ? &quantizer : nullptr;
}

// The scale as it is broadcast to x.
Var scale_for(const Node& node, Var scale, Var x) {
  const Var wide = op::cast(scale, x.element());
  if (scale.shape().element_count() == 1) return op::reshape(wide, Shape{});
  const int rank = x.shape().rank();
  const std::int64_t axis = node.attributes.integer("axis", 1);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = scale.shape().element_count();
  return op::reshape(wide, Shape(extents));
}

}  // namespace

// What is rounded within the range moves by half a scale at most; what is limited moves further, and has no
// slope.
void TrainingForm::train_rounding(const Node& node) {
  rewrite_.keep(node);
  const Node& quantizer = *quantizer_of(rewrite_.old(), node);
  const Var x = rewrite_.now(quantizer.inputs[0]), y = rewrite_.now(node.outputs[0]);
  constexpr double furthest = 0.5 + 1e-3;  // of a scale; what rounding of f32 adds
  const Var room = scale_for(node, rewrite_.now(node.inputs[1]), x) * furthest;
  const Var passes = op::less_or_equal(op::abs(x - y), op::expand_to(room, x.shape()));
  rewrite_.replace(node.outputs[0], op::straight_through(x, y, passes));
}

void TrainingForm::visit(const Node& node) {
  if (quantizer_of(rewrite_.old(), node)) return train_rounding(node);
  if (node.op == "Dropout") return train_dropout(node);
  if (node.op == "superstep.StochasticDepth") return train_depth(node);
  if (normalises_with_running_statistics(rewrite_.old(), node)) return train_batch_normalization(node);
  rewrite_.keep(node);
}

void TrainingForm::visit_dropout(const Node& node) {
  if (node.op == "Dropout") return train_dropout(node);
  rewrite_.keep(node);
}

Var TrainingForm::counter() {
  if (!counter_.valid())
    counter_ = rewrite_.builder().state(dropout_counter, Tensor::scalar<std::int64_t>(0));
  return counter_;
}

void TrainingForm::train_dropout(const Node& node) {
  if (node.outputs.size() > 1 && node.outputs[1].valid())
    throw Error(ErrorCode::unsupported, "the mask of a Dropout is used; training makes its own",
                describe(node));
  const Var x = rewrite_.now(node.inputs[0]);
  const double ratio = drop_ratio(rewrite_, node);
  const Var y = ratio > 0 ? op::dropout(x, ratio, counter(), seed_, next_stream_++) : x;
  rewrite_.replace(node, std::span(&y, 1));
}

void TrainingForm::train_depth(const Node& node) {
  const Var x = rewrite_.now(node.inputs[0]);
  const double ratio = node.attributes.number("ratio", 0);
  Var y = x;
  if (ratio > 0) {
    std::vector<std::int64_t> extents(x.shape().rank(), 1);
    extents[0] = x.shape()[0];
    y = x * op::random_mask(counter(), x.element(), Shape(extents), {seed_, next_stream_++, 1.0 - ratio});
  }
  rewrite_.replace(node, std::span(&y, 1));
}

void TrainingForm::train_batch_normalization(const Node& node) {
  const std::vector<Var> in = rewrite_.now(node.inputs);
  const auto trained = op::batch_normalization_training(
      in[0], in[1], in[2], in[3], in[4], node.attributes.number("epsilon", 1e-5),
      node.attributes.number("momentum", 0.9), joint_statistics_);
  rewrite_.replace(node, std::span(&trained.y, 1));
  rewrite_.builder().update(in[3], trained.running_mean);
  rewrite_.builder().update(in[4], trained.running_variance);
}

void TrainingForm::update_counter(std::int64_t samples) {
  if (!counter_.valid()) return;
  Builder& builder = rewrite_.builder();
  builder.update(counter_, counter_ + builder.constant(Tensor::scalar<std::int64_t>(samples)));
}

std::vector<ValueId> trainable_states(const Graph& model) {
  std::vector<bool> fixed(model.value_count(), false);
  for (const graph::Update& update : model.updates()) fixed[update.state.index()] = true;
  for (const Node& node : model.nodes())
    if (node.op == "BatchNormalization")
      for (std::size_t i : {3u, 4u}) fixed[node.inputs[i].index()] = true;
  std::vector<ValueId> result;
  for (ValueId state : model.states())
    if (!fixed[state.index()] && is_floating(model.type(state).element) &&
        !model.value(state).name.starts_with(counted_prefix))
      result.push_back(state);
  return result;
}

}  // namespace superstep::transform
