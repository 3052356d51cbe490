// How results of two targets, or of two ways to compile for one, are told apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "superstep/base/tensor.h"
#include "tests/op/cases/case.h"

namespace superstep::matrix {

// The magnitude of the largest finite element, at least 0.01: what tolerances are relative to.
double largest(const Tensor& tensor);

// The first element that is further off than `tolerance` times the largest expected one, in words; empty when
// there is none. Whole numbers must be the same; NaN agrees with NaN.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance);

bool has_floats(const op::test::Case& item);  // or makes some out of nothing

// Random cases of each operator; SUPERSTEP_CASES asks for more.
int cases_each(int usual);
std::uint64_t own_seed(std::string_view op);  // operators draw numbers of their own

}  // namespace superstep::matrix
