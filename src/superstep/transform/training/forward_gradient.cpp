#include "superstep/transform/training/forward_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/transform/rewrite.h"
#include "superstep/transform/training/differentiate.h"
#include "superstep/transform/training/differentiation_guide.h"

namespace superstep::transform {
namespace {

// Streams from here on are directions; those below are masks of dropout (training_form.h).
constexpr std::uint32_t first_direction_stream = 0x80000000u;

class ForwardGradient {
 public:
  ForwardGradient(Builder& builder, Var loss, std::span<const Var> parameters, Var counter,
                  const ForwardGradientOptions& options)
      : builder_(builder), loss_(loss), parameters_(parameters), counter_(counter), options_(options) {}

  std::vector<Var> run() {
    builder_.set_phase(Phase::forward);
    find_dependent();
    draw();
    const std::vector<Var> slopes = directional_derivatives();
    builder_.set_phase(Phase::backward);
    // What the target averages over the parts of a batch.
    builder_.set_name("d(loss)");
    std::vector<Var> averaged;
    for (const Var& slope : slopes) averaged.push_back(op::identity(slope));
    builder_.set_phase(Phase::update);
    return combined(averaged);
  }

 private:
  void find_dependent() {
    std::vector<ValueId> inputs;
    for (const Var& parameter : parameters_) inputs.push_back(parameter.id());
    const ValueId output = loss_.id();
    const DifferentiationGuide guide = make_guide(builder_.graph(), inputs, std::span(&output, 1));
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (guide.is_active(parameters_[i].id())) dependent_.push_back(i);
  }

  Var parameter(std::size_t which) const { return parameters_[dependent_[which]]; }
  std::string name_of(std::size_t which) const { return builder_.graph().value(parameter(which).id()).name; }

  // [K, elements of the parameter] each.
  void draw() {
    for (std::size_t which = 0; which < dependent_.size(); ++which) {
      const Var p = parameter(which);
      const std::size_t number = dependent_[which];
      const auto stream =
          options_.streams.empty() ? static_cast<std::uint32_t>(number) : options_.streams[number];
      builder_.set_name(fmt::format("direction({})", name_of(which)));
      directions_.push_back(op::random_normal(counter_, p.element(),
                                              {options_.tangents, p.shape().element_count()}, options_.seed,
                                              first_direction_stream + stream));
    }
  }

  std::vector<Var> directional_derivatives() {
    std::vector<Var> by;
    std::vector<std::vector<Var>> tangents(static_cast<std::size_t>(options_.tangents));
    for (std::size_t which = 0; which < dependent_.size(); ++which) {
      by.push_back(parameter(which));
      builder_.set_name(fmt::format("direction({})", name_of(which)));
      for (std::size_t k = 0; k < tangents.size(); ++k)
        tangents[k].push_back(op::reshape(row(directions_[which], k), by.back().shape()));
    }
    builder_.set_name({});
    std::vector<Var> slopes;
    for (const std::vector<Var>& of_direction : jvps(builder_, std::span(&loss_, 1), by, tangents))
      slopes.push_back(or_zeros(of_direction[0], loss_));
    return slopes;
  }

  Var row(Var rows, std::size_t k) const {
    if (options_.tangents == 1) return rows;
    const auto first = static_cast<std::int64_t>(k);
    return op::slice(rows, {first}, {first + 1});
  }

  std::vector<Var> combined(const std::vector<Var>& slopes) {
    std::vector<Var> result(parameters_.size());
    if (dependent_.empty()) return result;
    builder_.set_name("directional derivatives");
    std::vector<Var> weights;
    for (const Var& slope : slopes) weights.push_back(slope * (1.0 / options_.tangents));
    for (std::size_t which = 0; which < dependent_.size(); ++which) {
      builder_.set_name(fmt::format("d({})", name_of(which)));
      Var sum = row(directions_[which], 0) * weights[0];
      for (std::size_t k = 1; k < weights.size(); ++k) sum = sum + row(directions_[which], k) * weights[k];
      result[dependent_[which]] = op::reshape(sum, parameter(which).shape());
    }
    return result;
  }

  Builder& builder_;
  Var loss_;
  std::span<const Var> parameters_;
  Var counter_;
  const ForwardGradientOptions& options_;
  std::vector<std::size_t> dependent_;  // the parameters that the loss depends on
  std::vector<Var> directions_;         // of those
};

}  // namespace

std::vector<Var> forward_gradient(Builder& builder, Var loss, std::span<const Var> parameters, Var counter,
                                  const ForwardGradientOptions& options) {
  return ForwardGradient(builder, loss, parameters, counter, options).run();
}

Graph with_tangents_in_place(const Graph& graph, std::size_t model_nodes) {
  // By node: the place that it moves to, that of the last of its inputs; directions, which have none, go
  // first.
  std::vector<std::size_t> place(graph.node_count());
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.nodes()[i];
    place[i] = i + 1;
    if (i < model_nodes || node.phase != Phase::forward) continue;
    place[i] = 0;
    for (ValueId input : node.inputs)
      if (input.valid() && graph.value(input).kind == graph::ValueKind::computed)
        place[i] = std::max(place[i], place[graph.value(input).producer.index()]);
  }
  std::vector<NodeId> order;
  for (std::size_t i = 0; i < graph.node_count(); ++i) order.emplace_back(i);
  std::ranges::stable_sort(order, {}, [&](NodeId id) { return place[id.index()]; });
  Rewrite rewrite(graph);
  rewrite.visit_nodes(order, [&](const Node& node) { rewrite.keep(node); });
  return rewrite.finish();
}

}  // namespace superstep::transform
