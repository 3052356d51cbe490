#include "superstep/target/cpu/kernels/winograd_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/copy.h"
#include "superstep/target/cpu/kernels/pair_panel.h"
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

// Panels of one width: how their taps are brought into order and, in bf16, their planes into pairs.
struct PanelKernels {
  KernelPointer order, pairs;
};

// A panel at a time: its taps are laid out as planes of the sum's channels by the panel's in scratch, then
// transformed, in f32 to where they belong, in bf16 to scratch and from there into pairs.
class WinogradPack final : public Kernel {
 public:
  WinogradPack(KernelInfo info, const WeightTransfer& transfer, PanelKernels full, PanelKernels last)
      : Kernel(std::move(info)),
        sides_(sides_of(transfer)),
        turned_(turned(transfer.layout)),
        tile_(winograd_tile_of(transfer.layout)),
        filter_(winograd_other_loops(tile_).filter),
        full_(std::move(full)),
        last_(std::move(last)) {}

  void run(const Arguments& arguments) const override {
    const auto* stored = static_cast<const float*>(arguments.inputs[0]);
    auto* packed = static_cast<std::byte*>(arguments.outputs[0]);
    auto* taps = static_cast<float*>(arguments.scratch);
    const Side& width = sides_.width;
    for (std::int64_t first = 0; first < width.channels; first += panel_width) {
      const std::int64_t panel = std::min(panel_width, width.channels - first);
      const PanelKernels& kernels = panel == panel_width || width.channels < panel_width ? full_ : last_;
      apply(*kernels.order, stored + first * width.stride, taps);
      packed += pack_panel(kernels, taps, panel * sides_.depth.channels, packed);
    }
  }

 private:
  static void apply(const Kernel& kernel, const void* from, void* to) {
    kernel.run({{&from, 1}, {&to, 1}, nullptr});
  }

  // Returns the bytes it wrote.
  std::int64_t pack_panel(const PanelKernels& kernels, float* taps, std::int64_t elements,
                          std::byte* to) const {
    const std::int64_t points = (tile_ + 2) * (tile_ + 2);
    if (!kernels.pairs) {
      transform(taps, elements, reinterpret_cast<float*>(to));
      return points * elements * 4;
    }
    float* planes = taps + 9 * elements;
    transform(taps, elements, planes);
    for (std::int64_t plane = 0; plane < points; ++plane)
      apply(*kernels.pairs, planes + plane * elements, to + plane * elements * 2);
    return points * elements * 2;
  }

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
  PanelKernels full_, last_;
};

Prepared copy_of_panel(const Sides& sides, std::int64_t panel) {
  const std::int64_t depth = sides.depth.channels;
  return prepare(StridedCopy{.extents = {9, depth, panel},
                             .x_strides = {1, sides.depth.stride, sides.width.stride},
                             .y_strides = {depth * panel, panel, 1}});
}

}  // namespace

std::int64_t winograd_tile_of(WeightLayout layout) {
  if (!are_transformed(layout)) return 0;
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
  const bool narrow = t.type == ElementType::bf16;
  if (!narrow && t.type != ElementType::f32)
    return refuse("weights", std::string("no transformed weights of ") + name_of(t.type));
  const Sides sides = sides_of(t);
  const std::int64_t depth = sides.depth.channels;
  if (narrow && depth % 2 != 0) return refuse("weights", "transformed pairs need an even number of channels");
  PanelKernels kernels[2];
  const std::int64_t widths[] = {std::min(panel_width, sides.width.channels),
                                 sides.width.channels % panel_width};
  for (int i = 0; i < 2; ++i) {
    if (widths[i] == 0) continue;
    Prepared order = copy_of_panel(sides, widths[i]);
    if (!order) return order;
    kernels[i].order = std::move(*order);
    if (!narrow) continue;
    Prepared pairs = prepare(PairPanel{depth, widths[i], widths[i], 1, ElementType::f32});
    if (!pairs) return pairs;
    kernels[i].pairs = std::move(*pairs);
  }
  const std::int64_t side = winograd_tile_of(t.layout) + 2, planes = 9 + (narrow ? side * side : 0);
  const std::size_t size = size_in_bytes(t.type), packed = winograd_packed_elements(t);
  KernelInfo info{.name = fmt::format("pack weights, {}{}", name_of(t.layout), narrow ? ", pairs" : ""),
                  .bytes = static_cast<double>(4 * 9 * t.in * t.out) + static_cast<double>(size * packed),
                  .scratch_bytes = static_cast<std::size_t>(planes * depth * widths[0]) * sizeof(float),
                  .inputs = 1,
                  .outputs = 1,
                  .weights = t.layout};
  return std::make_unique<WinogradPack>(std::move(info), t, std::move(kernels[0]), std::move(kernels[1]));
}

}  // namespace superstep::kernels
