#include "superstep/target/cpu/kernels/winograd_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/copy.h"
#include "superstep/target/cpu/kernels/winograd_loops.h"

namespace superstep::kernels {

namespace {

bool turned(WeightLayout layout) { return layout >= WeightLayout::winograd_2_out_in; }

// One side of the weights: its channels and how far they lie apart in the model's order.
struct Side {
  std::int64_t channels, stride;
};

// The side along the panels and the one of the sum.
struct Sides {
  Side width, depth;
};

Sides sides_of(const WeightTransfer& t) {
  const bool out_first = t.order == WeightOrder::out_in_taps;
  const Side in{t.in, out_first ? 9 : 9 * t.out}, out{t.out, out_first ? 9 * t.in : 9};
  return turned(t.layout) ? Sides{in, out} : Sides{out, in};
}

// A panel at a time: its taps are laid out as planes of the sum's channels by the panel's in scratch, then
// transformed.
class WinogradPack final : public Kernel {
 public:
  WinogradPack(KernelInfo info, const WeightTransfer& transfer, KernelPointer full, KernelPointer last)
      : Kernel(std::move(info)),
        sides_(sides_of(transfer)),
        turned_(turned(transfer.layout)),
        tile_(winograd_tile_of(transfer.layout)),
        filter_(winograd_loops(tile_).filter),
        full_(std::move(full)),
        last_(std::move(last)) {}

  void run(const Arguments& arguments) const override {
    const auto* stored = static_cast<const float*>(arguments.inputs[0]);
    auto* packed = static_cast<float*>(arguments.outputs[0]);
    void* taps = arguments.scratch;
    const Side& width = sides_.width;
    for (std::int64_t first = 0; first < width.channels; first += panel_width) {
      const std::int64_t panel = std::min(panel_width, width.channels - first);
      const void* source = stored + first * width.stride;
      (panel == panel_width ? full_ : last_)->run({{&source, 1}, {&taps, 1}, nullptr});
      transform(static_cast<float*>(taps), panel * sides_.depth.channels, packed);
      packed += (tile_ + 2) * (tile_ + 2) * panel * sides_.depth.channels;
    }
  }

 private:
  void transform(float* taps, std::int64_t elements, float* planes) const {
    const std::int64_t step = turned_ ? -elements : elements;
    filter_({.square = turned_ ? taps + 8 * elements : taps,
             .row_stride = 3 * step,
             .column_stride = step,
             .rows = {0, 3},
             .columns = {0, 3},
             .run_stride = 0,
             .planes = planes,
             .plane_stride = elements,
             .plane_run_stride = 0,
             .runs = 1,
             .length = elements});
  }

  Sides sides_;
  bool turned_;
  std::int64_t tile_;
  WinogradLoop* filter_;
  KernelPointer full_, last_;
};

Prepared copy_of_panel(const Sides& sides, std::int64_t panel) {
  const std::int64_t depth = sides.depth.channels;
  return prepare(StridedCopy{.extents = {9, depth, panel},
                             .x_strides = {1, sides.depth.stride, sides.width.stride},
                             .y_strides = {depth * panel, panel, 1}});
}

}  // namespace

std::int64_t winograd_tile_of(WeightLayout layout) {
  if (layout < WeightLayout::winograd_2_in_out) return 0;
  return 2 +
         (static_cast<std::int64_t>(layout) - static_cast<std::int64_t>(WeightLayout::winograd_2_in_out)) % 3;
}

std::size_t winograd_packed_elements(const WeightTransfer& t) {
  const std::int64_t side = winograd_tile_of(t.layout) + 2;
  return static_cast<std::size_t>(side * side * t.in * t.out);
}

Prepared prepare_winograd_pack(const WeightTransfer& t) {
  if (t.groups != 1 || t.kernel_h != 3 || t.kernel_w != 3)
    return refuse("weights", "transformed weights have 3 x 3 taps and one group");
  if (t.type != ElementType::f32) return refuse("weights", "transformed weights are f32");
  const Sides sides = sides_of(t);
  KernelPointer copies[2];
  const std::int64_t widths[] = {std::min(panel_width, sides.width.channels),
                                 sides.width.channels % panel_width};
  for (int i = 0; i < 2; ++i) {
    if (widths[i] == 0) continue;
    Prepared copy = copy_of_panel(sides, widths[i]);
    if (!copy) return copy;
    copies[i] = std::move(*copy);
  }
  const std::size_t count = static_cast<std::size_t>(9 * t.in * t.out);
  KernelInfo info{
      .name = fmt::format("pack weights, {}", name_of(t.layout)),
      .bytes = 4.0 * static_cast<double>(count + winograd_packed_elements(t)),
      .scratch_bytes = static_cast<std::size_t>(9 * sides.depth.channels * widths[0]) * sizeof(float),
      .inputs = 1,
      .outputs = 1,
      .weights = t.layout};
  return std::make_unique<WinogradPack>(std::move(info), t, std::move(copies[0]), std::move(copies[1]));
}

}  // namespace superstep::kernels
