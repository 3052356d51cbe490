// Packing of i8 weights, with the sums that a zero point of x needs.
#include "superstep/target/cpu/kernels/bytes/byte_weights.h"

#include <algorithm>
#include <cstring>

namespace superstep::kernels {
namespace {

class BytePack final : public Kernel {
 public:
  BytePack(KernelInfo info, const ByteWeights& weights, WeightOrder order)
      : Kernel(std::move(info)), w_(weights), order_(order) {}

  void run(const Arguments& arguments) const override {
    const auto* stored = static_cast<const std::int8_t*>(arguments.inputs[0]);
    auto* packed = static_cast<std::byte*>(arguments.outputs[0]);
    auto* quads = reinterpret_cast<std::int8_t*>(packed);
    auto* sums = reinterpret_cast<std::int32_t*>(packed + w_.sums_offset());
    std::fill_n(sums, w_.groups * w_.taps * w_.out, 0);
    for (std::int64_t group = 0; group < w_.groups; ++group)
      for (std::int64_t tap = 0; tap < w_.taps; ++tap)
        for (std::int64_t in = 0; in < w_.in; ++in)
          for (std::int64_t out = 0; out < w_.out; ++out) {
            const bool fills_up = in >= w_.row_taps * w_.channels;
            const std::int8_t value = fills_up ? std::int8_t{0} : stored[stored_index(group, tap, in, out)];
            quads[w_.quad_index(group, tap, in, out)] = value;
            sums[(group * w_.taps + tap) * w_.out + out] += value;
          }
  }

 private:
  std::int64_t stored_index(std::int64_t group, std::int64_t tap, std::int64_t in, std::int64_t out) const {
    const std::int64_t taps = w_.taps * w_.row_taps, channel = in % w_.channels;
    const std::int64_t before = group * w_.channels * w_.out * taps + tap * w_.row_taps + in / w_.channels;
    return order_ == WeightOrder::out_in_taps ? before + (out * w_.channels + channel) * taps
                                              : before + (channel * w_.out + out) * taps;
  }

  ByteWeights w_;
  WeightOrder order_;
};

}  // namespace

std::size_t ByteWeights::sums_offset() const {
  const auto bytes = static_cast<std::size_t>(groups * taps * in * out);
  return (bytes + 63) / 64 * 64;
}

std::int64_t ByteWeights::quad_index(std::int64_t group, std::int64_t tap, std::int64_t channel,
                                     std::int64_t result) const {
  const std::int64_t panel = result / panel_width, width = std::min(panel_width, out - panel * panel_width);
  const std::int64_t before = group * taps * in * out + panel * taps * in * panel_width;
  return before + tap * in * width + (channel / 4 * width + result % panel_width) * 4 + channel % 4;
}

ByteWeights byte_weights(const IntegerConvolution& c) {
  const std::int64_t channels = c.x.channels / c.groups, out = c.y.channels / c.groups;
  if (sums_rows(c)) {
    const std::int64_t row_taps = c.window.width;
    return {.taps = c.window.height,
            .in = (row_taps * channels + 3) / 4 * 4,
            .out = out,
            .row_taps = row_taps,
            .channels = channels};
  }
  return {.groups = c.groups,
          .taps = c.window.height * c.window.width,
          .in = channels,
          .out = out,
          .channels = channels};
}

bool sums_rows(const IntegerConvolution& c) {
  constexpr std::int64_t longest = 64;
  return c.groups == 1 && c.x.channels % 4 != 0 && c.window.width > 1 && c.window.dilation_w == 1 &&
         c.window.depth == 1 && c.x.planes == 1 && c.x.channels * c.window.width <= longest;
}

void sum_all_taps(const ByteWeights& w, const void* weights, std::int64_t group, std::int64_t first_channel,
                  std::int64_t channels, std::int32_t zero_point, std::int32_t* shift) {
  const auto* sums =
      reinterpret_cast<const std::int32_t*>(static_cast<const std::byte*>(weights) + w.sums_offset());
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    std::int32_t sum = 0;
    for (std::int64_t tap = 0; tap < w.taps; ++tap)
      sum += sums[(group * w.taps + tap) * w.out + first_channel + channel];
    shift[channel] = sum * zero_point;
  }
}

std::size_t byte_pack_bytes(const IntegerConvolution& convolution) {
  const ByteWeights w = byte_weights(convolution);
  return w.sums_offset() + static_cast<std::size_t>(w.groups * w.taps * w.out) * sizeof(std::int32_t);
}

Prepared prepare_byte_pack(const IntegerConvolution& convolution, WeightOrder order) {
  if (std::string fault = fault_of(convolution); !fault.empty()) return refuse("weights", fault);
  const ByteWeights w = byte_weights(convolution);
  KernelInfo info{.name = std::string("pack weights, ") + name_of(WeightLayout::taps_in_out_quads),
                  .bytes = static_cast<double>(w.groups * w.taps * w.in * w.out) +
                           static_cast<double>(byte_pack_bytes(convolution)),
                  .inputs = 1,
                  .outputs = 1,
                  .weights = WeightLayout::taps_in_out_quads};
  return std::make_unique<BytePack>(std::move(info), w, order);
}

}  // namespace superstep::kernels
