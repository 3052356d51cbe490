// Complex arrays for NumPy.
#pragma once

#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

// An .npy file of complex64 or complex128 from an f32 or f64 tensor whose innermost axis is (real,
// imaginary); read_npy gives that tensor back. Throws Error (invalid_argument) for any other.
std::vector<std::byte> format_npy_complex(const Tensor& pairs);

}  // namespace superstep::data
