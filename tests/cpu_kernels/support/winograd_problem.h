// Problems for Winograd's convolutions, and what their tests share.
#pragma once

#include <algorithm>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "superstep/target/cpu/kernels/winograd/winograd.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/convolution_reference.h"

namespace superstep::kernels {

inline constexpr std::int64_t tiles[] = {2, 3, 4};

// Images of every size around the tiles', paddings from none to more than the window, gaps between columns
// and rows. Channels are multiples of `multiple`.
inline Convolution random_problem(std::uint64_t seed, ElementType type = ElementType::f32,
                                  std::int64_t multiple = 1) {
  RandomStream random(seed);
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(bound)); };
  static constexpr std::int64_t channels[] = {1, 3, 8, 16, 17, 32, 65, 66, 80};
  const std::int64_t batch = 1 + below(4), height = 1 + below(9), width = 1 + below(9);
  Convolution c;
  c.window = {.height = 3, .width = 3, .pad_top = below(4), .pad_left = below(4)};
  const auto extent = [&](std::int64_t input, std::int64_t pad) {
    return std::max<std::int64_t>(1, input + pad + below(4) - 2);
  };
  const auto some_channels = [&] {
    return (channels[random.below(std::size(channels))] + multiple - 1) / multiple * multiple;
  };
  c.x = dense_image(height, width, batch, some_channels(), type);
  c.y = dense_image(extent(height, c.window.pad_top), extent(width, c.window.pad_left), batch,
                    some_channels(), type);
  for (Image* image : {&c.x, &c.y})
    if (below(3) == 0) {
      image->column_stride += below(9);
      image->row_stride = image->columns() * image->column_stride + below(5);
    }
  return c;
}

// A volume of `planes` planes under a window of `depth` planes, `pad` of them in front and as many behind.
inline Convolution over_volume(std::int64_t planes, std::int64_t depth, std::int64_t pad, const Image& plane,
                               std::int64_t channels) {
  Convolution c{.x =
                    dense_image(planes * plane.height, plane.width, plane.batch, plane.channels, plane.type)};
  c.x.planes = planes;
  const std::int64_t results = planes + 2 * pad - depth + 1;
  c.y = dense_image(results * plane.height, plane.width, plane.batch, channels, plane.type);
  c.y.planes = results;
  c.window = {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1, .depth = depth, .pad_front = pad};
  return c;
}

inline GuardedBuffer random_pixels(const Image& image, std::uint64_t seed) {
  GuardedBuffer buffer = image_buffer(image);
  buffer.fill_random(seed);
  return buffer;
}

inline GuardedBuffer random_weights(const Convolution& c, std::uint64_t seed) {
  GuardedBuffer w(ElementType::f32, c.y.channels * c.x.channels * c.window.taps());
  w.fill_random(seed);
  return w;
}

// As the kernel wants them.
inline GuardedBuffer packed(const Convolution& c, const GuardedBuffer& w, const Kernel& kernel) {
  const ElementType type = kernel.info().arithmetic;
  const WeightTransfer transfer = weight_transfer(c, kernel.info().weights, WeightOrder::out_in_taps, type);
  GuardedBuffer buffer(type, static_cast<std::int64_t>(packed_elements(transfer)));
  run_kernel(*require_kernel(prepare_pack(transfer)), {w.data()}, {buffer.data()});
  return buffer;
}

inline std::vector<double> elements(const Image& image, const GuardedBuffer& buffer) {
  std::vector<double> values;
  for_each_element(image, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    values.push_back(buffer.get(address_of(image, h, w, n, c)));
  });
  return values;
}

inline double largest_magnitude(const std::vector<Sum>& sums) {
  double largest = 0;
  for (const Sum& sum : sums) largest = std::max(largest, sum.magnitude);
  return largest;
}

// Rounding spreads over a tile: every element may be off by what the largest sum of the image may be.
inline void spread_magnitude(std::vector<Sum>& sums) {
  const double largest = largest_magnitude(sums);
  for (Sum& sum : sums) sum.magnitude = winograd_error_growth * largest;
}

// Which products there are: those made for the shape where the instruction set has them.
inline std::vector<ProductMaker> makers() {
  if (instruction_set() == InstructionSet::scalar) return {ProductMaker::portable};
  return {ProductMaker::libxsmm, ProductMaker::portable};
}

// body(tile, maker) under each instruction set.
template <class Body>
void for_each_variant(const Body& body) {
  for_each_instruction_set([&] {
    for (const std::int64_t tile : tiles)
      for (const ProductMaker maker : makers()) body(tile, maker);
  });
}

struct Pass {
  const char* name;
  bool forward;
};
inline constexpr Pass passes[] = {{"forward", true}, {"input gradient", false}};

inline Prepared prepare_pass(const Pass& pass, const Convolution& c, const WinogradForm& form,
                             ProductMaker maker) {
  return pass.forward ? prepare_winograd_forward(c, form, maker)
                      : prepare_winograd_input_gradient(c, form, maker);
}

inline std::vector<Sum> reference(const Pass& pass, const Convolution& c, const GuardedBuffer& source,
                                  const GuardedBuffer& w) {
  return pass.forward ? reference_forward(c, source, w) : reference_input_gradient(c, source, w);
}

}  // namespace superstep::kernels
