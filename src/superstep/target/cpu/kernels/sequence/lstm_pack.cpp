#include "superstep/target/cpu/kernels/sequence/lstm_pack.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"

namespace superstep::kernels {

namespace {

using Use = LstmWeights::Use;

// [direction][gate][unit][column] as [direction][panel][column][gate][16].
StridedCopy forward_order(const LstmWeights& w) {
  const std::int64_t all = 4 * w.hidden * w.columns;
  return {.extents = {w.directions, w.hidden / lstm_panel, w.columns, 4, lstm_panel},
          .x_strides = {all, lstm_panel * w.columns, 1, w.hidden * w.columns, w.columns},
          .y_strides = {all, 4 * lstm_panel * w.columns, 4 * lstm_panel, lstm_panel, 1}};
}

// The same as [direction][panel][gate][16][column].
StridedCopy gradient_order(const LstmWeights& w) {
  const std::int64_t all = 4 * w.hidden * w.columns, panel = lstm_panel * w.columns;
  return {.extents = {w.directions, w.hidden / lstm_panel, 4, panel},
          .x_strides = {all, panel, w.hidden * w.columns, 1},
          .y_strides = {all, 4 * panel, panel, 1}};
}

// Blocks of pairs: each [depth][width], in one of the orders above.
struct PairBlocks {
  std::int64_t count = 1, depth = 1, width = 1;
  std::int64_t row_stride = 1;    // of the ordered weights
  std::int64_t inner = 1;         // blocks that lie `width` apart
  std::int64_t outer_stride = 0;  // between groups of those
  std::int64_t source(std::int64_t i) const { return i / inner * outer_stride + i % inner * width; }
  std::int64_t packed(std::int64_t i) const { return i * padded_depth(depth) * width; }
};

PairBlocks blocks_of(const LstmWeights& w) {
  const std::int64_t width = 4 * lstm_panel, panels = w.hidden / lstm_panel;
  if (w.use == Use::forward) return {w.directions * panels, w.columns, width, width, 1, w.columns * width};
  const std::int64_t panel = lstm_gradient_panel(w.columns);
  return {w.directions * (w.columns / panel),
          4 * w.hidden,
          panel,
          w.columns,
          w.columns / panel,
          4 * w.hidden * w.columns};
}

// Ordered in f32 first, then rounded into pairs.
class PairWeights final : public Kernel {
 public:
  PairWeights(KernelInfo info, const PairBlocks& blocks, KernelPointer order, KernelPointer pairs)
      : Kernel(std::move(info)), blocks_(blocks), order_(std::move(order)), pairs_(std::move(pairs)) {}

  void run(const Arguments& arguments) const override {
    auto* ordered = static_cast<float*>(arguments.scratch);
    apply(*order_, arguments.inputs[0], ordered);
    for (std::int64_t i = 0; i < blocks_.count; ++i)
      apply(*pairs_, ordered + blocks_.source(i),
            static_cast<bf16*>(arguments.outputs[0]) + blocks_.packed(i));
  }

 private:
  static void apply(const Kernel& kernel, const void* from, void* to) {
    kernel.run({{&from, 1}, {&to, 1}, nullptr});
  }

  PairBlocks blocks_;
  KernelPointer order_, pairs_;
};

Prepared prepare_pairs(const LstmWeights& w, const StridedCopy& order) {
  const PairBlocks blocks = blocks_of(w);
  Prepared ordered = prepare(order);
  if (!ordered) return ordered;
  Prepared pairs = prepare(PairPanel{.depth = blocks.depth,
                                     .width = blocks.width,
                                     .depth_stride = blocks.row_stride,
                                     .width_stride = 1,
                                     .type = ElementType::f32});
  if (!pairs) return pairs;
  const auto stored = static_cast<std::size_t>(4 * w.directions * w.hidden * w.columns) * sizeof(float);
  const std::size_t packed = packed_bytes(w) * static_cast<std::size_t>(w.directions);
  KernelInfo info{.name = fmt::format("pack weights, {} panels of pairs", blocks.count),
                  .bytes = static_cast<double>(stored + packed),
                  .scratch_bytes = stored,
                  .inputs = 1,
                  .outputs = 1};
  return std::make_unique<PairWeights>(std::move(info), blocks, std::move(*ordered), std::move(*pairs));
}

}  // namespace

bool multiplies_pairs() { return multiplies_pairs_fast(); }

std::int64_t lstm_gradient_panel(std::int64_t hidden) {
  for (std::int64_t width : {64, 48, 32})
    if (hidden % width == 0) return width;
  return lstm_panel;
}

std::size_t packed_bytes(const LstmWeights& w) {
  const std::int64_t rows = 4 * w.hidden;
  if (!w.narrow) return static_cast<std::size_t>(rows * w.columns) * sizeof(float);
  const std::int64_t columns = w.use == Use::forward ? padded_depth(w.columns) : w.columns;
  return static_cast<std::size_t>(rows * columns) * sizeof(bf16);
}

Prepared prepare_lstm_pack(const LstmWeights& w) {
  StridedCopy order = w.use == Use::forward ? forward_order(w) : gradient_order(w);
  if (w.narrow && w.use != Use::gradient_w) return prepare_pairs(w, order);
  if (w.narrow) order.y_type = ElementType::bf16;
  return prepare(order);
}

NarrowRows::NarrowRows(std::int64_t batch, std::int64_t length, std::int64_t step, std::int64_t sample)
    : batch_(batch), length_(padded_depth(length)), step_(step) {
  Prepared kernel = prepare(PairPanel{.depth = length,
                                      .width = batch,
                                      .depth_stride = 1,
                                      .width_stride = batch == 1 ? length : sample,
                                      .type = ElementType::f32,
                                      .order = PairPanel::Order::columns});
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "rows of a sequence");
  one_step_ = std::move(*kernel);
}

std::size_t NarrowRows::bytes(std::int64_t steps) const {
  return (static_cast<std::size_t>(steps * batch_ * length_) * sizeof(bf16) + 63) / 64 * 64;
}

void NarrowRows::convert(const float* from, std::int64_t first_step, std::int64_t steps, bf16* to) const {
  for (std::int64_t i = 0; i < steps; ++i) {
    const void* source = from + (first_step + i) * step_;
    void* rows = to + i * batch_ * length_;
    one_step_->run({{&source, 1}, {&rows, 1}, nullptr});
  }
}

}  // namespace superstep::kernels
