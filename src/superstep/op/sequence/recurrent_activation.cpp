#include "superstep/op/sequence/recurrent_activation.h"

#include <fmt/format.h>

#include "superstep/op/core/checks.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"

namespace superstep::op {
namespace {

template <class T>
std::vector<T> list_attribute(const Attributes& attributes, std::string_view name) {
  const graph::Attribute* found = attributes.find(name);
  if (!found) return {};
  if (const auto* list = std::get_if<std::vector<T>>(found)) return *list;
  refuse(fmt::format("attribute '{}' is not a list of the right kind", name));
}

// Values are consumed in the order of the functions that take one.
class Parameters {
 public:
  explicit Parameters(std::vector<double> values) : values_(std::move(values)) {}
  double next(double otherwise) { return used_ < values_.size() ? values_[used_++] : otherwise; }

 private:
  std::vector<double> values_;
  std::size_t used_ = 0;
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Activation activation_of(const std::string& name, Parameters& alphas, Parameters& betas) {
  const std::string key = lower(name);
  if (key == "sigmoid") return sigmoid;
  if (key == "tanh") return tanh;
  if (key == "relu") return relu;
  if (key == "softsign") return softsign;
  if (key == "softplus") return softplus;
  if (key == "affine") return [a = alphas.next(1), b = betas.next(0)](Var x) { return x * a + b; };
  if (key == "leakyrelu") return [a = alphas.next(0.01)](Var x) { return leaky_relu(x, a); };
  if (key == "thresholdedrelu") return [a = alphas.next(1)](Var x) { return thresholded_relu(x, a); };
  if (key == "scaledtanh") return [a = alphas.next(1), b = betas.next(1)](Var x) { return tanh(x * b) * a; };
  if (key == "hardsigmoid")
    return [a = alphas.next(0.2), b = betas.next(0.5)](Var x) { return hard_sigmoid(x, a, b); };
  if (key == "elu") return [a = alphas.next(1)](Var x) { return elu(x, a); };
  refuse(fmt::format("attribute 'activations' names '{}', which is not known", name));
}

}  // namespace

std::vector<Activation> recurrent_activations(const Attributes& attributes, std::vector<std::string> defaults,
                                              int directions) {
  const std::size_t wanted = defaults.size() * static_cast<std::size_t>(directions);
  std::vector<std::string> names = list_attribute<std::string>(attributes, "activations");
  if (names.empty())
    for (int i = 0; i < directions; ++i) names.insert(names.end(), defaults.begin(), defaults.end());
  require(names.size() == wanted,
          fmt::format("attribute 'activations' names {} functions, expected {}", names.size(), wanted));
  Parameters alphas(list_attribute<double>(attributes, "activation_alpha"));
  Parameters betas(list_attribute<double>(attributes, "activation_beta"));
  std::vector<Activation> result;
  for (const std::string& name : names) result.push_back(activation_of(name, alphas, betas));
  return result;
}

}  // namespace superstep::op
