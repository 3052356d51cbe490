#include "superstep/api/session.h"

#include "superstep/api/ports.h"

namespace superstep {

Session::Session(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const std::vector<Port>& Session::inputs() const { return implementation_->inputs(); }
const std::vector<Port>& Session::outputs() const { return implementation_->outputs(); }

void Session::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  implementation_->run(inputs, outputs);
}

std::vector<Tensor> Session::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs = implementation_->empty_outputs();
  implementation_->run(inputs, outputs);
  return outputs;
}

NamedValues Session::run(const NamedValues& inputs) {
  const std::vector<Tensor> values = run(api::in_order(this->inputs(), inputs));
  NamedValues outputs;
  for (std::size_t i = 0; i < values.size(); ++i) outputs.emplace(this->outputs()[i].name, values[i]);
  return outputs;
}

std::vector<std::string> Session::parameter_names() const { return implementation_->state_names(); }
Tensor Session::parameter(std::string_view name) const { return implementation_->state(name); }
void Session::set_parameter(std::string_view name, const Tensor& value) {
  implementation_->set_state(name, value);
}

PlanFacts Session::plan() const { return api::facts_of(implementation_->executable().summary()); }

}  // namespace superstep
