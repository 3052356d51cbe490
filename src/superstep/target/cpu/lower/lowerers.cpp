// Every family of lowerers, in the order in which they are tried: one line each, the name that a file of
// lower/operators/ gives it. Its declaration and its place in the list are both made of this line.
#include <algorithm>

#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/plan/vector_operations.h"
#include "superstep/transform/fuse_elementwise.h"

// clang-format off
#define SUPERSTEP_LOWERERS \
  convolution_lowerers,    \
  reduction_lowerers,      \
  softmax_lowerers,        \
  pooling_lowerers,        \
  normalization_lowerers,  \
  lookup_lowerers,         \
  index_range_lowerers,    \
  line_lowerers,           \
  segment_lowerers,        \
  resample_lowerers,       \
  grid_sample_lowerers,    \
  fourier_lowerers,        \
  triangular_lowerers,     \
  recurrent_lowerers,      \
  gru_lowerers,            \
  data_lowerers,           \
  random_lowerers,         \
  parts_lowerers,          \
  optimizer_lowerers,      \
  integer_lowerers,        \
  counter_lowerers,        \
  wide_lowerers
// clang-format on

namespace superstep::target::cpu {

extern const LowererFamily SUPERSTEP_LOWERERS;

std::span<const LowererFamily> lowerer_families() {
  static const LowererFamily families[] = {SUPERSTEP_LOWERERS};
  return families;
}

bool has_kernel(std::string_view op) {
  return transform::is_fusion_anchor(op) || vector_operation(op) ||
         std::ranges::any_of(lowerer_families(), [op](const LowererFamily& family) {
           return std::ranges::find(family.lowerers, op, &Lowerer::op) != family.lowerers.end();
         });
}

}  // namespace superstep::target::cpu

#undef SUPERSTEP_LOWERERS
