// Convolutions on bytes over positions of any row: what would be tiles of a few columns each, at the ends of
// short rows and beside padding, becomes full ones, and weights that a first-level cache does not hold are
// read once for many tiles.
//
// Positions are cut into stretches. Of a stretch the address of every position's window is gathered tap by
// tap; taps outside the image read a row of zero points. Then, a panel of result channels after the other,
// its weights are taken in pieces that fit the first-level cache: every tile of the stretch is multiplied by
// a piece before the next is read, its sums waiting in scratch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "superstep/target/cpu/kernels/bytes/byte_kernel_info.h"
#include "superstep/target/cpu/kernels/bytes/byte_tile.h"
#include "superstep/target/cpu/kernels/bytes/byte_weights.h"
#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"
#include "superstep/target/cpu/kernels/bytes/simple_steps.h"
#include "superstep/target/cpu/kernels/core/caches.h"

namespace superstep::kernels {

extern const Implementation<IntegerConvolution> integer_in_registers;  // integer_convolution.cpp

namespace {

constexpr std::int64_t tile_columns = 6;      // what the registers hold sums of, with 64 channels each
constexpr std::int64_t longest_stretch = 60;  // positions: sums of 64 channels are 15 kB

// Some taps, and of each some summed channels in fours.
struct Piece {
  std::int64_t first_tap, taps, first_quad, quads;
};

std::int64_t weights_at_once() { return first_level_cache() / 3; }

std::vector<Piece> cut(const ByteWeights& w) {
  const std::int64_t tap_bytes = w.in * std::min(panel_width, w.out);
  std::vector<Piece> pieces;
  if (tap_bytes <= weights_at_once()) {
    const std::int64_t count = (w.taps * tap_bytes + weights_at_once() - 1) / weights_at_once();
    for (std::int64_t i = 0; i < count; ++i) {
      const PartRange taps = part_range(w.taps, i, count);
      pieces.push_back({taps.begin, taps.end - taps.begin, 0, w.in / 4});
    }
    return pieces;
  }
  const std::int64_t count = (tap_bytes + weights_at_once() - 1) / weights_at_once();
  for (std::int64_t tap = 0; tap < w.taps; ++tap)
    for (std::int64_t i = 0; i < count; ++i) {
      const PartRange quads = part_range(w.in / 4, i, count);
      pieces.push_back({tap, 1, quads.begin, quads.end - quads.begin});
    }
  return pieces;
}

// Of every tap and position, where x is read; below zero: outside the image.
std::vector<std::int32_t> offsets_of(const IntegerConvolution& c) {
  std::vector<std::int32_t> offsets;
  const Window& w = c.window;
  for (std::int64_t kh = 0; kh < w.height; ++kh)
    for (std::int64_t kw = 0; kw < w.width; ++kw)
      for (std::int64_t row = 0; row < c.y.height; ++row)
        for (std::int64_t column = 0; column < c.y.columns(); ++column) {
          const std::int64_t h = row * w.stride_h + kh * w.dilation_h - w.pad_top,
                             v = column / c.y.batch * w.stride_w + kw * w.dilation_w - w.pad_left;
          const bool inside = h >= 0 && h < c.x.height && v >= 0 && v < c.x.width;
          const std::int64_t sample = column % c.y.batch;
          offsets.push_back(inside ? static_cast<std::int32_t>(c.x.offset(h, v) + sample * c.x.column_stride)
                                   : -1);
        }
  return offsets;
}

class GatheredConvolution final : public Kernel {
 public:
  GatheredConvolution(KernelInfo info, const IntegerConvolution& c, GatheredTileFunction* multiply)
      : Kernel(std::move(info)),
        c_(c),
        weights_(byte_weights(c)),
        simple_(simple_steps(c.epilogue)),
        pieces_(cut(weights_)),
        offsets_(offsets_of(c)),
        multiply_(multiply),
        stretches_(stretches_of(c)),
        panels_((weights_.out + panel_width - 1) / panel_width) {
    info_.parts = stretches_ * c_.groups * panels_;
    info_.scratch_bytes = sums_bytes() + zeros_bytes() + addresses_bytes();
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t stretch = 0; stretch < stretches_; ++stretch) {
      const PartRange positions = part_range(c_.y.positions(), stretch, stretches_);
      for (std::int64_t group = 0; group < c_.groups; ++group) {
        gather(arguments, positions, group);
        for (std::int64_t panel = 0; panel < panels_; ++panel) run_panel(arguments, positions, group, panel);
      }
    }
  }

  void run_part(const Arguments& arguments, std::int64_t number) const override {
    const PartRange positions = part_range(c_.y.positions(), number / (c_.groups * panels_), stretches_);
    const std::int64_t group = number / panels_ % c_.groups;
    gather(arguments, positions, group);
    run_panel(arguments, positions, group, number % panels_);
  }

 private:
  static std::int64_t stretches_of(const IntegerConvolution& c) {
    return (c.y.positions() + longest_stretch - 1) / longest_stretch;
  }
  std::size_t sums_bytes() const { return longest_stretch * panel_width * sizeof(std::int32_t); }
  std::size_t zeros_bytes() const { return static_cast<std::size_t>((weights_.in + 63) / 64 * 64); }
  std::size_t addresses_bytes() const {
    return static_cast<std::size_t>(weights_.taps * longest_stretch) * sizeof(const std::uint8_t*);
  }
  std::int32_t* sums(const Arguments& a) const { return static_cast<std::int32_t*>(a.scratch); }
  std::uint8_t* zeros(const Arguments& a) const {
    return static_cast<std::uint8_t*>(a.scratch) + sums_bytes();
  }
  const std::uint8_t** addresses(const Arguments& a) const {
    return reinterpret_cast<const std::uint8_t**>(zeros(a) + zeros_bytes());
  }

  void gather(const Arguments& arguments, const PartRange& positions, std::int64_t group) const;
  void run_panel(const Arguments& arguments, const PartRange& positions, std::int64_t group,
                 std::int64_t panel) const;
  void add_operands(const Arguments& arguments, std::int64_t position, std::int64_t first_channel,
                    float* scale, IntegerBlock& block) const;
  const std::byte* ahead_of(const std::byte* panel, std::size_t piece, std::int64_t channels) const;

  IntegerConvolution c_;
  ByteWeights weights_;
  SimpleSteps simple_;
  std::vector<Piece> pieces_;
  std::vector<std::int32_t> offsets_;
  GatheredTileFunction* multiply_;
  std::int64_t stretches_, panels_;
};

// Where the window of every position reads, tap by tap.
void GatheredConvolution::gather(const Arguments& arguments, const PartRange& positions,
                                 std::int64_t group) const {
  const auto* x = static_cast<const std::uint8_t*>(arguments.inputs[0]) + group * weights_.in;
  std::uint8_t* none = zeros(arguments);
  std::fill_n(none, weights_.in, static_cast<std::uint8_t>(c_.zero_point));
  const std::uint8_t** to = addresses(arguments);
  for (std::int64_t tap = 0; tap < weights_.taps; ++tap) {
    const std::int32_t* offsets = offsets_.data() + tap * c_.y.positions();
    for (std::int64_t position = positions.begin; position < positions.end; ++position)
      *to++ = offsets[position] < 0 ? none : x + offsets[position];
  }
}

void GatheredConvolution::add_operands(const Arguments& arguments, std::int64_t position,
                                       std::int64_t first_channel, float* scale, IntegerBlock& block) const {
  const void* added = take_operands(simple_, arguments.inputs.data() + 3, first_channel, scale, block);
  if (!added) return;
  const std::int64_t across = simple_.added_column > 0 ? simple_.added_column : c_.y.column_stride;
  set_added(simple_, added, position * across + first_channel, across, block);
}

// The weights of the piece after this one, in this panel or the next.
const std::byte* GatheredConvolution::ahead_of(const std::byte* panel, std::size_t piece,
                                               std::int64_t channels) const {
  if (piece + 1 == pieces_.size()) return panel + weights_.taps * weights_.in * channels;
  const Piece& next = pieces_[piece + 1];
  return panel + (next.first_tap * weights_.in + next.first_quad * 4) * channels;
}

void GatheredConvolution::run_panel(const Arguments& arguments, const PartRange& positions,
                                    std::int64_t group, std::int64_t panel) const {
  const std::int64_t before = panel * panel_width, first_channel = group * weights_.out + before;
  const std::int64_t channels = std::min(panel_width, weights_.out - before);
  const std::int64_t count = positions.end - positions.begin;
  const std::byte* weights = static_cast<const std::byte*>(arguments.inputs[1]) +
                             weights_.taps * weights_.in * (group * weights_.out + before);
  const bool bytes = c_.y.type == ElementType::u8;
  const auto size = static_cast<std::int64_t>(size_in_bytes(c_.y.type));
  std::int32_t shift[panel_width];
  float scale[panel_width];
  sum_all_taps(weights_, arguments.inputs[1], group, before, channels, c_.zero_point, shift);
  IntegerBlock block =
      block_of(c_, simple_, shift, static_cast<const float*>(arguments.inputs[2]) + first_channel, channels);
  block.sums = sums(arguments);
  block.result = sums(arguments);
  block.columns = count;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const bool more = i + 1 < pieces_.size();
    const std::int64_t tap_bytes = weights_.in * channels;
    const GatheredTile tile{
        .weights = weights + piece.first_tap * tap_bytes + piece.first_quad * 4 * channels,
        .tap_bytes = tap_bytes,
        .taps = piece.taps,
        .quads = piece.quads,
        .columns = addresses(arguments) + piece.first_tap * count,
        .columns_stride = count,
        .first_byte = piece.first_quad * 4,
        .ahead = ahead_of(weights, i, channels),
        .ahead_per_column = piece.taps * piece.quads * 4 * channels / count,
        .goes_on = i > 0,
        .more = more,
        .bytes = bytes};
    if (!more) {
      add_operands(arguments, positions.begin, first_channel, scale, block);
      block.result = static_cast<std::byte*>(arguments.outputs[0]) +
                     (positions.begin * c_.y.column_stride + first_channel) * size;
    }
    multiply_(tile, block);
  }
}

std::string refusal(const IntegerConvolution& c) {
  if (sums_rows(c)) return "few channels";
  if (gathered_byte_tile() == nullptr) return "gathered products of bytes need AVX-512 VNNI";
  if (c.y.type == ElementType::i32) return "sums are wanted in memory";
  if (c.x.planes != 1 || c.y.planes != 1 || c.window.depth != 1) return "the image has planes";
  if (extent_of(c.x) > std::numeric_limits<std::int32_t>::max()) return "an image beyond 2 GB";
  if (!c.y.rows_join()) return "rows of the result do not follow each other";
  const SimpleSteps steps = simple_steps(c.epilogue);
  if (!steps.simple) return "the epilogue takes more than one pass";
  const std::int64_t across = steps.added_column > 0 ? steps.added_column : c.y.column_stride;
  if (steps.added_row > 0 && steps.added_row != across * c.y.columns())
    return "rows of what is added do not follow each other";
  return {};
}

Prepared make_gathered(const IntegerConvolution& c) {
  constexpr const char* name = "gathered positions";
  const auto epilogue = byte_epilogue(c);
  if (!epilogue) return refuse(name, epilogue.error());
  KernelInfo info = byte_kernel_info(
      c, *epilogue,
      fmt::format("{}, {} at a time, weights in {}", name, tile_columns, cut(byte_weights(c)).size()));
  return std::make_unique<GatheredConvolution>(std::move(info), c, gathered_byte_tile());
}

// Seconds of the fastest of several runs, for a kernel of a dense layer with everything in the caches.
class LayerTrial {
 public:
  explicit LayerTrial(const IntegerConvolution& layer, const Kernel& kernel)
      : kernel_(kernel),
        x_(static_cast<std::size_t>(layer.x.positions() * layer.x.channels)),
        weights_(byte_pack_bytes(layer)),
        scales_(static_cast<std::size_t>(layer.y.channels)),
        y_(static_cast<std::size_t>(layer.y.positions() * layer.y.channels)),
        scratch_(kernel.info().scratch_bytes) {}

  void run() {
    const std::array<const void*, 3> inputs{x_.data(), weights_.data(), scales_.data()};
    void* output = y_.data();
    const auto begun = std::chrono::steady_clock::now();
    kernel_.run({inputs, {&output, 1}, scratch_.data()});
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    least_ = std::min(least_, taken);
  }
  double seconds() const { return least_; }

 private:
  const Kernel& kernel_;
  std::vector<std::uint8_t> x_;
  std::vector<std::byte> weights_;
  std::vector<float> scales_, y_;
  std::vector<std::byte> scratch_;
  double least_ = std::numeric_limits<double>::max();
};

bool measure_pieces() {
  constexpr int tries = 6;
  const IntegerConvolution layer = integer_dense_layer(48, 1024, panel_width, ElementType::f32);
  const Prepared pieces = make_gathered(layer), whole = integer_in_registers.prepare(layer);
  if (!pieces || !whole) return pieces.has_value();
  LayerTrial of_pieces(layer, **pieces), of_whole(layer, **whole);
  for (int i = 0; i < tries; ++i) of_pieces.run(), of_whole.run();
  return of_pieces.seconds() < of_whole.seconds();
}

// Weights of a panel that the first-level cache does not hold come from the second-level one for every tile,
// or in pieces for many tiles, whose sums then go to memory and back in between. Which takes less depends on
// what that cache gives beside the products of a cycle: pieces gain on a Xeon and lose on a Zen 4
// (docs/int8.md). Measured once a process, in a fifth of a millisecond.
bool gains_by_pieces() {
  if (const DeepWeights assumed = assumed_deep_weights.load(std::memory_order_relaxed);
      assumed != DeepWeights::measured)
    return assumed == DeepWeights::pieces;
  static const bool gains = measure_pieces();
  return gains;
}

// What is not gained by it. Rows of 14 columns fill the tiles of a row well; 1,024 summed channels are more
// than the first-level cache holds beside what they are multiplied with (measured: bench_byte_kernels,
// docs/int8.md).
std::string no_gain(const IntegerConvolution& c) {
  const ByteWeights w = byte_weights(c);
  if (w.out <= 32) return "panels of one or two vectors";
  if (c.y.positions() < 2 * tile_columns) return "few positions";
  if (!c.window.is_pointwise() && c.y.columns() < 14) return {};
  const bool deep = w.taps == 1 && w.in * std::min(panel_width, w.out) > first_level_cache();
  if (!deep) return "rows are long, or the weights of a panel fit the first-level cache";
  return gains_by_pieces() ? "" : "the second-level cache gives weights as fast as they are multiplied";
}

Prepared prepare_gathered(const IntegerConvolution& c) {
  constexpr const char* name = "gathered positions";
  if (std::string fault = fault_of(c); !fault.empty()) return refuse(name, fault);
  if (std::string why = refusal(c); !why.empty()) return refuse(name, why);
  if (std::string why = no_gain(c); !why.empty()) return refuse(name, why);
  return make_gathered(c);
}

}  // namespace

extern constinit const Implementation<IntegerConvolution> gathered_integer{"gathered positions",
                                                                           prepare_gathered};

}  // namespace superstep::kernels
