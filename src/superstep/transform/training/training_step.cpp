#include "superstep/transform/training/training_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "superstep/base/text.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/training/optimizer.h"
#include "superstep/transform/border.h"
#include "superstep/transform/training/append_loss.h"
#include "superstep/transform/training/differentiate.h"
#include "superstep/transform/training/forward_gradient.h"
#include "superstep/transform/training/scaled_loss.h"
#include "superstep/transform/training/training_form.h"

namespace superstep::transform {
namespace {

const std::vector<std::string> optimizer_names = {"sgd", "adam", "adamw", "adamax", "rmsprop", "lamb"};

std::vector<std::string> names_of(const Graph& graph, std::span<const ValueId> ids) {
  std::vector<std::string> names;
  for (ValueId id : ids) names.push_back(graph.value(id).name);
  return names;
}

class TrainingStep {
 public:
  TrainingStep(const Graph& model, const LossSpec& loss, const OptimizerSpec& optimizer,
               const TrainingStepOptions& options)
      : model_(model),
        loss_(loss),
        optimizer_(optimizer),
        options_(options),
        rewrite_(model),
        builder_(rewrite_.builder()),
        form_(rewrite_, options.seed, options.joint_statistics) {
    if (options.loss_scale.initial > 0 && options.gradient.kind != GradientMode::Kind::reverse)
      throw Error(ErrorCode::unsupported, "is of reverse gradients, and these are estimated forward",
                  "--loss-scale", "train with --gradient reverse, or in f32");
  }

  Graph run() {
    builder_.graph().set_name(model_.name() + ".training");
    rewrite_.visit_nodes([&](const Node& node) { form_.visit(node); });
    rewrite_.carry_updates();
    const Var loss = append_loss();
    const std::size_t model_nodes = rewrite_.graph().node_count();
    rate_ = new_input("learning_rate", {ElementType::f32, {}});
    append_updates(loss);
    builder_.output("loss", loss);
    if (options_.model_outputs) rewrite_.carry_outputs();
    if (options_.gradient.kind == GradientMode::Kind::reverse) return prune(rewrite_.graph());
    return prune(with_tangents_in_place(rewrite_.graph(), model_nodes));
  }

  // Gradients as outputs, and nothing learnt.
  Graph run_without_optimizer() {
    builder_.graph().set_name(model_.name() + ".gradient");
    rewrite_.visit_nodes([&](const Node& node) { form_.visit(node); });
    rewrite_.carry_updates();
    const Var loss = append_loss();
    const std::vector<Var> trained = rewrite_.now(parameters());
    builder_.set_name({});
    const std::vector<Var> gradients = reverse_gradients(loss, trained);
    if (std::ranges::none_of(gradients, &Var::valid)) throw_no_parameter();
    builder_.output("loss", loss);
    rewrite_.carry_outputs();
    for (std::size_t i = 0; i < trained.size(); ++i)
      builder_.output(fmt::format("gradient/{}", name_of(trained[i])), or_zeros(gradients[i], trained[i]));
    builder_.set_phase(Phase::update);
    form_.update_counter(samples());
    return prune(rewrite_.graph());
  }

 private:
  [[noreturn]] void throw_no_parameter() const {
    throw Error(ErrorCode::invalid_argument, "the loss depends on no parameter", model_.name());
  }

  // --- names

  Var new_input(const std::string& name, const graph::ValueType& type) {
    require_free_name(builder_.graph(), name);
    return builder_.input(name, type.element, type.shape);
  }
  Var new_state(const std::string& name, Tensor initial) {
    require_free_name(builder_.graph(), name);
    return builder_.state(name, std::move(initial));
  }

  Var append_loss() {
    builder_.set_phase(Phase::forward);
    builder_.set_name("loss");
    return AppendedLoss(rewrite_, model_).sum(loss_);
  }

  // --- gradients and updates

  std::vector<ValueId> parameters() const {
    const std::vector<ValueId> all = trainable_states(model_);
    const std::vector<std::string> known = names_of(model_, all);
    for (const std::string& name : options_.frozen)
      if (std::ranges::find(known, name) == known.end())
        throw Error(ErrorCode::invalid_argument, "there is no such parameter to freeze", name,
                    unknown_name_hint(name, known));
    std::vector<ValueId> result;
    for (ValueId id : all)
      if (std::ranges::find(options_.frozen, model_.value(id).name) == options_.frozen.end())
        result.push_back(id);
    return result;
  }

  void append_updates(Var loss) {
    const std::vector<Var> trained = rewrite_.now(parameters());
    builder_.set_name({});
    step_ = new_state("step", Tensor::scalar<std::int64_t>(0));
    std::optional<ScaledLoss> scaled;
    if (options_.loss_scale.initial > 0) scaled.emplace(builder_, options_.loss_scale);
    std::vector<Var> gradients = gradients_of(scaled ? scaled->scaled(loss) : loss, trained);
    builder_.set_phase(Phase::update);
    if (scaled) scaled->unscale(gradients);
    learnt_ = scaled ? step_ - scaled->skipped() : step_;
    finite_ = scaled ? scaled->finite() : Var();
    if (optimizer_.clip > 0 || options_.gradient_norms) {
      builder_.set_name(options_.gradient_norms ? gradient_norm : "clip");
      const Squares squares = squares_of(gradients);
      if (options_.gradient_norms) keep_norms(trained, squares);
      if (optimizer_.clip > 0) clip(gradients, squares.all);
    }
    bool any = false;
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (gradients[i].valid()) update_parameter(trained[i], gradients[i]), any = true;
    if (!any) throw_no_parameter();
    if (options_.average > 0) append_averages();
    if (scaled) scaled->update();
    builder_.set_name("step");
    builder_.update(step_, step_ + builder_.constant(Tensor::scalar<std::int64_t>(1)));
    form_.update_counter(samples());
  }

  // Of each parameter by its mode; invalid where the loss does not depend on it.
  std::vector<Var> gradients_of(Var loss, const std::vector<Var>& trained) {
    std::vector<Var> reverse, forward;
    ForwardGradientOptions estimate{
        .tangents = options_.gradient.tangents, .seed = options_.seed, .streams = {}};
    for (std::size_t i = 0; i < trained.size(); ++i) {
      const bool estimated = is_forward(options_.gradient, name_of(trained[i]));
      (estimated ? forward : reverse).push_back(trained[i]);
      if (estimated) estimate.streams.push_back(static_cast<std::uint32_t>(i));
    }
    for (const std::string& layer : options_.gradient.layers) require_layer(layer, trained);
    const std::vector<Var> exact = reverse.empty() ? reverse : reverse_gradients(loss, reverse);
    const std::vector<Var> estimates =
        forward.empty() ? forward : forward_gradient(builder_, loss, forward, step_, estimate);
    std::vector<Var> result;
    std::size_t next_exact = 0, next_estimate = 0;
    for (const Var& parameter : trained)
      result.push_back(is_forward(options_.gradient, name_of(parameter)) ? estimates[next_estimate++]
                                                                         : exact[next_exact++]);
    return result;
  }

  std::vector<Var> reverse_gradients(Var loss, const std::vector<Var>& parameters) {
    builder_.set_phase(Phase::backward);
    std::vector<Var> gradients = gradient(builder_, loss, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (gradients[i].valid()) gradients[i] = in_backward(gradients[i], parameters[i]);
    return gradients;
  }

  void require_layer(const std::string& layer, const std::vector<Var>& trained) const {
    const GradientMode mode{.kind = GradientMode::Kind::mixed, .layers = {layer}};
    std::vector<std::string> known;
    for (const Var& parameter : trained) known.push_back(name_of(parameter));
    if (std::ranges::none_of(known, [&](const std::string& name) { return is_forward(mode, name); }))
      throw Error(ErrorCode::invalid_argument, "there is no layer of this name with parameters to train",
                  layer, "there are: " + join(known, ", "));
  }

  // The sum of squares of each gradient, in f32 and invalid where the loss does not depend on it; and of all.
  struct Squares {
    std::vector<Var> own;
    Var all;
  };
  static Squares squares_of(const std::vector<Var>& gradients) {
    Squares squares;
    for (const Var gradient : gradients) {
      squares.own.emplace_back();
      if (!gradient.valid()) continue;
      squares.own.back() = op::cast(op::reduce_sum_square(gradient), ElementType::f32);
      squares.all = squares.all.valid() ? squares.all + squares.own.back() : squares.own.back();
    }
    return squares;
  }

  // Times clip / max(clip, norm), which is 1 up to `clip`.
  void clip(std::vector<Var>& gradients, Var squares) {
    builder_.set_name("clip");
    if (!squares.valid()) return;
    const Var limit = builder_.scalar(ElementType::f32, optimizer_.clip);
    const Var factor = limit / op::max(limit, op::sqrt(squares));
    for (Var& gradient : gradients)
      if (gradient.valid()) gradient = gradient * op::cast(factor, gradient.element());
  }

  void keep_norms(const std::vector<Var>& trained, const Squares& squares) {
    const auto keep = [&](const std::string& name, Var square) {
      const Var state = new_state(name, Tensor::scalar(0.0F));
      update_buffer(state, op::sqrt(square));
    };
    builder_.set_name(gradient_norm);
    if (squares.all.valid()) keep(gradient_norm, squares.all);
    for (std::size_t i = 0; i < trained.size(); ++i)
      if (squares.own[i].valid())
        keep(fmt::format("{}/{}", gradient_norm, name_of(trained[i])), squares.own[i]);
  }

  // average' = average + (1 - d) (parameter' - average)
  void append_averages() {
    builder_.set_name("average");
    const Var t = op::cast(step_, ElementType::f64);
    const Var late = builder_.scalar(ElementType::f64, 1 - options_.average);
    const Var taken = op::max(late, 9.0 / (t + 10.0));
    for (const auto& [parameter, next] : updated_) {
      builder_.set_name(fmt::format("average({})", name_of(parameter)));
      const Var average = new_state(fmt::format("average/{}", name_of(parameter)),
                                    builder_.graph().value(parameter.id()).data);
      builder_.update(average, average + (next - average) * op::cast(taken, parameter.element()));
    }
  }

  // Nothing is learnt from gradients that are not finite.
  Var learnt(Var state, Var next) const { return finite_.valid() ? op::where(finite_, next, state) : next; }

  void update(Var parameter, Var next) {
    next = learnt(parameter, next);
    builder_.update(parameter, next);
    updated_.emplace_back(parameter, next);
  }
  void update_buffer(Var buffer, Var next) { builder_.update(buffer, learnt(buffer, next)); }

  // A gradient that happens to be a forward value (the input itself, a constant) gets a node of its own.
  Var in_backward(Var gradient, Var parameter) {
    if (phase_of(builder_.graph(), gradient.id()) == Phase::backward) return gradient;
    builder_.set_name(fmt::format("d({})", name_of(parameter)));
    return op::identity(gradient);
  }

  std::string name_of(Var var) const { return builder_.graph().value(var.id()).name; }

  Var buffer(const char* kind, Var parameter) {
    return new_state(fmt::format("{}/{}", kind, name_of(parameter)),
                     Tensor::generated(parameter.element(), parameter.shape()));
  }

  void update_parameter(Var parameter, Var gradient) {
    builder_.set_name(fmt::format("update({})", name_of(parameter)));
    const bool decays = optimizer_.decay_vectors || parameter.shape().rank() > 1;
    const Update step{parameter, gradient, decays ? optimizer_.weight_decay : 0};
    switch (optimizer_.kind) {
      case OptimizerKind::sgd: return update_by_sgd(step);
      case OptimizerKind::adam:
      case OptimizerKind::adamw: return update_by_adam(step);
      case OptimizerKind::adamax: return update_by_adamax(step);
      case OptimizerKind::rmsprop: return update_by_rmsprop(step);
      case OptimizerKind::lamb: return update_by_lamb(step);
    }
  }

  struct Update {
    Var parameter, gradient;
    double weight_decay;
  };

  void update_by_adam(const Update& step) {
    const Var m = buffer("adam.m", step.parameter), v = buffer("adam.v", step.parameter);
    const auto next = op::adam(step.parameter, step.gradient, m, v, learnt_, rate_,
                               {.beta1 = optimizer_.beta1,
                                .beta2 = optimizer_.beta2,
                                .epsilon = optimizer_.epsilon,
                                .weight_decay = step.weight_decay,
                                .decoupled = optimizer_.kind == OptimizerKind::adamw});
    update(step.parameter, next.parameter);
    update_buffer(m, next.m);
    update_buffer(v, next.v);
  }

  void update_by_lamb(const Update& step) {
    const Var m = buffer("lamb.m", step.parameter), v = buffer("lamb.v", step.parameter);
    const bool scaled = step.parameter.shape().rank() > 1;
    const auto next = scaled ? op::lamb(step.parameter, step.gradient, m, v, learnt_, rate_,
                                        {.beta1 = optimizer_.beta1,
                                         .beta2 = optimizer_.beta2,
                                         .epsilon = optimizer_.epsilon,
                                         .weight_decay = step.weight_decay})
                             : op::adam(step.parameter, step.gradient, m, v, learnt_, rate_,
                                        {.beta1 = optimizer_.beta1,
                                         .beta2 = optimizer_.beta2,
                                         .epsilon = optimizer_.epsilon,
                                         .weight_decay = step.weight_decay,
                                         .decoupled = true});
    update(step.parameter, next.parameter);
    update_buffer(m, next.m);
    update_buffer(v, next.v);
  }

  void update_by_adamax(const Update& step) {
    const Var m = buffer("adamax.m", step.parameter), u = buffer("adamax.u", step.parameter);
    const auto next = op::adamax(step.parameter, step.gradient, m, u, learnt_, rate_,
                                 {.beta1 = optimizer_.beta1,
                                  .beta2 = optimizer_.beta2,
                                  .epsilon = optimizer_.epsilon,
                                  .weight_decay = step.weight_decay});
    update(step.parameter, next.parameter);
    update_buffer(m, next.m);
    update_buffer(u, next.u);
  }

  void update_by_rmsprop(const Update& step) {
    const Var momentum = optimizer_.momentum != 0 ? buffer("rmsprop.momentum", step.parameter) : Var();
    const Var v = new_state(fmt::format("rmsprop.v/{}", name_of(step.parameter)),
                            Tensor::full(step.parameter.element(), step.parameter.shape(), 1));
    const auto next = op::rmsprop(step.parameter, step.gradient, v, rate_, momentum,
                                  {.decay = optimizer_.beta2,
                                   .momentum = optimizer_.momentum,
                                   .epsilon = optimizer_.epsilon,
                                   .weight_decay = step.weight_decay});
    update(step.parameter, next.parameter);
    update_buffer(v, next.v);
    if (momentum.valid()) update_buffer(momentum, next.buffer);
  }

  void update_by_sgd(const Update& step) {
    const Var momentum = optimizer_.momentum != 0 ? buffer("sgd.momentum", step.parameter) : Var();
    const auto next = op::sgd(step.parameter, step.gradient, rate_, momentum,
                              {.momentum = optimizer_.momentum,
                               .weight_decay = step.weight_decay,
                               .nesterov = optimizer_.nesterov});
    update(step.parameter, next.parameter);
    if (momentum.valid()) update_buffer(momentum, next.buffer);
  }

  std::int64_t samples() const {
    for (ValueId id : model_.inputs())
      if (model_.type(id).shape.rank() > 0) return model_.type(id).shape[0];
    return 1;
  }

  const Graph& model_;
  const LossSpec& loss_;
  const OptimizerSpec& optimizer_;
  const TrainingStepOptions& options_;
  Rewrite rewrite_;
  Builder& builder_;
  TrainingForm form_;
  std::vector<std::pair<Var, Var>> updated_;  // parameters, and what they become
  Var rate_, step_;
  Var learnt_;  // steps that changed something
  Var finite_;  // whether this one does; invalid: always
};

}  // namespace

const char* name_of(OptimizerKind kind) { return optimizer_names[static_cast<std::size_t>(kind)].c_str(); }

OptimizerKind optimizer_kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < optimizer_names.size(); ++i)
    if (optimizer_names[i] == name) return static_cast<OptimizerKind>(i);
  throw Error(ErrorCode::invalid_argument, "there is no such optimizer", std::string(name),
              unknown_name_hint(name, optimizer_names));
}

OptimizerSpec usual_optimizer(OptimizerKind kind) {
  if (kind == OptimizerKind::rmsprop) return {.kind = kind, .beta2 = 0.9, .epsilon = 1e-3};
  if (kind == OptimizerKind::lamb) return {.kind = kind, .epsilon = 1e-6};
  return {.kind = kind};
}

Graph make_training_step(const Graph& model, const LossSpec& loss, const OptimizerSpec& optimizer,
                         const TrainingStepOptions& options) {
  return TrainingStep(model, loss, optimizer, options).run();
}

Graph make_gradient_step(const Graph& model, const LossSpec& loss, const TrainingStepOptions& options) {
  if (options.gradient.kind != GradientMode::Kind::reverse || options.average > 0)
    throw Error(ErrorCode::invalid_argument, "gradients are given by the reverse mode, without averages",
                model.name());
  return TrainingStep(model, loss, {}, options).run_without_optimizer();
}

}  // namespace superstep::transform
