#include "superstep/api/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/api/ports.h"
#include "superstep/run/train/checkpoint.h"

namespace superstep {
namespace {

constexpr const char* rate_name = "learning_rate";  // the last input of a training step
constexpr const char* step_name = "step";           // its state that counts (transform/training_step.h)

}  // namespace

Trainer::Implementation::Implementation(std::unique_ptr<target::Executable> executable, std::string name,
                                        double learning_rate)
    : Compiled(std::move(executable)), name_(std::move(name)), learning_rate_(learning_rate) {
  for (const Port& port : inputs())
    if (port.name != rate_name) values_.push_back(port);
}

double Trainer::Implementation::step(std::span<const Tensor> values, double learning_rate) {
  if (!(learning_rate >= 0) || !std::isfinite(learning_rate))
    throw Error(ErrorCode::invalid_argument, "must be a number that is not negative", rate_name);
  if (values.size() != values_.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} values are needed (inputs, then targets), {} are given", values_.size(),
                            values.size()));
  std::vector<Tensor> inputs;
  auto next = values.begin();
  for (const Port& port : this->inputs())
    if (port.name == rate_name)
      inputs.push_back(
          Tensor::scalar(static_cast<float>(learning_rate > 0 ? learning_rate : learning_rate_)));
    else
      inputs.push_back(*next++);
  std::vector<Tensor> outputs = empty_outputs();
  run(inputs, outputs);
  const double loss = outputs.at(0).at(0);
  if (!std::isfinite(loss))
    throw Error(ErrorCode::diverged, fmt::format("the loss of step {} is not finite", steps()), name_,
                "lower the learning rate, or look for values that are not finite in the batch");
  return loss;
}

std::int64_t Trainer::Implementation::steps() const {
  return static_cast<std::int64_t>(executable().state_in_place(step_name).at(0));
}

void Trainer::Implementation::save(const std::filesystem::path& file) const {
  run::Checkpoint checkpoint{.workload = name_, .signature = {}, .step = steps(), .states = {}, .notes = {}};
  checkpoint.states = run::states_of(executable());
  checkpoint.signature = run::state_signature(checkpoint.states);
  run::write_checkpoint_file(file, checkpoint);
}

void Trainer::Implementation::restore(const std::filesystem::path& file) {
  run::restore(executable(), run::read_checkpoint(file), file.string());
}

Trainer::Trainer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

const std::vector<Port>& Trainer::inputs() const { return implementation_->values(); }

double Trainer::step(std::span<const Tensor> values, double learning_rate) {
  return implementation_->step(values, learning_rate);
}

double Trainer::step(const NamedValues& values, double learning_rate) {
  return implementation_->step(api::in_order(inputs(), values), learning_rate);
}

std::int64_t Trainer::steps() const { return implementation_->steps(); }

std::vector<std::string> Trainer::parameter_names() const { return implementation_->state_names(); }
Tensor Trainer::parameter(std::string_view name) const { return implementation_->state(name); }
void Trainer::set_parameter(std::string_view name, const Tensor& value) {
  implementation_->set_state(name, value);
}

void Trainer::save(const std::filesystem::path& file) const { implementation_->save(file); }
void Trainer::restore(const std::filesystem::path& file) { implementation_->restore(file); }

PlanFacts Trainer::plan() const { return api::facts_of(implementation_->executable().summary()); }

}  // namespace superstep
