#include <fmt/format.h>

#include "superstep/target/cpu/kernels/winograd/winograd.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"
#include "superstep/target/cpu/kernels/winograd/winograd_matrices.h"

namespace superstep::kernels {

namespace {

constexpr double noise_of_direct_sums = 0.0023;  // both factors of each product rounded to bf16

template <class M>
double square_of_row(const M& matrix, std::size_t row) {
  double sum = 0;
  for (const double x : matrix.at[row]) sum += x * x;
  return sum;
}

// The variance of what rounding leaves, in one dimension, beside that of the result: a point's product has
// the variance of its row of B^T times that of G, and reaches the outputs by its row of A.
template <std::size_t tile>
double variance_growth() {
  using namespace winograd;
  double sum = 0;
  for (std::size_t i = 0; i < tile + 2; ++i)
    sum += square_of_row(OutputMatrix<tile>::value, i) * square_of_row(InputMatrix<tile>::value, i) *
           square_of_row(FilterMatrix<tile>::value, i);
  return sum / (3 * tile);
}

}  // namespace

// Two dimensions square the variance's growth.
double winograd_bf16_noise(std::int64_t tile) {
  const double growth = tile == 2   ? variance_growth<2>()
                        : tile == 3 ? variance_growth<3>()
                                    : variance_growth<4>();
  return noise_of_direct_sums * growth;
}

std::string winograd_fault(const Convolution& c, ConvolutionPass pass) {
  if (std::string fault = fault_of(c); !fault.empty()) return fault;
  const Window& w = c.window;
  if (w.height != 3 || w.width != 3) return "the window is not 3 x 3";
  if (w.stride_h != 1 || w.stride_w != 1) return "the window moves by more than one position";
  if (w.dilation_h != 1 || w.dilation_w != 1) return "the window's taps lie apart";
  if (c.groups != 1) return "the channels are in groups";
  if (pass == ConvolutionPass::weight_gradient) return volume_fault(c.x, c.y, c.window);
  if (w.depth > largest_winograd_depth) return fmt::format("the window is {} planes deep", w.depth);
  if (w.stride_d != 1) return "the window moves by more than one plane";
  if (w.dilation_d != 1) return "the window's planes lie apart";
  return {};
}

std::string winograd_fault(const WinogradForm& form, ElementType type) {
  if (form.tile < smallest_winograd_tile || form.tile > largest_winograd_tile)
    return fmt::format("no tiles of {}", form.tile);
  if (form.products != ElementType::f32 && form.products != ElementType::bf16)
    return fmt::format("no products in {}", superstep::name_of(form.products));
  if (form.products == ElementType::bf16 && type != ElementType::bf16)
    return "products in bf16 of an image in f32";
  return {};
}

std::string name_of(const WinogradForm& form, ElementType type) {
  return fmt::format("Winograd F({}x{}, 3x3){}", form.tile, form.tile,
                     type == form.products ? "" : fmt::format(" in {}", superstep::name_of(form.products)));
}

}  // namespace superstep::kernels
