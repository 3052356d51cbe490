#include "superstep/lab/bench/recurrent_reference.h"

#include <cmath>

#include "superstep/base/random.h"

namespace superstep::lab {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = tensor.at(static_cast<std::int64_t>(i));
  return values;
}

std::vector<double> moved(const std::vector<double>& from, const std::vector<double>& direction, double by) {
  std::vector<double> result = from;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] += by * direction[i];
  return result;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// sums[g] += row g of `matrix` times `vector`.
void add_product(const std::vector<double>& matrix, const double* vector, std::size_t columns,
                 std::vector<double>& sums) {
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const double* const m = matrix.data() + row * columns;
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += m[i] * vector[i];
    sums[row] += sum;
  }
}

// The state of one cell after a step: `of_x` and `of_h` are a gate's products with the input and the state.
double stepped(PrimitiveKind kind, const std::vector<double>& of_x, const std::vector<double>& of_h,
               std::size_t hidden, std::size_t i, double h, double& cell) {
  const auto gate = [&](std::size_t g) { return of_x[g * hidden + i] + of_h[g * hidden + i]; };
  if (kind == PrimitiveKind::rnn) return std::tanh(gate(0));
  if (kind == PrimitiveKind::gru) {
    const double update = sigmoid(gate(0)), reset = sigmoid(gate(1));
    return (1 - update) * std::tanh(of_x[2 * hidden + i] + reset * of_h[2 * hidden + i]) + update * h;
  }
  cell = sigmoid(gate(2)) * cell + sigmoid(gate(0)) * std::tanh(gate(3));
  return sigmoid(gate(1)) * std::tanh(cell);
}

}  // namespace

RecurrentReference::RecurrentReference(const Primitive& shape, const Tensor& w, const Tensor& r)
    : kind_(shape.kind),
      steps_(static_cast<std::size_t>(shape.steps)),
      inputs_(static_cast<std::size_t>(shape.inputs)),
      hidden_(static_cast<std::size_t>(shape.hidden)),
      gates_(static_cast<std::size_t>(gates_of(shape.kind)) * hidden_),
      w_(values_of(w)),
      r_(values_of(r)) {}

RecurrentSample RecurrentReference::sample_of(const Tensor& x, std::int64_t sample) const {
  RecurrentSample values(steps_ * inputs_);
  const auto first = sample * static_cast<std::int64_t>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = x.at(first + static_cast<std::int64_t>(i));
  return values;
}

std::vector<double> RecurrentReference::forward(const RecurrentSample& x) const { return forward(x, w_, r_); }

std::vector<double> RecurrentReference::forward(const RecurrentSample& x, const std::vector<double>& w,
                                                const std::vector<double>& r) const {
  std::vector<double> y(steps_ * hidden_), h(hidden_), cell(hidden_), of_x, of_h;
  for (std::size_t t = 0; t < steps_; ++t) {
    of_x.assign(gates_, 0.0);
    of_h.assign(gates_, 0.0);
    add_product(w, x.data() + t * inputs_, inputs_, of_x);
    add_product(r, h.data(), hidden_, of_h);
    for (std::size_t i = 0; i < hidden_; ++i)
      y[t * hidden_ + i] = h[i] = stepped(kind_, of_x, of_h, hidden_, i, h[i], cell[i]);
  }
  return y;
}

std::vector<double> RecurrentReference::direction(By by, std::uint64_t seed) const {
  std::vector<double> values(by == By::x ? steps_ * inputs_ : by == By::w ? w_.size() : r_.size());
  RandomStream random(seed);
  for (double& value : values) value = random.uniform(-1, 1);
  return values;
}

double RecurrentReference::directional_derivative(const RecurrentSample& x, By by,
                                                  const std::vector<double>& direction,
                                                  const std::vector<double>& cotangent) const {
  constexpr double step = 1e-5;  // near the cube root of double's rounding, where both errors are least
  const auto loss = [&](double at) {
    if (by == By::x) return dot(forward(moved(x, direction, at), w_, r_), cotangent);
    if (by == By::w) return dot(forward(x, moved(w_, direction, at), r_), cotangent);
    return dot(forward(x, w_, moved(r_, direction, at)), cotangent);
  };
  return (loss(step) - loss(-step)) / (2 * step);
}

}  // namespace superstep::lab
