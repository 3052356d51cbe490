// Window functions and the mel filter bank: values made from constants.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/product/spectral.h"

namespace superstep::op {
namespace {

ElementType output_type(const Attributes& attributes) {
  return element_attribute(attributes, "output_datatype", ElementType::f32);
}

std::vector<ValueType> infer_window(const InferContext& context) {
  require_scalar(context, 0, "size");
  return {{output_type(context.attributes), checked_shape(context.known_integers(0, "input size"))}};
}

// sum over k of coefficient[k] cos(2 pi k i / n), n the size (periodic) or one less (symmetric).
void cosine_window(const EvaluateContext& context, std::span<const double> coefficients) {
  const std::int64_t size = context.output(0).element_count();
  const bool periodic = context.attributes.integer("periodic", 1) != 0;
  const auto period = static_cast<double>(periodic ? size : size - 1);
  std::vector<double> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t k = 0; k < coefficients.size(); ++k)
      values[i] += coefficients[k] * std::cos(2 * std::numbers::pi * static_cast<double>(k * i) / period);
  narrow(values, context.output(0));
}

void evaluate_hann(const EvaluateContext& context) {
  static constexpr double coefficients[] = {0.5, -0.5};
  cosine_window(context, coefficients);
}
void evaluate_hamming(const EvaluateContext& context) {
  static constexpr double coefficients[] = {25.0 / 46, -21.0 / 46};
  cosine_window(context, coefficients);
}
void evaluate_blackman(const EvaluateContext& context) {
  static constexpr double coefficients[] = {0.42, -0.5, 0.08};
  cosine_window(context, coefficients);
}

// Inputs of MelWeightMatrix: num_mel_bins, dft_length, sample_rate, lower and upper edge in hertz.
std::vector<ValueType> infer_mel(const InferContext& context) {
  static constexpr const char* names[] = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz",
                                          "upper_edge_hertz"};
  for (std::size_t i = 0; i < 5; ++i) require_scalar(context, i, names[i]);
  const std::int64_t bins = context.known_integers(0, "input num_mel_bins")[0];
  const std::int64_t length = context.known_integers(1, "input dft_length")[0];
  return {{output_type(context.attributes), checked_shape({length / 2 + 1, bins})}};
}

double mel_from_hertz(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz_from_mel(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Spectrum bins at which the triangles of the mel bands begin, peak and end.
std::vector<std::int64_t> mel_edges(std::int64_t bands, double length, double rate, double low, double high) {
  const double first = mel_from_hertz(low);
  const double step = (mel_from_hertz(high) - first) / static_cast<double>(bands + 2);
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = hertz_from_mel(first + step * static_cast<double>(i));
    edges.push_back(static_cast<std::int64_t>(std::floor((length + 1) * hertz / rate)));
  }
  return edges;
}

void evaluate_mel(const EvaluateContext& context) {
  const Shape& shape = context.output(0).shape();
  const std::int64_t rows = shape[0], bands = shape[1];
  const auto edges = mel_edges(bands, context.input(1).at(0), context.input(2).at(0), context.input(3).at(0),
                               context.input(4).at(0));
  std::vector<double> weights(static_cast<std::size_t>(rows * bands));
  const auto set = [&](std::int64_t row, std::int64_t band, double value) {
    if (row >= 0 && row < rows) weights[static_cast<std::size_t>(row * bands + band)] = value;
  };
  for (std::int64_t band = 0; band < bands; ++band) {
    const auto b = static_cast<std::size_t>(band);
    const std::int64_t low = edges[b], peak = edges[b + 1], high = edges[b + 2];
    if (low == peak) set(peak, band, 1);
    for (std::int64_t row = low; low < peak && row <= peak; ++row)
      set(row, band, static_cast<double>(row - low) / static_cast<double>(peak - low));
    for (std::int64_t row = peak; peak < high && row < high; ++row)
      set(row, band, static_cast<double>(high - row) / static_cast<double>(high - peak));
  }
  narrow(weights, context.output(0));
}

Definition window_definition(std::string_view name, decltype(Definition::evaluate) evaluate) {
  return {.name = name,
          .since_opset = 17,
          .traits = {.elements = Elements::floating,
                     .work = WorkKind::view,
                     .attributes = "output_datatype periodic"},
          .infer = infer_window,
          .evaluate = evaluate,
          .vjp = zero_vjp,
          .jvp = zero_jvp,
          .shape_inputs = 0b1u};
}

}  // namespace

std::span<const Definition> window_operators() {
  static const Definition definitions[] = {
      window_definition("HannWindow", evaluate_hann),
      window_definition("HammingWindow", evaluate_hamming),
      window_definition("BlackmanWindow", evaluate_blackman),
      {.name = "MelWeightMatrix",
       .since_opset = 17,
       .min_inputs = 5,
       .max_inputs = 5,
       .traits = {.elements = Elements::floating, .work = WorkKind::view, .attributes = "output_datatype"},
       .infer = infer_mel,
       .evaluate = evaluate_mel,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .shape_inputs = 0b11u},
  };
  return definitions;
}

}  // namespace superstep::op
