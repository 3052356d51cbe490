// Convolutions of a few channels over images whose channels are planes of their own: vectors run along the
// width, where those of [height][width][batch][channels] (image.h) would be nearly empty.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Element (n, c, h, w) at n * sample + c * channel + h * row + w; f32 or bf16.
struct Planes {
  std::int64_t channels = 1, height = 1, width = 1;
  std::int64_t sample = 1, channel = 1, row = 1;
  ElementType type = ElementType::f32;

  friend bool operator==(const Planes&, const Planes&) = default;
};

// Several results of the same window over the same x, each with weights and an epilogue of its own. Along the
// width the window goes on by one column; padding is exact: outside the image there are zeros.
// Sums are f32, in the order of taps' rows, channels of x, taps of a row. Weights of a bf16 x are rounded to
// bf16. Tensors that an epilogue reads lie as the part's y.
// Slots: inputs x and, for each part, weights f32 [channels of y][channels of x][window's height][width],
// then what its epilogue reads; outputs each part's y.
struct PlanarConvolution {
  struct Part {
    Planes y;
    Epilogue epilogue;
  };
  std::int64_t batch = 1;
  Planes x;
  Window window;
  std::vector<Part> parts;
};

// Channels of x, and of a part's y, at most.
inline constexpr std::int64_t most_planar_channels = 4;

Prepared prepare(const PlanarConvolution& convolution);

bool is_planar(const Kernel& kernel);

// What makes the results of both kernels in one pass over their x; nothing where they are no two planar
// convolutions by the same window.
std::optional<PlanarConvolution> joined(const Kernel& first, const Kernel& second);

// One pass over the image that both read, with the parts of both; none where it is not the same one, or where
// what belongs to its positions (`image` of a part) has another size.
template <class Pass>
std::optional<Pass> with_parts_of_both(const Pass& one, const Pass& other, Planes Pass::Part::*image) {
  const Planes &y = one.parts[0].*image, &z = other.parts[0].*image;
  if (one.batch != other.batch || one.x != other.x || !(one.window == other.window) || y.height != z.height ||
      y.width != z.width)
    return std::nullopt;
  Pass both = one;
  both.parts.insert(both.parts.end(), other.parts.begin(), other.parts.end());
  return both;
}

}  // namespace superstep::kernels
