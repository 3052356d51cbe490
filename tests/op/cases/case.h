// The table of cases: for every operator a few functions with inputs, in f64. One test matrix runs over them
// (derivatives, negative controls, precision, determinism, decompositions); the tests of other targets may
// take the same table as what their results are compared on.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/op/core/gradient_check.h"

namespace superstep::op::test {

enum class Smooth { no, zero, once, twice };  // what the derivative is at the inputs

struct Case {
  std::string op;    // the operator the case is about
  std::string name;  // "groups and dilation"
  Function function;
  std::vector<Tensor> inputs;  // f64, integers and bool
  Smooth smooth = Smooth::twice;
  bool reduced = true;  // meaningful with the floating inputs in f32, bf16 and f16
};

// Cases are parameters of tests by address: every process of a test makes them all, and copies of their
// tensors took half of its time.
inline void PrintTo(const Case* item, std::ostream* out) { *out << item->op << ": " << item->name; }

inline Tensor f64(Shape shape, std::vector<double> values) { return Tensor::from(std::move(shape), values); }
inline Tensor i64(Shape shape, std::vector<std::int64_t> values) {
  return Tensor::from(std::move(shape), values);
}
inline Tensor booleans(Shape shape, const std::vector<std::int64_t>& values) {
  return i64(std::move(shape), values).converted(ElementType::boolean);
}

// Normal numbers, the same for one seed.
Tensor random_tensor(Shape shape, std::uint64_t seed, double scale = 1, double shift = 0);
// Uniform in [low, high).
Tensor uniform_tensor(Shape shape, std::uint64_t seed, double low, double high);

// A function given as an expression of the inputs x[0], x[1], ...
#define OF(...)                                                   \
  [=]([[maybe_unused]] ::superstep::op::Builder& b,               \
      [[maybe_unused]] std::span<const ::superstep::op::Var> x) { \
    return std::vector<::superstep::op::Var>{__VA_ARGS__};        \
  }

std::vector<Case> elementwise_cases();
std::vector<Case> activation_cases();
std::vector<Case> product_cases();
std::vector<Case> pooling_cases();
std::vector<Case> reduction_cases();
std::vector<Case> layout_cases();
std::vector<Case> index_cases();
std::vector<Case> normalization_cases();
std::vector<Case> training_cases();
std::vector<Case> trigonometric_cases();
std::vector<Case> integer_cases();
std::vector<Case> selection_cases();
std::vector<Case> resize_cases();
std::vector<Case> recurrent_cases();
std::vector<Case> attention_cases();
std::vector<Case> spectral_cases();
std::vector<Case> picture_cases();
std::vector<Case> quantization_cases();
std::vector<Case> sampling_cases();
std::vector<Case> state_cases();
std::vector<Case> random_cases();
std::vector<Case> feature_cases();

const std::vector<Case>& all_cases();  // made once
std::vector<const Case*> all_parameters();
// "Conv_groups_and_dilation_17": letters and digits of both names, and the number.
std::string name_of_test(const Case& item, std::size_t number);

}  // namespace superstep::op::test
