// Convolutions by eight loops in f64, the oracle of the kernels.
#pragma once

#include <vector>

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"

namespace superstep::kernels {

// A value and the sum of the magnitudes of its terms, which scales the rounding error that is allowed.
struct Sum {
  double value = 0, magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += term < 0 ? -term : term;
  }
};

// Element numbers: image (h, w, n, c) -> ((h * W + w) * N + n) * C + c; weights [out][in/groups][kd][kh][kw].
std::int64_t number_of(const Image& image, std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c);
std::int64_t address_of(const Image& image, std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c);

// Calls body(h, w, n, c) for every element.
template <class Body>
void for_each_element(const Image& image, const Body& body) {
  for (std::int64_t h = 0; h < image.height; ++h)
    for (std::int64_t w = 0; w < image.width; ++w)
      for (std::int64_t n = 0; n < image.batch; ++n)
        for (std::int64_t c = 0; c < image.channels; ++c) body(h, w, n, c);
}

std::vector<Sum> reference_forward(const Convolution& c, const GuardedBuffer& x, const GuardedBuffer& w);
std::vector<Sum> reference_input_gradient(const Convolution& c, const GuardedBuffer& dy,
                                          const GuardedBuffer& w);
std::vector<Sum> reference_weight_gradient(const Convolution& c, const GuardedBuffer& x,
                                           const GuardedBuffer& dy);

// A random convolution: small extents, any stride, padding, dilation, groups and gaps.
Convolution random_convolution(std::uint64_t seed);
// The same over volumes of a few planes.
Convolution random_volume_convolution(std::uint64_t seed);
// A random convolution with every channel alone, up to more of them than a block of vectors has.
Convolution random_depthwise_convolution(std::uint64_t seed);

std::string describe(const Convolution& c);

}  // namespace superstep::kernels
