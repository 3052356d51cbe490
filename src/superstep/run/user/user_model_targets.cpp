// What a user's model is compared with, by its loss and its metrics: targets, values, and what each is judged
// by.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "superstep/base/text.h"
#include "superstep/run/user/user_model.h"

namespace superstep::run {
namespace {

// The place among the targets of an array of this name, which is put there where it is not yet.
std::size_t place_among_targets(ArrayTaskSpec& spec, const std::string& name, const graph::ValueType& type,
                                std::size_t output) {
  const auto known =
      std::ranges::find(spec.targets, name, [](const auto& each) { return each.names.front(); });
  if (known != spec.targets.end()) return static_cast<std::size_t>(known - spec.targets.begin());
  spec.targets.push_back({.names = {name}, .type = type, .output = output});
  return spec.targets.size() - 1;
}

}  // namespace

ArrayTaskSpec UserModel::task_spec() const {
  ArrayTaskSpec spec{
      .inputs = {}, .targets = {}, .allow_not_finite = settings_.allow_not_finite, .one_a_call = one_a_call_};
  spec.augmentations = settings_.augmentations;
  spec.scalings = settings_.scalings;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const workload::PortSpec& input = workload_.inputs[i];
    spec.inputs.push_back({input.name, input.element, input.shape, inputs_[i].batched});
  }
  const std::vector<MetricChoice> chosen = metrics_from_text(settings_.metrics);
  for (const transform::LossTerm& term : loss_.terms) {
    const Port& output = output_of(term.output);
    if (!one_a_call_ && !output.batched) continue;  // of a whole batch: open_task() says so
    // No quality of something that cannot be trained: make_training_step says why.
    if (!transform::has_axes_for(term.kind, output.type.shape)) continue;
    if (transform::needs_target(term.kind))
      add_targets(term, chosen, spec);
    else
      add_value(term, chosen, spec);
  }
  require_chosen(chosen, spec);
  return spec;
}

std::size_t UserModel::position_of(const Port& output) const {
  return static_cast<std::size_t>(&output - outputs_.data());
}

// What a term takes beside its target, in the order in which the training step asks for it
// (transform/training/append_loss.cpp), each name once.
ArrayTaskSpec::Comparison UserModel::comparison_of(const transform::LossTerm& term,
                                                   ArrayTaskSpec& spec) const {
  const Port& output = output_of(term.output);
  ArrayTaskSpec::Comparison comparison{.term = term, .metrics = {}};
  const auto place_of = [&](const std::string& name,
                            const graph::ValueType& type) -> std::optional<std::size_t> {
    if (name.empty()) return {};
    return place_among_targets(spec, name, type, position_of(output));
  };
  const auto length = [&](const std::string& name, std::int64_t longest) {
    const auto place = place_of(name, transform::lengths_type(output.type));
    if (place) spec.targets[*place].longest = longest;
    return place;
  };
  const auto output_at = [&](const std::string& name) -> std::optional<std::size_t> {
    if (name.empty()) return {};
    return position_of(output_of(name));
  };
  comparison.input_lengths =
      length(term.input_lengths, output.type.shape.rank() > 1 ? output.type.shape[1] : 1);
  comparison.target_lengths = length(term.target_lengths, term.longest.value_or(1));
  place_of(term.sample_weights, transform::sample_weights_type(output.type));
  comparison.mask = place_of(term.mask, transform::mask_type(term, output.type));
  comparison.variance = output_at(term.variance);
  comparison.positive = output_at(term.positive), comparison.negative = output_at(term.negative);
  return comparison;
}

// What a term compares an output with, then what samples count and what elements count.
void UserModel::add_targets(const transform::LossTerm& term, const std::vector<MetricChoice>& chosen,
                            ArrayTaskSpec& spec) const {
  const Port& output = output_of(term.output);
  const bool named = term.target.starts_with("target.");
  const std::size_t place =
      place_among_targets(spec, term.target, transform::target_type(term, output.type), position_of(output));
  ArrayTaskSpec::Comparison comparison = comparison_of(term, spec);
  ArrayTaskSpec::Target& target = spec.targets[place];
  target.names = {term.target, output.name};
  if (named) target.label = output.name;
  if (transform::takes_labels(term.kind))
    target.classes = output.type.shape[transform::class_axis(term.kind, output.type.shape)];
  comparison.metrics = metrics_of_term(term, chosen, target.compared);
  target.compared.push_back(std::move(comparison));
}

// Of a term that compares with no target: an output's own value, or outputs among themselves.
void UserModel::add_value(const transform::LossTerm& term, const std::vector<MetricChoice>& chosen,
                          ArrayTaskSpec& spec) const {
  const Port& output = output_of(term.output);
  ArrayTaskSpec::Value value{.output = position_of(output),
                             .label = loss_.terms.size() > 1 ? output.name : std::string()};
  if (term.kind == transform::LossKind::triplet_margin) {
    value.compared = comparison_of(term, spec);
    value.compared->metrics = metrics_of_term(term, chosen, {});
  }
  spec.values.push_back(std::move(value));
}

// Those that were chosen of it, else the usual ones; each once where several terms compare the same.
std::vector<std::string> UserModel::metrics_of_term(
    const transform::LossTerm& term, const std::vector<MetricChoice>& chosen,
    const std::vector<ArrayTaskSpec::Comparison>& before) const {
  const std::vector<std::string> known = metrics_for(term.kind);
  std::vector<std::string> names = chosen.empty() ? default_metrics(term.kind) : std::vector<std::string>{};
  for (const MetricChoice& choice : chosen)
    if (std::ranges::find(known, choice.name) != known.end() &&
        (choice.output.empty() || choice.output == term.output))
      names.push_back(choice.name);
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(before, [&](const ArrayTaskSpec::Comparison& each) {
      return std::ranges::find(each.metrics, name) != each.metrics.end();
    });
  });
  return names;
}

// That each metric that was chosen is one of some term.
void UserModel::require_chosen(const std::vector<MetricChoice>& chosen, const ArrayTaskSpec& spec) const {
  for (const MetricChoice& choice : chosen) {
    if (!choice.output.empty()) output_of(choice.output, "--metrics " + settings_.metrics);
    std::vector<std::string> known;
    bool found = false;
    const auto look_at = [&](const ArrayTaskSpec::Comparison& comparison) {
      if (!choice.output.empty() && choice.output != comparison.term.output) return;
      for (const std::string& name : metrics_for(comparison.term.kind)) known.push_back(name);
      found = found || std::ranges::find(comparison.metrics, choice.name) != comparison.metrics.end();
    };
    for (const ArrayTaskSpec::Target& target : spec.targets)
      for (const ArrayTaskSpec::Comparison& comparison : target.compared) look_at(comparison);
    for (const ArrayTaskSpec::Value& value : spec.values)
      if (value.compared) look_at(*value.compared);
    if (found) continue;
    throw Error(
        ErrorCode::invalid_argument, fmt::format("'{}' is no metric of what this loss compares", choice.name),
        "--metrics " + settings_.metrics,
        known.empty() ? "its loss is an output: its mean is the metric" : "there are: " + join(known, ", "));
  }
}

}  // namespace superstep::run
