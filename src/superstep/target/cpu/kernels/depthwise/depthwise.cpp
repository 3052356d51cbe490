// Depthwise convolutions: forward, input gradient, weight gradient. The weights are [kh][kw][channels] for
// all three. What is read where and when is depthwise_walk.h's.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/convolution/tap_tables.h"
#include "superstep/target/cpu/kernels/core/epilogue_run.h"
#include "superstep/target/cpu/kernels/depthwise/depthwise_ahead.h"
#include "superstep/target/cpu/kernels/depthwise/depthwise_loops.h"
#include "superstep/target/cpu/kernels/depthwise/depthwise_pack.h"
#include "superstep/target/cpu/kernels/depthwise/depthwise_walk.h"

namespace superstep::kernels {

namespace {

constexpr const char* name = "depthwise";
constexpr std::int64_t tile_bytes = 32 * 1024;  // what the windows of a tile reach, in the first-level cache
constexpr std::int64_t least_tile_columns = 8, most_tile_columns = 64;
// Rows that a weight gradient sums up in registers before it adds to the sums in memory.
constexpr std::int64_t rows_together = 4;

std::string fault_of_depthwise(const Convolution& c) {
  if (std::string fault = fault_of(c); !fault.empty()) return fault;
  if (c.groups != c.x.channels || c.groups != c.y.channels) return "the groups have more than one channel";
  if (std::string fault = volume_fault(c.x, c.y, c.window); !fault.empty()) return fault;
  return {};
}

std::int64_t bytes(ElementType type) { return static_cast<std::int64_t>(size_in_bytes(type)); }

double bytes_of(const Image& image) {
  return static_cast<double>(image.element_count()) * static_cast<double>(size_in_bytes(image.type));
}

// Taps that read an element where windows overlap; strided gradients by the input gain as little from packing
// as strided forward passes do.
DepthwiseBlock block_of_pass(const Convolution& c, bool flipped) {
  const Window& w = c.window;
  Image source = flipped ? c.y : c.x;
  const bool widens = !flipped && source.type == ElementType::bf16;
  if (widens) source.type = ElementType::f32;  // that is what a packed block holds
  DepthwiseBlock block = streamed_block(source, std::max(image_bytes(c.x), image_bytes(c.y)),
                                        w.height * w.width / (w.stride_h * w.stride_w));
  block.widened = widens && block.packed;
  if (!block.packed || flipped || w.pad_left < 0) return block;
  const std::int64_t reached = (c.y.width - 1) * w.stride_w + (w.width - 1) * w.dilation_w + 1;
  block.left = w.pad_left;
  block.right = std::max<std::int64_t>(0, reached - w.pad_left - c.x.width);
  return block;
}
DepthwiseBlock block_of_weight_gradient(const Convolution& c) {
  return depthwise_block(c.x, c.window.height * c.window.width);
}

// Columns of results so few that what their windows reach stays in the first-level cache from one row to the
// next.
std::int64_t tile_columns(const Convolution& c, const Image& source, const DepthwiseBlock& block) {
  const ElementType read = block.widened ? ElementType::f32 : source.type;
  const std::int64_t column_bytes = c.window.height * block.channels * bytes(read);
  const std::int64_t reached = tile_bytes / std::max<std::int64_t>(1, column_bytes) -
                               (c.window.width - 1) * c.window.dilation_w * source.batch;
  return std::clamp(reached / c.window.stride_w / 8 * 8, least_tile_columns, most_tile_columns);
}

std::optional<DepthwiseEpilogue> finish_of(const Convolution& c) {
  if (c.accumulate) return std::nullopt;
  return depthwise_epilogue(c.epilogue);
}

// Whether results of a tile are sums in f32 first, from which what follows makes those of bf16.
bool is_staged(const Convolution& c, const TapSide& side) {
  return side.result.type != ElementType::f32 && !finish_of(c);
}

// The side with the strides that windows are read with: those of a packed block, or of the image. Between
// zeros at both ends of a row all its columns see the same taps.
TapSide with_block(TapSide side, const Convolution& c, const DepthwiseBlock& block) {
  if (!block.packed) return side;
  if (block.left > 0 || block.right > 0) {
    Convolution padded = c;
    padded.x.width += block.left + block.right;
    padded.window.pad_left = 0;
    side.columns = forward_side(padded).columns;
  }
  side.source = packed_block(side.source, block);
  return side;
}

// Reads one source block by block: packs it, where blocks are packed, and hands out the lines in a range with
// where the block's first channel lies.
class BlockedSource {
 public:
  BlockedSource(const Image& source, const DepthwiseBlock& block) : source_(source), block_(block) {}

  const DepthwiseBlock& block() const { return block_; }
  std::int64_t count() const { return (source_.channels + block_.channels - 1) / block_.channels; }
  std::size_t scratch_bytes() const { return packed_block_bytes(source_, block_); }

  // body(lines, base, ahead): `base` holds the block's first channel, `ahead` is the next block where it
  // comes from memory. `rows` lines a block.
  template <class Body>
  void for_each(PartRange lines, std::int64_t rows, const void* source, void* scratch,
                const Body& body) const {
    for (std::int64_t number = 0; number < count(); ++number) {
      const PartRange range{std::max(lines.begin, number * rows), std::min(lines.end, (number + 1) * rows)};
      if (range.begin >= range.end) continue;
      const std::byte* base = place(source, number);
      BlockAhead ahead;
      if (block_.packed) {
        pack_block(source_, block_, channels_of(number), base, static_cast<std::byte*>(scratch));
        base = static_cast<const std::byte*>(scratch);
        if (range.end < lines.end && image_bytes(source_) > second_level_bytes)
          ahead = BlockAhead(source_, place(source, number + 1), channels_of(number + 1));
      }
      body(range, base, ahead);
    }
  }

 private:
  const std::byte* place(const void* source, std::int64_t number) const {
    return static_cast<const std::byte*>(source) + number * block_.channels * bytes(source_.type);
  }
  std::int64_t channels_of(std::int64_t number) const {
    return std::min(block_.channels, source_.channels - number * block_.channels);
  }

  Image source_;
  DepthwiseBlock block_;
};

// Whether a pass asks for its rows ahead: of images that come from memory; but a forward pass that takes all
// channels of a few columns at a time reads lines in the order in which they lie.
bool rows_ahead(const Convolution& c, const TapSide& side) {
  const DepthwiseBlock block = block_of_pass(c, side.flipped);
  if (block.packed || image_bytes(side.source) + image_bytes(side.result) <= third_level_bytes) return false;
  return side.flipped || tile_columns(c, side.source, block) > least_tile_columns;
}

std::size_t whole_lines(std::int64_t floats) {
  return (static_cast<std::size_t>(floats) * sizeof(float) + 63) / 64 * 64;
}

// Scratch: a tile of results that is staged; weights in f32, where blocks are; the packed block.
std::size_t staging_bytes(const Convolution& c, const TapSide& side) {
  if (!is_staged(c, side)) return 0;
  const DepthwiseBlock block = block_of_pass(c, side.flipped);
  return whole_lines(tile_columns(c, side.source, block) * block.channels);
}
std::size_t widened_weight_bytes(const Convolution& c, const TapSide& side) {
  if (!block_of_pass(c, side.flipped).widened) return 0;
  return whole_lines(c.window.height * c.window.width * side.source.channels);
}

// Forward and input gradient, which differ in their geometry alone.
class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(KernelInfo info, const Convolution& c, TapSide side, EpilogueRunner epilogue)
      : Kernel(std::move(info)),
        source_(side.source, block_of_pass(c, side.flipped)),
        side_(with_block(side, c, source_.block())),
        offsets_(c, side_),
        epilogue_(epilogue),
        finish_(finish_of(c)),
        accumulate_(c.accumulate),
        staged_(is_staged(c, side)),
        loop_(depthwise_loop(side_.source.type, staged_ ? ElementType::f32 : side_.result.type,
                             finish_ ? finish_->finish : DepthwiseFinish::none)),
        weight_rows_(c.window.height * c.window.width),
        weights_at_(staging_bytes(c, side)),
        packed_at_(weights_at_ + widened_weight_bytes(c, side)),
        ahead_(rows_ahead(c, side)),
        walk_{source_.block().channels, tile_columns(c, side.source, source_.block())},
        lines_(count_lines(side_, walk_.block)) {
    const std::int64_t most = source_.block().packed ? source_.count() : lines_;  // whole blocks are packed
    info_.parts = std::clamp<std::int64_t>(most, 1, most_parts);
    whole_blocks_ = source_.block().packed;
  }

  void run(const Arguments& arguments) const override { run_lines(arguments, {0, lines_}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    if (!whole_blocks_) return run_lines(arguments, part_range(lines_, part, info_.parts));
    const std::int64_t rows = lines_ / source_.count();
    const PartRange blocks = part_range(source_.count(), part, info_.parts);
    run_lines(arguments, {blocks.begin * rows, blocks.end * rows});
  }

 private:
  // What a block is multiplied by: its channels and where the weights of all channels would begin.
  struct Operands {
    const std::byte *source, *weights;
  };

  void run_lines(const Arguments& arguments, PartRange lines) const {
    void* packed = static_cast<std::byte*>(arguments.scratch) + packed_at_;
    const std::int64_t rows = lines_ / source_.count();
    source_.for_each(lines, rows, arguments.inputs[0], packed,
                     [&](PartRange range, const std::byte* base, BlockAhead&) {
                       const Operands operands{base, weights_of_block(arguments, range.begin / rows)};
                       for_each_stretch(side_, offsets_, walk_, range,
                                        [&](const Stretch& s) { run_stretch(arguments, operands, s); });
                     });
  }

  // In the type of the block's elements.
  const std::byte* weights_of_block(const Arguments& arguments, std::int64_t number) const {
    const DepthwiseBlock& block = source_.block();
    if (!block.widened) return static_cast<const std::byte*>(arguments.inputs[1]);
    const std::int64_t channels = side_.source.channels, first = number * block.channels;
    auto* weights = reinterpret_cast<float*>(static_cast<std::byte*>(arguments.scratch) + weights_at_);
    widen_({static_cast<const bf16*>(arguments.inputs[1]) + first, channels, weights + first, channels,
            weight_rows_, std::min(block.channels, channels - first)});
    return reinterpret_cast<const std::byte*>(weights);
  }

  void run_stretch(const Arguments& arguments, const Operands& operands, const Stretch& s) const {
    const Image &source = side_.source, &result = side_.result;
    const Run& columns = *s.columns;
    const std::int64_t column = columns.first * result.batch + s.begin * columns.result_step;
    const std::int64_t source_start =
        s.source_row * source.row_stride + s.begin * columns.source_step * source.column_stride;
    const std::int64_t result_start =
        s.result_row * result.row_stride + column * result.column_stride + s.first_channel;
    auto* y = static_cast<std::byte*>(arguments.outputs[0]) + result_start * bytes(result.type);
    const std::int64_t stride = result.column_stride * columns.result_step;
    DepthwiseRun run{s.count, s.channels, s.taps};
    run.source = operands.source + source_start * bytes(source.type);
    run.weights = operands.weights + s.first_channel * bytes(source.type);
    run.source_stride = source.column_stride * columns.source_step;
    run.result = staged_ ? arguments.scratch : y;
    run.result_stride = staged_ ? s.channels : stride;
    run.accumulate = accumulate_;
    if (finish_ && finish_->bias) run.bias = static_cast<const float*>(arguments.inputs[2]) + s.first_channel;
    if (finish_) run.low = finish_->low, run.high = finish_->high;
    if (ahead_) fetch_next_rows(arguments, operands.source, s);
    loop_(run);
    if (finish_ || (epilogue_.empty() && !staged_)) return;
    epilogue_.apply({static_cast<const float*>(run.result), run.result_stride, y, result.type, stride,
                     s.count, s.channels},
                    {s.result_row, column, s.first_channel, columns.result_step}, arguments.inputs.data() + 2,
                    arguments.outputs.data() + 1);
  }

  [[gnu::noinline]] void fetch_next_rows(const Arguments& arguments, const std::byte* base,
                                         const Stretch& s) const {
    const Image& result = side_.result;
    fetch_next_sources(side_.source, base, s);
    fetch_next_results<true>(
        result, static_cast<const std::byte*>(arguments.outputs[0]) + s.first_channel * bytes(result.type),
        s);
  }

  BlockedSource source_;
  TapSide side_;
  TapOffsets offsets_;
  EpilogueRunner epilogue_;
  std::optional<DepthwiseEpilogue> finish_;
  bool accumulate_, staged_, whole_blocks_ = false;
  DepthwiseLoop* loop_;
  WidenLoop* widen_ = widen_loop();
  std::int64_t weight_rows_;
  std::size_t weights_at_, packed_at_;
  bool ahead_;  // rows are asked for
  Walk walk_;
  std::int64_t lines_;
};

Prepared prepare(const Convolution& c, TapSide (*side_of)(const Convolution&)) {
  if (std::string fault = fault_of_depthwise(c); !fault.empty()) return refuse(name, fault);
  TapSide side = side_of(c);
  if (c.accumulate && side.result.type != ElementType::f32)
    return refuse(name, "only an f32 result can be added to; the epilogue's `add` reads bf16");
  auto epilogue = EpilogueRunner::prepare(c.epilogue, side.result);
  if (!epilogue) return refuse(name, epilogue.error());
  const BlockedSource source(side.source, block_of_pass(c, side.flipped));
  KernelInfo info;
  info.name =
      fmt::format("{}, depthwise, {}tiles of {} x {}{}", side.flipped ? "input gradient" : "convolution",
                  source.block().packed ? "packed, " : "", source.block().channels,
                  tile_columns(c, side.source, source.block()),
                  c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue));
  info.flops = 2 * multiply_adds(c);
  info.bytes = bytes_of(side.source) + bytes_of(side.result) * (c.accumulate ? 2 : 1) +
               static_cast<double>(side.result.element_count()) * epilogue->bytes_per_element();
  info.scratch_bytes = staging_bytes(c, side) + widened_weight_bytes(c, side) + source.scratch_bytes();
  info.inputs = 2 + epilogue->inputs();
  info.outputs = 1 + epilogue->outputs();
  info.weights = WeightLayout::taps_channels;
  return std::make_unique<DepthwiseKernel>(std::move(info), c, std::move(side), *epilogue);
}

class DepthwiseWeightGradient final : public Kernel {
 public:
  DepthwiseWeightGradient(KernelInfo info, const Convolution& c)
      : Kernel(std::move(info)),
        c_(c),
        source_(c.x, block_of_weight_gradient(c)),
        side_(with_block(forward_side(c), c, source_.block())),
        offsets_(c, side_),
        loop_(depthwise_gradient_loop(c.x.type)),
        ahead_(image_bytes(c.x) + image_bytes(c.y) >
               (source_.block().packed ? second_level_bytes : third_level_bytes)),
        walk_{source_.block().channels, tile_columns(c, c.x, source_.block()), rows_together},
        lines_(count_lines(side_, walk_.block)) {
    stretches_ = count_stretches(side_, walk_);
    // Rows of a block add into the same sums: a part is whole blocks.
    info_.parts = source_.count();
  }

  void run(const Arguments& arguments) const override { run_lines(arguments, {0, lines_}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_lines(arguments, part_range(lines_, part, info_.parts));
  }

 private:
  void run_lines(const Arguments& arguments, PartRange lines) const {
    source_.for_each(lines, lines_ / source_.count(), arguments.inputs[0], arguments.scratch,
                     [&](PartRange range, const std::byte* base, BlockAhead& next) {
                       for_each_stretch(side_, offsets_, walk_, range, [&](const Stretch& s) {
                         next.step(stretches_);
                         run_stretch(arguments, base, s);
                       });
                     });
  }

  void run_stretch(const Arguments& arguments, const std::byte* base, const Stretch& s) const {
    DepthwiseGradientRun run{s.count, s.channels, s.taps};
    run.source_stride = side_.source.column_stride * s.columns->source_step;
    run.gradient_stride = c_.y.column_stride * s.columns->result_step;
    const std::int64_t source = s.source_row * side_.source.row_stride + s.begin * run.source_stride;
    const std::int64_t gradient =
        c_.y.offset(s.result_row, s.columns->first) + s.begin * run.gradient_stride + s.first_channel;
    run.source = base + source * bytes(c_.x.type);
    run.gradient = static_cast<const std::byte*>(arguments.inputs[1]) + gradient * bytes(c_.y.type);
    run.sums = static_cast<float*>(arguments.outputs[0]) + s.first_channel;
    run.rows = s.row_count;
    run.source_row_stride = s.rows->source_step * side_.source.row_stride;
    run.gradient_row_stride = s.rows->result_step * c_.y.row_stride;
    if (ahead_) fetch_next_rows(arguments, base, s);
    loop_(run);
  }

  [[gnu::noinline]] void fetch_next_rows(const Arguments& arguments, const std::byte* base,
                                         const Stretch& s) const {
    if (!source_.block().packed) fetch_next_sources(side_.source, base, s);
    fetch_next_results<false>(
        c_.y, static_cast<const std::byte*>(arguments.inputs[1]) + s.first_channel * bytes(c_.y.type), s);
  }

  Convolution c_;
  BlockedSource source_;
  TapSide side_;
  TapOffsets offsets_;
  DepthwiseGradientLoop* loop_;
  bool ahead_;  // rows are asked for
  Walk walk_;
  std::int64_t lines_, stretches_;  // of a block: stretches
};

Prepared prepare_depthwise_forward(const Convolution& c) { return prepare(c, forward_side); }
Prepared prepare_depthwise_input_gradient(const Convolution& c) { return prepare(c, gradient_side); }

Prepared prepare_depthwise_weight_gradient(const Convolution& c) {
  if (std::string fault = fault_of_depthwise(c); !fault.empty()) return refuse(name, fault);
  if (!c.epilogue.steps.empty()) return refuse(name, "a weight gradient has no epilogue");
  if (c.x.type != c.y.type) return refuse(name, "x and dy differ in type");
  KernelInfo info;
  const BlockedSource source(c.x, block_of_weight_gradient(c));
  info.name =
      fmt::format("weight gradient, depthwise, {}tiles of {} x {}", source.block().packed ? "packed, " : "",
                  source.block().channels, tile_columns(c, c.x, source.block()));
  info.scratch_bytes = source.scratch_bytes();
  info.flops = 2 * multiply_adds(c);
  info.bytes = bytes_of(c.x) + bytes_of(c.y);
  info.inputs = 2;
  info.outputs = 1;
  info.weights = WeightLayout::taps_channels;
  return std::make_unique<DepthwiseWeightGradient>(std::move(info), c);
}

}  // namespace

extern constinit const Implementation<Convolution> depthwise_forward{"depthwise", prepare_depthwise_forward};
extern constinit const Implementation<Convolution> depthwise_input_gradient{"depthwise",
                                                                            prepare_depthwise_input_gradient};
extern constinit const Implementation<Convolution> depthwise_weight_gradient{
    "depthwise", prepare_depthwise_weight_gradient};

}  // namespace superstep::kernels
