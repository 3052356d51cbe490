#include "superstep/target/cpu/kernels/convolution/window_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/convolution/window_columns.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/convolution/window_columns_loops.h"
#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

void interleave_three(const float* from, std::int64_t channel, std::int64_t n, float* to) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t i = 0;
  for (; i + width <= n; i += width)
    hn::StoreInterleaved3(load(from + i), load(from + channel + i), load(from + 2 * channel + i), f32_tag,
                          to + 3 * i);
  for (; i < n; ++i)
    for (std::int64_t c = 0; c < 3; ++c) to[3 * i + c] = from[c * channel + i];
}

InterleaveLoop* interleave() { return interleave_three; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(interleave);

namespace {

constexpr std::int64_t most_channels = 8;

// `count` pieces of memory, `bytes` each where that is known ahead, so that a copy is a few instructions.
template <std::size_t bytes>
void copy_pieces(const float* from, std::int64_t from_step, float* to, std::int64_t to_step,
                 std::int64_t count, std::size_t length) {
  for (std::int64_t i = 0; i < count; ++i, from += from_step, to += to_step)
    std::memcpy(to, from, bytes > 0 ? bytes : length);
}
using CopyPieces = void(const float*, std::int64_t, float*, std::int64_t, std::int64_t, std::size_t);

CopyPieces* copy_of(std::size_t bytes) {
  switch (bytes) {
    case 12: return copy_pieces<12>;  // a pixel of three channels
    case 36: return copy_pieces<36>;  // three of them
    case 60: return copy_pieces<60>;
    case 84: return copy_pieces<84>;
    default: return copy_pieces<0>;
  }
}

class WindowColumnsKernel final : public Kernel {
 public:
  WindowColumnsKernel(KernelInfo info, const WindowColumns& c)
      : Kernel(std::move(info)),
        c_(c),
        depth_(c.window.width * c.channels),
        columns_(padded_columns(c)),
        inside_(std::clamp<std::int64_t>(columns_ - c.window.pad_left, 0, c.width)),
        interleave_(SUPERSTEP_VECTOR_FUNCTION(interleave)()) {
    // Without dilation the taps of a window lie side by side already.
    const bool joined = c.window.dilation_w == 1;
    pieces_ = joined ? 1 : c.window.width;
    piece_ = joined ? depth_ : c.channels;
    copy_ = copy_of(static_cast<std::size_t>(piece_) * sizeof(float));
    info_.parts = std::clamp<std::int64_t>(c.height, 1, most_parts);
    info_.scratch_bytes = static_cast<std::size_t>(columns_ * c.channels) * sizeof(float);
  }

  void run(const Arguments& arguments) const override { run_rows(arguments, {0, c_.height}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(c_.height, part, info_.parts));
  }

 private:
  // Columns of an image with its padding, as far as windows reach.
  static std::int64_t padded_columns(const WindowColumns& c) {
    return (c.outputs - 1) * c.window.stride_w + (c.window.width - 1) * c.window.dilation_w + 1;
  }

  // Row by row: its channels side by side between zeros, and from there each window.
  void run_rows(const Arguments& arguments, PartRange rows) const {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto *y = static_cast<float*>(arguments.outputs[0]), *line = static_cast<float*>(arguments.scratch);
    std::fill_n(line, columns_ * c_.channels, 0.0f);
    for (std::int64_t h = rows.begin; h < rows.end; ++h)
      for (std::int64_t n = 0; n < c_.batch; ++n) {
        fetch_next_row(x + h * c_.row + n * c_.sample);
        gather(x + h * c_.row + n * c_.sample, line + c_.window.pad_left * c_.channels);
        for (std::int64_t k = 0; k < pieces_; ++k)
          copy_(line + k * c_.window.dilation_w * c_.channels, c_.window.stride_w * c_.channels,
                y + (h * c_.outputs * c_.batch + n) * depth_ + k * c_.channels, c_.batch * depth_, c_.outputs,
                static_cast<std::size_t>(piece_) * sizeof(float));
      }
  }

  // Rows of several channels and samples are too many and too short for the processor to foresee.
  void fetch_next_row(const float* from) const {
    if (c_.column != 1) return;
    for (std::int64_t c = 0; c < c_.channels; ++c)
      for (std::int64_t i = 0; i < inside_; i += 16) __builtin_prefetch(from + c * c_.channel + c_.row + i);
  }

  void gather(const float* from, float* to) const {
    if (c_.channels == 3 && c_.column == 1) return interleave_(from, c_.channel, inside_, to);
    for (std::int64_t c = 0; c < c_.channels; ++c)
      for (std::int64_t i = 0; i < inside_; ++i)
        to[i * c_.channels + c] = from[c * c_.channel + i * c_.column];
  }

  WindowColumns c_;
  std::int64_t depth_, columns_, inside_;  // columns of x that windows reach
  std::int64_t pieces_ = 1, piece_ = 1;    // of a window, and the elements of one
  InterleaveLoop* interleave_;
  CopyPieces* copy_;
};

}  // namespace

Image columns_image(const WindowColumns& c) {
  Image image = dense_image(c.height, c.outputs, c.batch, c.window.width * c.channels);
  image.planes = c.planes;
  return image;
}

Prepared prepare(const WindowColumns& c) {
  if (std::string fault = fault_of(c.window); !fault.empty()) return refuse("window columns", fault);
  if (c.channels > most_channels) return refuse("window columns", "more than 8 channels");
  if (c.window.pad_left < 0) return refuse("window columns", "a negative padding");
  if (c.outputs < 1 || c.height < 1 || c.width < 1 || c.batch < 1 || c.channels < 1)
    return refuse("window columns", "an extent is not positive");
  const Image y = columns_image(c);
  KernelInfo info;
  info.name = fmt::format("columns of windows, {} taps of {} channels", c.window.width, c.channels);
  info.bytes = 4 * static_cast<double>(c.height * c.width * c.batch * c.channels + y.element_count());
  info.inputs = info.outputs = 1;
  return std::make_unique<WindowColumnsKernel>(std::move(info), c);
}

}  // namespace superstep::kernels
#endif
