// Convolutions on bytes over images of few channels, as the first ones of networks are: a row of the window
// is one piece of memory, 7 taps of 3 channels 21 bytes, that is summed like one tap of 24 channels.
//
// Rows of a sample are copied side by side, with the zero point around them, as many as some rows of the
// result need; so every window is inside, and its rows are read with an unaligned step of channels times
// stride.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/bytes/byte_kernel_info.h"
#include "superstep/target/cpu/kernels/bytes/byte_tile.h"
#include "superstep/target/cpu/kernels/bytes/byte_weights.h"
#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"
#include "superstep/target/cpu/kernels/bytes/simple_steps.h"

namespace superstep::kernels {
namespace {

constexpr std::int64_t most_rows = 8;  // of the result, made of one copy

class FewChannels final : public Kernel {
 public:
  FewChannels(KernelInfo info, const IntegerConvolution& c)
      : Kernel(std::move(info)),
        c_(c),
        w_(byte_weights(c)),
        simple_(simple_steps(c.epilogue)),
        multiply_(c.y.type == ElementType::u8 ? byte_tile_as_bytes() : byte_tile_as_f32()),
        row_bytes_(((c.y.width - 1) * c.window.stride_w * w_.channels + w_.in + 63) / 64 * 64),
        stretches_((c.y.height + most_rows - 1) / most_rows) {
    const std::int64_t last = (w_.out - 1) % panel_width + 1;
    for (std::int64_t tap = 0; tap < w_.taps; ++tap) {
      source_offsets_.push_back(static_cast<std::uint64_t>(tap * c.window.dilation_h * row_bytes_));
      weight_offsets_.push_back(static_cast<std::uint64_t>(tap * w_.in * panel_width));
      last_weight_offsets_.push_back(static_cast<std::uint64_t>(tap * w_.in * last));
    }
    info_.parts = stretches_ * c.y.batch;
    info_.scratch_bytes = static_cast<std::size_t>(rows_read(most_rows) * row_bytes_);
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t part = 0; part < info_.parts; ++part) run_part(arguments, part);
  }

  void run_part(const Arguments& arguments, std::int64_t number) const override {
    const std::int64_t sample = number % c_.y.batch;
    const PartRange rows = part_range(c_.y.height, number / c_.y.batch, stretches_);
    copy_rows(arguments, sample, rows);
    for (std::int64_t first = 0; first < w_.out; first += panel_width)
      run_panel(arguments, sample, rows, first);
  }

 private:
  // Rows of x under so many rows of the result.
  std::int64_t rows_read(std::int64_t rows) const {
    return (rows - 1) * c_.window.stride_h + (w_.taps - 1) * c_.window.dilation_h + 1;
  }
  std::uint8_t* copied(const Arguments& arguments) const {
    return static_cast<std::uint8_t*>(arguments.scratch);
  }

  void copy_rows(const Arguments& arguments, std::int64_t sample, const PartRange& rows) const;
  void copy_row(const std::uint8_t* from, std::uint8_t* to) const;
  void run_panel(const Arguments& arguments, std::int64_t sample, const PartRange& rows,
                 std::int64_t first_channel) const;
  void add_operands(const Arguments& arguments, std::int64_t sample, std::int64_t row,
                    std::int64_t first_channel, float* scale, IntegerBlock& block) const;

  IntegerConvolution c_;
  ByteWeights w_;
  SimpleSteps simple_;
  ByteTileFunction* multiply_;
  std::int64_t row_bytes_, stretches_;  // of a copied row; of rows of the result
  std::vector<std::uint64_t> source_offsets_, weight_offsets_,
      last_weight_offsets_;  // of taps; of the last panel
};

// The columns of a row that windows read.
void FewChannels::copy_row(const std::uint8_t* from, std::uint8_t* to) const {
  const std::int64_t read = (c_.y.width - 1) * c_.window.stride_w + w_.row_taps;  // columns, padding included
  const std::int64_t end = std::min(c_.x.width, read - c_.window.pad_left);
  const std::int64_t stride = c_.x.batch * c_.x.column_stride;
  to += c_.window.pad_left * w_.channels;
  if (stride == w_.channels) {
    std::memcpy(to, from, static_cast<std::size_t>(std::max<std::int64_t>(0, end) * w_.channels));
    return;
  }
  for (std::int64_t column = 0; column < end; ++column, from += stride)
    for (std::int64_t channel = 0; channel < w_.channels; ++channel) *to++ = from[channel];
}

void FewChannels::copy_rows(const Arguments& arguments, std::int64_t sample, const PartRange& rows) const {
  const auto* x = static_cast<const std::uint8_t*>(arguments.inputs[0]) + sample * c_.x.column_stride;
  const std::int64_t count = rows_read(rows.end - rows.begin);
  const std::int64_t first = rows.begin * c_.window.stride_h - c_.window.pad_top;
  std::memset(copied(arguments), c_.zero_point, static_cast<std::size_t>(count * row_bytes_));
  for (std::int64_t i = 0; i < count; ++i)
    if (first + i >= 0 && first + i < c_.x.height)
      copy_row(x + (first + i) * c_.x.row_stride, copied(arguments) + i * row_bytes_);
}

void FewChannels::add_operands(const Arguments& arguments, std::int64_t sample, std::int64_t row,
                               std::int64_t first_channel, float* scale, IntegerBlock& block) const {
  const void* added = take_operands(simple_, arguments.inputs.data() + 3, first_channel, scale, block);
  if (!added) return;
  const std::int64_t across = simple_.added_column > 0 ? simple_.added_column : c_.y.column_stride;
  const std::int64_t down = simple_.added_row > 0 ? simple_.added_row : c_.y.row_stride;
  set_added(simple_, added, row * down + sample * across + first_channel, across * c_.y.batch, block);
}

void FewChannels::run_panel(const Arguments& arguments, std::int64_t sample, const PartRange& rows,
                            std::int64_t first_channel) const {
  const std::int64_t channels = std::min(panel_width, w_.out - first_channel);
  const auto size = static_cast<std::int64_t>(size_in_bytes(c_.y.type));
  const auto& weight_offsets = channels == panel_width ? weight_offsets_ : last_weight_offsets_;
  std::int32_t shift[panel_width];
  sum_all_taps(w_, arguments.inputs[1], 0, first_channel, channels, c_.zero_point, shift);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const ByteTile tile{
        .weights = static_cast<const std::byte*>(arguments.inputs[1]) + first_channel * w_.taps * w_.in,
        .x = copied(arguments) + (row - rows.begin) * c_.window.stride_h * row_bytes_,
        .taps = static_cast<std::uint64_t>(w_.taps),
        .weight_offsets = weight_offsets.data(),
        .source_offsets = source_offsets_.data(),
        .quads = w_.in / 4,
        .column_stride = c_.window.stride_w * w_.channels};
    IntegerBlock block = block_of(c_, simple_, shift,
                                  static_cast<const float*>(arguments.inputs[2]) + first_channel, channels);
    block.result = static_cast<std::byte*>(arguments.outputs[0]) +
                   (row * c_.y.row_stride + sample * c_.y.column_stride + first_channel) * size;
    block.result_stride = c_.y.column_stride * c_.y.batch;
    block.columns = c_.y.width;
    float scale[panel_width];
    add_operands(arguments, sample, row, first_channel, scale, block);
    multiply_(tile, block);
  }
}

std::string refusal(const IntegerConvolution& c) {
  if (!sums_rows(c)) return "the channels come in fours, or a row of the window has too many";
  if (std::string none = byte_tile_refusal(); !none.empty()) return none;
  if (c.y.type == ElementType::i32) return "sums are wanted in memory";
  return simple_steps(c.epilogue).simple ? "" : "the epilogue takes more than one pass";
}

Prepared prepare_few_channels(const IntegerConvolution& c) {
  constexpr const char* name = "rows of few channels";
  if (std::string fault = fault_of(c); !fault.empty()) return refuse(name, fault);
  if (std::string why = refusal(c); !why.empty()) return refuse(name, why);
  const auto epilogue = byte_epilogue(c);
  if (!epilogue) return refuse(name, epilogue.error());
  KernelInfo info =
      byte_kernel_info(c, *epilogue, fmt::format("{}, {} bytes each", name, byte_weights(c).in));
  return std::make_unique<FewChannels>(std::move(info), c);
}

}  // namespace

extern constinit const Implementation<IntegerConvolution> few_channels_integer{"rows of few channels",
                                                                               prepare_few_channels};

}  // namespace superstep::kernels
