#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/sequence/attention_parts.h"

namespace superstep::kernels {

namespace {

// A gradient of each attention, summed up in f32: where it lies, or in scratch and copied from there.
class DenseResult {
 public:
  DenseResult(const MatrixStrides& strides, std::int64_t rows, std::int64_t columns)
      : strides_(strides), columns_(columns), floats_(rows * columns) {
    if (strides.type == ElementType::f32 && (strides.column == 1 || columns == 1) && strides.row >= columns)
      return;
    auto copy = prepare(StridedCopy{.extents = {rows, columns},
                                    .x_strides = {columns, 1},
                                    .y_strides = {strides.row, strides.column},
                                    .x_type = ElementType::f32,
                                    .y_type = strides.type});
    if (copy) copy_ = std::move(*copy);
  }

  std::int64_t stride() const { return copy_ ? columns_ : strides_.row; }
  std::int64_t scratch_floats() const { return copy_ ? floats_ : 0; }
  float* place(void* base, std::int64_t i, std::int64_t j, float* scratch) const {
    return copy_ ? scratch : static_cast<float*>(start(base, i, j));
  }
  void store(const float* sums, void* base, std::int64_t i, std::int64_t j) const {
    if (!copy_) return;
    const void* from = sums;
    void* to = start(base, i, j);
    copy_->run({{&from, 1}, {&to, 1}, nullptr});
  }

 private:
  void* start(void* base, std::int64_t i, std::int64_t j) const {
    return static_cast<std::byte*>(base) + (i * strides_.batch[0] + j * strides_.batch[1]) *
                                               static_cast<std::int64_t>(size_in_bytes(strides_.type));
  }

  MatrixStrides strides_;
  std::int64_t columns_, floats_;
  std::shared_ptr<const Kernel> copy_;
};

// The five products of a block. Left operands are contiguous along m, as batch_reduce.h has it.
struct Products {
  BlockProducts scores, d_weights;           // [row][key], from panels of keys and of values
  BlockProducts first_dv, dv, first_dk, dk;  // [key][...] (+)= block^T [key][row] times [row][...]
  BlockProducts first_dq, dq;                // [row][depth] (+)= block [row][key] times k [key][depth]
};

ProductShape panel_shape(const AttentionBlocks& b, std::int64_t rows, std::int64_t keys, std::int64_t depth,
                         std::int64_t stride) {
  return {.m = keys, .n = rows, .k = depth, .a_stride = b.stride, .b_n_stride = stride, .c_stride = b.stride};
}

ProductShape over_rows(const AttentionBlocks& b, std::int64_t rows, std::int64_t keys, std::int64_t columns,
                       std::int64_t from, std::int64_t to, bool accumulate) {
  return {.m = columns,
          .n = keys,
          .k = rows,
          .a_stride = from,
          .b_k_stride = b.stride,
          .b_n_stride = 1,
          .c_stride = to,
          .accumulate = accumulate};
}

ProductShape over_keys(const AttentionBlocks& b, std::int64_t rows, std::int64_t keys, std::int64_t columns,
                       std::int64_t from, std::int64_t to, bool accumulate) {
  return {.m = columns,
          .n = rows,
          .k = keys,
          .a_stride = from,
          .b_n_stride = b.stride,
          .c_stride = to,
          .accumulate = accumulate};
}

KernelInfo describe(const AttentionGradient& g, const AttentionBlocks& b) {
  const Attention& a = g.forward;
  const auto count = static_cast<double>(a.batch[0] * a.batch[1]);
  const auto rows = static_cast<double>(a.rows), keys = static_cast<double>(a.keys);
  const auto depth = static_cast<double>(a.depth), width = static_cast<double>(a.width);
  const auto size = [](const MatrixStrides& s) { return static_cast<double>(size_in_bytes(s.type)); };
  KernelInfo info;
  info.name = fmt::format("attention gradient, blocks of {} x {} scores{}{}", b.rows, b.keys,
                          a.has_bias || a.has_condition ? ", masked" : "", a.keep < 1 ? ", dropout" : "");
  // Scores made again are not counted: they are this kernel's way, not the operation.
  info.flops = 4 * count * rows * keys * (depth + width);
  info.bytes = count * (rows * (depth * (size(a.q) + size(g.dq)) + width * (size(a.y) + size(g.dy))) +
                        keys * (depth * (size(a.k) + size(g.dk)) + width * (size(a.v) + size(g.dv))));
  info.inputs = static_cast<std::size_t>(AttentionSlots(a).next) + 3;
  info.outputs = 3;
  info.parts = a.batch[0] * a.batch[1];
  return info;
}

class AttentionGradientKernel final : public Kernel {
 public:
  AttentionGradientKernel(const AttentionGradient& g, const AttentionBlocks& b)
      : Kernel(describe(g, b)),
        a_(g.forward),
        b_(b),
        q_(a_.q, a_.rows, a_.depth),
        k_(a_.k, a_.keys, a_.depth),
        y_(a_.y, a_.rows, a_.width),
        dy_(g.dy, a_.rows, a_.width),
        dq_(g.dq, a_.rows, a_.depth),
        dk_(g.dk, a_.keys, a_.depth),
        dv_(g.dv, a_.keys, a_.width),
        key_panels_(a_.k, a_, b, a_.depth),
        value_panels_(a_.v, a_, b, a_.width),
        drop_(a_, b),
        loops_(attention_loops()),
        first_input_(static_cast<std::size_t>(AttentionSlots(a_).next)),
        products_(make_products()) {
    const std::int64_t floats =
        q_.scratch_floats() + k_.scratch_floats() + y_.scratch_floats() + dy_.scratch_floats() +
        dq_.scratch_floats() + dk_.scratch_floats() + dv_.scratch_floats() + key_panels_.scratch_floats() +
        value_panels_.scratch_floats() + 2 * b.score_floats() + drop_.scratch_floats() + a_.rows + 16 * 16;
    info_.scratch_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t part = 0; part < info_.parts; ++part) run_part(arguments, part);
  }

  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const std::int64_t i = part / a_.batch[1], j = part % a_.batch[1];
    Scratch scratch(arguments.scratch);
    Work w = place(arguments, i, j, scratch);
    const float* y = y_.place(arguments.inputs[first_input_], i, j, scratch.take(y_.scratch_floats()));
    loops_.row_dots(w.dy, dy_.stride(), y, y_.stride(), a_.rows, a_.width, w.dots);
    for (std::int64_t key = 0; key < b_.key_blocks; ++key)
      for (std::int64_t row = 0; row < b_.row_blocks; ++row) run_block(arguments, w, {i, j, row, key});
    dq_.store(w.dq, arguments.outputs[0], i, j);
    dk_.store(w.dk, arguments.outputs[1], i, j);
    dv_.store(w.dv, arguments.outputs[2], i, j);
  }

 private:
  struct Work {
    const float *q, *k, *dy, *maximum, *inverse;
    float *dq, *dk, *dv, *key_panels, *value_panels, *scores, *d_weights, *dropped, *dots;
  };

  Products make_products() const {
    const auto over = [&](auto shape) {
      return BlockProducts(a_, b_, [&](std::int64_t rows, std::int64_t keys) { return shape(rows, keys); });
    };
    using N = std::int64_t;
    const auto dv = [&](bool accumulate) {
      return over([&, accumulate](N rows, N keys) {
        return over_rows(b_, rows, keys, a_.width, dy_.stride(), dv_.stride(), accumulate);
      });
    };
    const auto dk = [&](bool accumulate) {
      return over([&, accumulate](N rows, N keys) {
        return over_rows(b_, rows, keys, a_.depth, q_.stride(), dk_.stride(), accumulate);
      });
    };
    const auto dq = [&](bool accumulate) {
      return over([&, accumulate](N rows, N keys) {
        return over_keys(b_, rows, keys, a_.depth, k_.stride(), dq_.stride(), accumulate);
      });
    };
    return {over([&](N rows, N keys) { return panel_shape(b_, rows, keys, a_.depth, q_.stride()); }),
            over([&](N rows, N keys) { return panel_shape(b_, rows, keys, a_.width, dy_.stride()); }),
            dv(false),
            dv(true),
            dk(false),
            dk(true),
            dq(false),
            dq(true)};
  }

  Work place(const Arguments& arguments, std::int64_t i, std::int64_t j, Scratch& scratch) const {
    Work w{};
    w.q = q_.place(arguments.inputs[0], i, j, scratch.take(q_.scratch_floats()));
    w.k = k_.place(arguments.inputs[1], i, j, scratch.take(k_.scratch_floats()));
    w.dy = dy_.place(arguments.inputs[first_input_ + 2], i, j, scratch.take(dy_.scratch_floats()));
    w.maximum =
        static_cast<const float*>(arguments.inputs[first_input_ + 1]) + (i * a_.batch[1] + j) * 2 * a_.rows;
    w.inverse = w.maximum + a_.rows;
    w.dq = dq_.place(arguments.outputs[0], i, j, scratch.take(dq_.scratch_floats()));
    w.dk = dk_.place(arguments.outputs[1], i, j, scratch.take(dk_.scratch_floats()));
    w.dv = dv_.place(arguments.outputs[2], i, j, scratch.take(dv_.scratch_floats()));
    w.key_panels = scratch.take(key_panels_.scratch_floats());
    w.value_panels = scratch.take(value_panels_.scratch_floats());
    key_panels_.pack(arguments.inputs[1], i, j, w.key_panels);
    value_panels_.pack(arguments.inputs[2], i, j, w.value_panels);
    w.scores = scratch.take(b_.score_floats());
    w.d_weights = scratch.take(b_.score_floats());
    w.dropped = scratch.take(drop_.scratch_floats());
    w.dots = scratch.take(a_.rows);
    return w;
  }

  void run_block(const Arguments& arguments, const Work& w, std::array<std::int64_t, 4> at) const {
    const std::int64_t row = at[2], key = at[3], first_row = row * b_.rows, first_key = key * b_.keys;
    const float *q = w.q + first_row * q_.stride(), *dy = w.dy + first_row * dy_.stride();
    products_.scores.at(row, key)(w.key_panels + key * key_panels_.panel_floats(), q, w.scores);
    products_.d_weights.at(row, key)(w.value_panels + key * value_panels_.panel_floats(), dy, w.d_weights);
    const ScoreBlock block = score_block(a_, b_, arguments, at, w.scores);
    loops_.finish_scores(block, nullptr);
    loops_.gradient(block, w.d_weights, drop_.make(arguments, at, w.dropped), w.maximum + first_row,
                    w.inverse + first_row, w.dots + first_row);
    const Products& p = products_;
    (row > 0 ? p.dv : p.first_dv).at(row, key)(dy, w.scores, w.dv + first_key * dv_.stride());
    (row > 0 ? p.dk : p.first_dk).at(row, key)(q, w.d_weights, w.dk + first_key * dk_.stride());
    (key > 0 ? p.dq : p.first_dq)
        .at(row, key)(w.k + first_key * k_.stride(), w.d_weights, w.dq + first_row * dq_.stride());
  }

  Attention a_;
  AttentionBlocks b_;
  DenseOperand q_, k_, y_, dy_;
  DenseResult dq_, dk_, dv_;
  KeyPanels key_panels_, value_panels_;
  DropMask drop_;
  AttentionLoops loops_;
  std::size_t first_input_;  // the slot of y
  Products products_;
};

}  // namespace

Prepared prepare_attention_gradient(const AttentionGradient& gradient) {
  if (gradient.forward.sharing > 1) return refuse("attention gradient", "keys are shared");
  if (std::string fault = fault_of(gradient.forward); !fault.empty())
    return refuse("attention gradient", fault);
  for (const MatrixStrides* s : {&gradient.dy, &gradient.dq, &gradient.dk, &gradient.dv})
    if (s->type != ElementType::f32 && s->type != ElementType::bf16)
      return refuse("attention gradient", fmt::format("no gradient in {}", name_of(s->type)));
  return std::make_unique<AttentionGradientKernel>(gradient, choose_blocks(gradient.forward));
}

}  // namespace superstep::kernels
