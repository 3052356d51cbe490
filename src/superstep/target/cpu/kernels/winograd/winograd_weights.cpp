#include "superstep/target/cpu/kernels/winograd/winograd_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"

namespace superstep::kernels {

namespace {

// Which of the six forms it is.
struct WinogradWeights {
  std::int64_t tile;
  bool turned;
};

// One side of the weights: its channels and how far they lie apart in the model's order.
struct Side {
  std::int64_t channels, stride;
};

// The side along the panels and the one of the sum.
struct Sides {
  Side width, depth;
};

Sides sides_of(const WeightTransfer& t, bool turned) {
  const bool out_first = t.order == WeightOrder::out_in_taps;
  const Side in{t.in, t.taps() * (out_first ? 1 : t.out)}, out{t.out, t.taps() * (out_first ? t.in : 1)};
  return turned ? Sides{in, out} : Sides{out, in};
}

// Rows of panels of one width: how their taps are brought into order and, in bf16, their planes into pairs.
struct RowKernels {
  KernelPointer order, pairs;
};

constexpr std::int64_t rows_at_once =
    16;  // of a panel: their taps and planes stay near the first-level cache

// Some rows of a panel and one plane under the window at a time: their taps are laid out as planes of the
// sum's channels by the panel's in scratch, then transformed, in f32 to where they belong, in bf16 to scratch
// and from there into pairs.
class WinogradPack final : public Kernel {
 public:
  using Kernels = std::array<std::array<RowKernels, 2>, 2>;  // [a narrower panel][fewer rows]

  WinogradPack(KernelInfo info, const Sides& sides, std::int64_t planes, WinogradWeights form,
               Kernels kernels)
      : Kernel(std::move(info)),
        sides_(sides),
        planes_(planes),
        turned_(form.turned),
        tile_(form.tile),
        filter_(winograd_other_loops(tile_).filter),
        kernels_(std::move(kernels)) {
    info_.parts = std::min(pieces(), most_parts);
  }

  void run(const Arguments& arguments) const override { pack(arguments, {0, pieces()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    pack(arguments, part_range(pieces(), part, info_.parts));
  }

 private:
  std::int64_t stretches() const { return (sides_.depth.channels + rows_at_once - 1) / rows_at_once; }
  std::int64_t pieces() const {
    return (sides_.width.channels + panel_width - 1) / panel_width * planes_ * stretches();
  }

  static void apply(const Kernel& kernel, const void* from, void* to) {
    kernel.run({{&from, 1}, {&to, 1}, nullptr});
  }

  void pack(const Arguments& arguments, PartRange range) const {
    for (std::int64_t piece = range.begin; piece < range.end; ++piece) {
      const std::int64_t of_plane = piece / stretches();
      pack_rows(arguments, of_plane / planes_ * panel_width, of_plane % planes_,
                piece % stretches() * rows_at_once);
    }
  }

  // `plane`: as the kernel reads them, the last one first where the window is turned round.
  void pack_rows(const Arguments& arguments, std::int64_t first, std::int64_t plane, std::int64_t row) const {
    const std::int64_t points = (tile_ + 2) * (tile_ + 2), depth = sides_.depth.channels;
    const std::int64_t panel = std::min(panel_width, sides_.width.channels - first),
                       rows = std::min(rows_at_once, depth - row), elements = rows * panel;
    const RowKernels& kernels = kernels_[panel < panel_width][rows < rows_at_once];
    auto* taps = static_cast<float*>(arguments.scratch);
    apply(*kernels.order,
          static_cast<const float*>(arguments.inputs[0]) + first * sides_.width.stride +
              row * sides_.depth.stride + 9 * (turned_ ? planes_ - 1 - plane : plane),
          taps);
    const std::int64_t place =
        points * depth * (planes_ * first + plane * panel) + row * panel;  // of the first point
    if (!kernels.pairs)
      return transform(taps, elements, static_cast<float*>(arguments.outputs[0]) + place, depth * panel);
    float* values = taps + 9 * elements;
    transform(taps, elements, values, elements);
    auto* packed = static_cast<bf16*>(arguments.outputs[0]) + place;
    for (std::int64_t point = 0; point < points; ++point)
      apply(*kernels.pairs, values + point * elements, packed + point * depth * panel);
  }

  void transform(float* taps, std::int64_t elements, float* planes, std::int64_t plane_stride) const {
    const std::int64_t step = turned_ ? -elements : elements;
    filter_({.square = turned_ ? taps + 8 * elements : taps,
             .row_stride = 3 * step,
             .column_stride = step,
             .rows = {0, 3},
             .columns = {0, 3},
             .run_stride = 0,
             .planes = planes,
             .plane_stride = plane_stride,
             .plane_run_stride = 0,
             .runs = 1,
             .length = elements});
  }

  Sides sides_;
  std::int64_t planes_;  // under the window
  bool turned_;
  std::int64_t tile_;
  WinogradLoop* filter_;
  Kernels kernels_;
};

Prepared copy_of_rows(const Sides& sides, std::int64_t rows, std::int64_t panel) {
  return prepare(StridedCopy{.extents = {9, rows, panel},
                             .x_strides = {1, sides.depth.stride, sides.width.stride},
                             .y_strides = {rows * panel, panel, 1}});
}

// Full ones, and what is left at the end; none where there are none.
std::array<std::int64_t, 2> extents_of(std::int64_t total, std::int64_t full) {
  return {total >= full ? full : 0, total % full};
}

std::size_t elements_of(const WeightTransfer& t, std::int64_t tile) {
  return static_cast<std::size_t>((tile + 2) * (tile + 2) * t.kernel_d * t.in * t.out);
}

Prepared prepare_transformed(const WeightTransfer& t, WinogradWeights form) {
  if (t.groups != 1 || t.kernel_h != 3 || t.kernel_w != 3)
    return refuse("weights", "transformed weights have 3 x 3 taps a plane and one group");
  const bool narrow = t.type == ElementType::bf16;
  if (!narrow && t.type != ElementType::f32)
    return refuse("weights", std::string("no transformed weights of ") + name_of(t.type));
  const Sides sides = sides_of(t, form.turned);
  const std::int64_t depth = sides.depth.channels;
  if (narrow && depth % 2 != 0) return refuse("weights", "transformed pairs need an even number of channels");
  WinogradPack::Kernels kernels;
  const auto widths = extents_of(sides.width.channels, panel_width),
             heights = extents_of(depth, rows_at_once);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      if (widths[i] == 0 || heights[j] == 0) continue;
      Prepared order = copy_of_rows(sides, heights[j], widths[i]);
      if (!order) return order;
      kernels[i][j].order = std::move(*order);
      if (!narrow) continue;
      Prepared pairs = prepare(PairPanel{heights[j], widths[i], widths[i], 1, ElementType::f32});
      if (!pairs) return pairs;
      kernels[i][j].pairs = std::move(*pairs);
    }
  const std::int64_t side = form.tile + 2, planes = 9 + (narrow ? side * side : 0);
  const std::size_t size = size_in_bytes(t.type), packed = elements_of(t, form.tile);
  KernelInfo info{
      .name = fmt::format("pack weights, {}{}", name_of(t.layout), narrow ? ", pairs" : ""),
      .bytes = static_cast<double>(4 * t.taps() * t.in * t.out) + static_cast<double>(size * packed),
      .scratch_bytes = static_cast<std::size_t>(planes * std::min(rows_at_once, depth) *
                                                std::min(panel_width, sides.width.channels)) *
                       sizeof(float),
      .inputs = 1,
      .outputs = 1,
      .weights = t.layout};
  return std::make_unique<WinogradPack>(std::move(info), sides, t.kernel_d, form, std::move(kernels));
}

template <std::int64_t tile, bool turned>
OwnWeights own_weights(const char* name) {
  return {.name = name,
          .packed_elements = [](const WeightTransfer& t) { return elements_of(t, tile); },
          .prepare_pack =
              [](const WeightTransfer& t) {
                return prepare_transformed(t, {tile, turned});
              }};
}

}  // namespace

const OwnWeights& winograd_weights(std::int64_t tile, bool turned) {
  static const OwnWeights forms[2][3] = {
      {own_weights<2, false>("winograd_2_in_out"), own_weights<3, false>("winograd_3_in_out"),
       own_weights<4, false>("winograd_4_in_out")},
      {own_weights<2, true>("winograd_2_out_in"), own_weights<3, true>("winograd_3_out_in"),
       own_weights<4, true>("winograd_4_out_in")}};
  return forms[turned][tile - smallest_winograd_tile];
}

}  // namespace superstep::kernels
