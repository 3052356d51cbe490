#include "tests/op/cases/case.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace superstep::op::test {

Tensor random_tensor(Shape shape, std::uint64_t seed, double scale, double shift) {
  RandomStream random(seed, 99);
  Tensor tensor(ElementType::f64, std::move(shape));
  for (double& value : tensor.as<double>()) value = scale * random.normal() + shift;
  return tensor;
}

Tensor uniform_tensor(Shape shape, std::uint64_t seed, double low, double high) {
  RandomStream random(seed, 98);
  Tensor tensor(ElementType::f64, std::move(shape));
  for (double& value : tensor.as<double>()) value = random.uniform(low, high);
  return tensor;
}

namespace {

std::vector<Case> made_cases() {
  std::vector<Case> all;
  for (auto family :
       {elementwise_cases, activation_cases, product_cases,       pooling_cases,   reduction_cases,
        layout_cases,      index_cases,      normalization_cases, training_cases,  trigonometric_cases,
        integer_cases,     selection_cases,  resize_cases,        recurrent_cases, attention_cases,
        spectral_cases,    picture_cases,    quantization_cases,  sampling_cases,  state_cases,
        random_cases,      feature_cases})
    std::ranges::move(family(), std::back_inserter(all));
  return all;
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = made_cases();
  return all;
}

std::vector<const Case*> all_parameters() {
  std::vector<const Case*> parameters;
  for (const Case& item : all_cases()) parameters.push_back(&item);
  return parameters;
}

std::string name_of_test(const Case& item, std::size_t number) {
  std::string name = item.op + "_" + item.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name + "_" + std::to_string(number);
}

}  // namespace superstep::op::test
