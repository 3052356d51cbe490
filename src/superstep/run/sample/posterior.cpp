#include "superstep/run/sample/posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/run/sample/posterior_density.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/training_form.h"

namespace superstep::run {
namespace {

std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(0, count)));
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::vector<Tensor> tensors_for(const graph::Graph& graph, std::size_t count) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    const graph::ValueType& type = graph.type(graph.inputs()[i]);
    tensors.emplace_back(type.element, type.shape);
  }
  return tensors;
}

void require_finite(const graph::Graph& graph, std::span<const Tensor> tensors,
                    std::span<const std::int64_t> indices, const std::string& source) {
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (!is_floating(tensors[k].type())) continue;
    const std::int64_t row = tensors[k].element_count() / static_cast<std::int64_t>(indices.size());
    for (std::int64_t i = 0; i < tensors[k].element_count(); ++i)
      if (!std::isfinite(tensors[k].at(i)))
        throw Error(ErrorCode::bad_file,
                    fmt::format("'{}' of sample {} is {}", graph.value(graph.inputs()[k]).name,
                                indices[static_cast<std::size_t>(i / row)], tensors[k].at(i)),
                    source, "only finite numbers have a likelihood");
  }
}

// Of a model that takes its batches whole: as many as go into them.
std::int64_t whole_batches(std::int64_t samples, std::int64_t fixed) {
  return fixed > 0 ? samples / fixed * fixed : samples;
}

}  // namespace

Posterior::Posterior(const Model& model, const Prior& prior, std::optional<double> scale)
    : model_(model),
      target_(target::find_target(model.settings().target)),
      likelihoods_(likelihoods_of(model.recipe().loss, scale, model.settings().workload)) {
  const graph::Graph described = model.as_described()(std::max<std::int64_t>(1, model.fixed_batch()));
  for (const graph::ValueId id : transform::trainable_states(described)) {
    const graph::Value& value = described.value(id);
    if (value.type.element != ElementType::f32)
      throw Error(ErrorCode::unsupported,
                  fmt::format("the parameter '{}' is {}: f32 is sampled", value.name, to_string(value.type)),
                  model.settings().workload);
    const auto count = static_cast<std::size_t>(value.type.shape.element_count());
    parameters_.push_back({value.name, value.type, size_, count, deviation_of(prior, described, id)});
    size_ += count;
  }
  if (parameters_.empty())
    throw Error(ErrorCode::invalid_argument, "has no parameters to sample", model.settings().workload);
  for (const Likelihood& likelihood : likelihoods_) size_ += likelihood.samples_scale() ? 1 : 0;
}

std::optional<std::size_t> Posterior::place_of_scale(std::size_t term) const {
  if (!likelihoods_[term].samples_scale()) return std::nullopt;
  std::size_t place = parameters_.back().offset + parameters_.back().count;
  for (std::size_t k = 0; k < term; ++k) place += likelihoods_[k].samples_scale() ? 1 : 0;
  return place;
}

double Posterior::log_scale(std::size_t term, std::span<const double> position) const {
  if (const auto place = place_of_scale(term)) return position[*place];
  return likelihoods_[term].scale ? std::log(*likelihoods_[term].scale) : 0;
}

std::vector<std::string> Posterior::names_of_scales() const {
  std::vector<std::string> names;
  const bool one = likelihoods_.size() == 1;
  for (const Likelihood& likelihood : likelihoods_)
    if (likelihood.samples_scale()) names.push_back(one ? "noise" : "noise/" + likelihood.term.target);
  return names;
}

target::GraphAtBatch Posterior::loss_graph(bool gradients) const {
  std::vector<transform::LossTerm> terms;
  for (const Likelihood& likelihood : likelihoods_) terms.push_back(likelihood.term);
  std::vector<transform::Pass> passes = model_.passes(false);
  passes.push_back(transform::loss_gradient_pass(std::move(terms), {.gradients = gradients}));
  return [target = &target_, model = model_.as_described(), passes = std::move(passes)](std::int64_t batch) {
    return transform::run_passes(target->suited(model(batch)), passes);
  };
}

std::unique_ptr<target::Executable> Posterior::compile(const target::GraphAtBatch& graph,
                                                       std::int64_t batch) const {
  // One thread each: chains are divided over threads, and sums keep their order.
  return target_.compile(graph, {.batch = batch, .micro_batch = model_.fixed_batch(), .threads = 1});
}

std::shared_ptr<const PosteriorData> Posterior::data(const Task& task, std::int64_t held_out) const {
  auto data = std::make_shared<PosteriorData>();
  const std::int64_t fixed = model_.fixed_batch(), first = task.training_count();
  const std::string source = task.describe().value("source", model_.settings().workload);
  data->training_indices = numbers(0, whole_batches(first, fixed));
  data->held_out_indices = numbers(first, whole_batches(std::min(held_out, task.size() - first), fixed));
  const auto samples = static_cast<std::int64_t>(data->training_indices.size());
  if (samples < 1)
    throw Error(ErrorCode::invalid_argument, "there are no training samples", source, "give more --samples");
  const std::size_t terms = likelihoods_.size();
  const auto filled = [&](const std::vector<std::int64_t>& indices) {
    const graph::Graph graph = loss_graph(false)(static_cast<std::int64_t>(indices.size()));
    std::vector<Tensor> tensors = tensors_for(graph, graph.inputs().size() - terms);
    task.fill(indices, 0, false, tensors);
    require_finite(graph, tensors, indices, source);
    return tensors;
  };
  data->training = filled(data->training_indices);
  const graph::Graph model = model_.as_described()(samples);
  const std::size_t inputs = model.inputs().size();
  const graph::Graph graph = loss_graph(false)(samples);
  std::vector<std::size_t> target_of;  // by term: its place among the tensors
  for (const Likelihood& likelihood : likelihoods_)
    for (std::size_t k = inputs; k < data->training.size(); ++k)
      if (graph.value(graph.inputs()[k]).name == likelihood.term.target) target_of.push_back(k);
  for (std::size_t term = 0; term < terms; ++term) {
    const Tensor& targets = data->training[target_of[term]];
    data->counts.push_back(static_cast<double>(targets.element_count()));
    data->log_scales.push_back(prior_log_scale(likelihoods_[term].kind, targets));
  }
  if (data->held_out_indices.empty()) return data;
  const std::vector<Tensor> others = filled(data->held_out_indices);
  data->held_out.assign(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(inputs));
  for (const std::size_t k : target_of) data->held_out_targets.push_back(others[k]);
  return data;
}

std::vector<double> Posterior::start(const PosteriorData& data, int chain) const {
  TrainSettings settings = model_.settings();
  const std::uint64_t seed = settings.seed + static_cast<std::uint64_t>(chain);
  settings.seed = seed;
  const bool file = is_model_file(settings.workload);
  const Model own = file ? model_ : Model(settings);
  const graph::Graph described = own.as_described()(std::max<std::int64_t>(1, own.fixed_batch()));
  std::vector<double> position(size_);
  constexpr std::uint32_t purpose = 0x57A27;  // of the stream; others of a chain have its number
  RandomStream random(seed, 0, purpose);
  for (const SampledParameter& parameter : parameters_) {
    const Tensor& first = described.value(described.find_value(parameter.name)).data;
    for (std::size_t i = 0; i < parameter.count; ++i)
      position[parameter.offset + i] =
          first.at(static_cast<std::int64_t>(i)) + (file ? 0.1 * parameter.deviation * random.normal() : 0);
  }
  for (std::size_t term = 0; term < likelihoods_.size(); ++term)
    if (const auto place = place_of_scale(term)) position[*place] = data.log_scales[term];
  return position;
}

std::unique_ptr<PosteriorDensity> Posterior::density(std::shared_ptr<const PosteriorData> data,
                                                     const Task& task, ThreadPool& pool) const {
  return std::make_unique<PosteriorDensity>(*this, std::move(data), task, pool);
}

}  // namespace superstep::run
