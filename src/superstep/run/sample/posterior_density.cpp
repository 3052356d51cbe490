#include "superstep/run/sample/posterior_density.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace superstep::run {
namespace {

constexpr double log_two_pi = 1.8378770664093454836;  // log(2 pi)
constexpr double no_density = -std::numeric_limits<double>::infinity();

// Of a normal distribution; by its argument in `slope`.
double log_normal(double off, double deviation, double& slope) {
  slope = -off / (deviation * deviation);
  return off * slope / 2 - std::log(deviation) - log_two_pi / 2;
}

std::vector<Tensor> outputs_of(const target::Executable& executable) {
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  return outputs;
}

}  // namespace

PosteriorDensity::PosteriorDensity(const Posterior& posterior, std::shared_ptr<const PosteriorData> data,
                                   const Task& task, ThreadPool& pool)
    : posterior_(posterior), data_(std::move(data)) {
  const Model& model = posterior.model();
  if (model.workload().fit)
    counted_ =
        model.workload().fit(task, Options(model.workload().options, model.settings().model_options), pool);
  for (const SampledParameter& parameter : posterior.parameters())
    parameters_.emplace_back(parameter.type.element, parameter.type.shape);
  gradient_ = plan_of_loss(true);
  if (data_->held_out.empty()) return;
  const auto samples = static_cast<std::int64_t>(data_->held_out_indices.size());
  prediction_.executable = posterior.compile(model.inference(&posterior.target_), samples);
  for (const auto& [name, value] : counted_) prediction_.executable->set_state(name, value);
  prediction_.inputs = data_->held_out;
  prediction_.outputs = outputs_of(*prediction_.executable);
  predicted_.resize(posterior.likelihoods().size());
}

PosteriorDensity::Plan PosteriorDensity::plan_of_loss(bool gradients) {
  Plan plan;
  plan.executable = posterior_.compile(posterior_.loss_graph(gradients),
                                       static_cast<std::int64_t>(data_->training_indices.size()));
  for (const auto& [name, value] : counted_) plan.executable->set_state(name, value);
  plan.inputs = data_->training;
  for (std::size_t k = 0; k < posterior_.likelihoods().size(); ++k)
    plan.inputs.push_back(Tensor::scalar<float>(1));
  plan.outputs = outputs_of(*plan.executable);
  return plan;
}

void PosteriorDensity::place(std::span<const double> position, target::Executable& executable) {
  const auto parameters = posterior_.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const double* from = position.data() + parameters[p].offset;
    float* const to = parameters_[p].as<float>().data();
    for (std::size_t i = 0; i < parameters[p].count; ++i) to[i] = static_cast<float>(from[i]);
    executable.set_state(parameters[p].name, parameters_[p]);
  }
}

double PosteriorDensity::ask(Plan& plan, std::span<const double> position, std::span<double> gradient) {
  const auto likelihoods = posterior_.likelihoods();
  const auto parameters = posterior_.parameters();
  const bool wants_gradient = !gradient.empty();
  place(position, *plan.executable);
  const std::size_t first_weight = plan.inputs.size() - likelihoods.size();
  for (std::size_t k = 0; k < likelihoods.size(); ++k)
    plan.inputs[first_weight + k].as<float>()[0] = static_cast<float>(
        run::evaluate(likelihoods[k].kind, data_->counts[k], 0, posterior_.log_scale(k, position)).weight);
  plan.executable->run(plan.inputs, plan.outputs);
  double log_density = 0, slope = 0;
  for (std::size_t k = 0; k < likelihoods.size(); ++k) {
    const double log_scale = posterior_.log_scale(k, position);
    const LikelihoodValue value =
        run::evaluate(likelihoods[k].kind, data_->counts[k], plan.outputs[k].at(0), log_scale);
    log_density += value.log;
    const auto place = posterior_.place_of_scale(k);
    if (!place) continue;
    log_density += log_normal(log_scale - data_->log_scales[k], 1, slope);
    if (wants_gradient) gradient[*place] = value.by_log_scale + slope;
  }
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const SampledParameter& parameter = parameters[p];
    const float* const of_loss =
        wants_gradient ? plan.outputs[likelihoods.size() + p].as<float>().data() : nullptr;
    const double precision = 1 / (parameter.deviation * parameter.deviation);
    double squares = 0;
    for (std::size_t i = 0; i < parameter.count; ++i) {
      const double at = position[parameter.offset + i];
      squares += at * at;
      if (wants_gradient) gradient[parameter.offset + i] = -at * precision - static_cast<double>(of_loss[i]);
    }
    log_density -= squares * precision / 2 +
                   static_cast<double>(parameter.count) * (std::log(parameter.deviation) + log_two_pi / 2);
  }
  return std::isnan(log_density) ? no_density : log_density;
}

double PosteriorDensity::evaluate(std::span<const double> position, std::span<double> gradient) {
  return ask(gradient_, position, gradient);
}

double PosteriorDensity::value(std::span<const double> position) {
  if (!value_.executable) value_ = plan_of_loss(false);
  return ask(value_, position, {});
}

std::span<const Tensor> PosteriorDensity::predict(std::span<const double> position) {
  if (!prediction_.executable) return {};
  place(position, *prediction_.executable);
  prediction_.executable->run(prediction_.inputs, prediction_.outputs);
  const auto ports = prediction_.executable->outputs();
  for (std::size_t k = 0; k < predicted_.size(); ++k) {
    const std::string& wanted = posterior_.likelihoods()[k].term.output;
    std::size_t port = 0;
    while (!wanted.empty() && port + 1 < ports.size() && ports[port].name != wanted) ++port;
    predicted_[k] = prediction_.outputs[port];
  }
  return predicted_;
}

std::vector<double> PosteriorDensity::log_likelihoods(std::span<const double> position) const {
  std::vector<double> logs(data_->held_out_indices.size());
  const auto likelihoods = posterior_.likelihoods();
  for (std::size_t k = 0; k < predicted_.size(); ++k)
    for (std::size_t i = 0; i < logs.size(); ++i)
      logs[i] += log_density_of_sample(likelihoods[k], predicted_[k], data_->held_out_targets[k],
                                       static_cast<std::int64_t>(i), posterior_.log_scale(k, position));
  return logs;
}

}  // namespace superstep::run
