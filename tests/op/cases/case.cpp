#include "tests/op/cases/case.h"

#include <algorithm>
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

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto family :
       {elementwise_cases, activation_cases, product_cases,       pooling_cases,   reduction_cases,
        layout_cases,      index_cases,      normalization_cases, training_cases,  trigonometric_cases,
        integer_cases,     selection_cases,  resize_cases,        recurrent_cases, attention_cases,
        spectral_cases,    picture_cases,    quantization_cases,  sampling_cases,  state_cases,
        random_cases})
    std::ranges::move(family(), std::back_inserter(all));
  return all;
}

}  // namespace superstep::op::test
