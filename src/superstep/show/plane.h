// Planes of numbers cut out of an array, and what a picture needs of them.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::show {

struct Plane {
  int width = 0, height = 0;
  std::vector<float> values;  // row-major
};

// Rows and columns of a dense tensor of which all but two axes have one element.
Plane plane_of(const Tensor& tensor);

// Means over squares of `factor` x `factor` pixels, of the values that are numbers.
Plane reduced(const Plane& plane, int factor);

// Logarithm to base ten, four decades down from the largest value; what is below lies at the bottom.
Plane logarithm(const Plane& plane);

struct ComplexPlane {
  Plane amplitude, phase;  // phase in (-pi, pi]
};

// From interleaved real and imaginary parts: a dense tensor with an innermost axis of two.
ComplexPlane complex_plane_of(const Tensor& tensor);

}  // namespace superstep::show
