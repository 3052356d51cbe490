// Comparison of a kernel's result with a sum in f64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "superstep/target/cpu/kernels/core/kernel.h"
#include "tests/cpu_kernels/support/convolution_reference.h"

namespace superstep::kernels {

// Rounding of a sum of `terms` products in f32: half a unit in the last place each, growing like a random
// walk; of the result in bf16 one half unit more.
inline double allowed_error(const Sum& sum, double terms, ElementType type = ElementType::f32) {
  const double accumulation = 0x1p-24 * (4 + std::sqrt(terms)) * sum.magnitude;
  const double rounding = type == ElementType::bf16 ? 0x1p-8 * std::abs(sum.value) : 0;
  return accumulation + rounding + 1e-30;
}

// The number of elements outside the tolerance; the first is printed.
inline int count_wrong(const std::vector<Sum>& expected, double terms, ElementType type,
                       const std::function<double(std::size_t)>& actual) {
  int wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(actual(i) - expected[i].value);
    if (difference <= allowed_error(expected[i], terms, type)) continue;
    if (wrong++ == 0)
      std::printf("element %zu: %.9g, expected %.9g (allowed %.2g)\n", i, actual(i), expected[i].value,
                  allowed_error(expected[i], terms, type));
  }
  return wrong;
}

// A run with freshly allocated, guarded scratch: in one piece or in parts, by turns.
void run_kernel(const Kernel& kernel, std::vector<const void*> inputs, std::vector<void*> outputs);

KernelPointer require_kernel(Prepared prepared);

}  // namespace superstep::kernels
