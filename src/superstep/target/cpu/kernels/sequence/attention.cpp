#include "superstep/target/cpu/kernels/sequence/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/sequence/attention_parts.h"
#include "superstep/target/cpu/kernels/sequence/attention_products.h"

namespace superstep::kernels {

namespace {

KernelInfo describe(const Attention& a, const AttentionBlocks& b) {
  const auto count = static_cast<double>(a.batch[0] * a.batch[1]);
  const auto rows = static_cast<double>(a.rows), keys = static_cast<double>(a.keys);
  const auto depth = static_cast<double>(a.depth), width = static_cast<double>(a.width);
  const auto size = [](const MatrixStrides& s) { return static_cast<double>(size_in_bytes(s.type)); };
  KernelInfo info;
  info.name = fmt::format("attention, blocks of {} x {} scores{}{}", b.rows, b.keys,
                          a.has_bias || a.has_condition ? ", masked" : "", a.keep < 1 ? ", dropout" : "");
  info.flops = 2 * count * rows * keys * (depth + width);
  info.bytes = count * (rows * (depth * size(a.q) + width * size(a.y)) +
                        keys * (depth * size(a.k) + width * size(a.v)));
  info.inputs = static_cast<std::size_t>(AttentionSlots(a).next);
  info.outputs = 2;
  return info;
}

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Attention& a, const AttentionBlocks& b)
      : Kernel(describe(a, b)),
        a_(a),
        b_(b),
        products_(attention_products(a, b)),
        drop_(a, b),
        loops_(attention_loops()) {
    info_.arithmetic = products_->type();
    const std::int64_t attentions = a.batch[0] * a.batch[1];
    stretches_ = std::clamp<std::int64_t>(most_parts / attentions, 1, b.row_blocks);
    info_.parts = attentions * stretches_;
    const std::int64_t floats = products_->scratch_floats() + b.score_floats() + drop_.scratch_floats() +
                                b.rows * (a.width + 3) + 8 * 16;
    info_.scratch_bytes = static_cast<std::size_t>(floats) * sizeof(float);
    for (std::int64_t rows : {b.rows, b.rows_of(a, b.row_blocks - 1)}) {
      auto copy = prepare(StridedCopy{.extents = {rows, a.width},
                                      .x_strides = {a.width, 1},
                                      .y_strides = {a.y.row, a.y.column},
                                      .x_type = ElementType::f32,
                                      .y_type = a.y.type});
      if (copy) stores_.push_back(std::move(*copy));
    }
  }

  bool complete() const { return stores_.size() == 2; }

  void run(const Arguments& arguments) const override {
    for (std::int64_t attention = 0; attention < a_.batch[0] * a_.batch[1]; ++attention)
      run_rows(arguments, attention, {0, b_.row_blocks});
  }

  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part / stretches_, part_range(b_.row_blocks, part % stretches_, stretches_));
  }

 private:
  struct Work {
    AttentionOperands operands;
    float *scores, *dropped, *result;
    RowState state;
  };

  void run_rows(const Arguments& arguments, std::int64_t attention, PartRange blocks) const {
    const std::int64_t i = attention / a_.batch[1], j = attention % a_.batch[1];
    Scratch scratch(arguments.scratch);
    Work w{};
    w.operands = products_->place(arguments, i, j, scratch);
    w.scores = scratch.take(b_.score_floats());
    w.dropped = scratch.take(drop_.scratch_floats());
    w.result = scratch.take(b_.rows * a_.width);
    w.state = {scratch.take(b_.rows), scratch.take(b_.rows), scratch.take(b_.rows)};
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      sum_up(arguments, w, i, j, block);
      finish(arguments, w, i, j, block);
    }
  }

  void sum_up(const Arguments& arguments, const Work& w, std::int64_t i, std::int64_t j,
              std::int64_t block) const {
    const std::int64_t rows = b_.rows_of(a_, block);
    std::fill_n(w.state.maximum, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(w.state.sum, rows, 0.0f);
    for (std::int64_t key = 0; key < b_.key_blocks; ++key) {
      products_->score(w.operands, block, key, w.scores);
      const ScoreBlock scores = score_block(a_, b_, arguments, {i, j, block, key}, w.scores);
      loops_.finish_scores(scores, &w.state);
      loops_.exponentials(scores, w.state, drop_.make(arguments, {i, j, block, key}, w.dropped));
      if (key > 0) loops_.scale_rows(w.result, a_.width, rows, a_.width, w.state.correction);
      products_->weigh(w.operands, block, key, w.scores, w.result);
    }
  }

  // A sum of exponentials is above 0 where softmax is a number.
  void clear_rows_without_sum(const Work& w, std::int64_t rows) const {
    for (std::int64_t row = 0; row < rows; ++row)
      if (!(w.state.sum[row] > 0)) std::fill_n(w.result + row * a_.width, a_.width, 0.0f);
  }

  // Divided by the sums, and stored.
  void finish(const Arguments& arguments, const Work& w, std::int64_t i, std::int64_t j,
              std::int64_t block) const {
    const std::int64_t rows = b_.rows_of(a_, block), first = block * b_.rows;
    float* inverse = w.state.correction;
    for (std::int64_t row = 0; row < rows; ++row) inverse[row] = 1 / w.state.sum[row];
    loops_.scale_rows(w.result, a_.width, rows, a_.width, inverse);
    if (a_.nan_to_zero) clear_rows_without_sum(w, rows);
    const void* from = w.result;
    void* to = static_cast<std::byte*>(arguments.outputs[0]) +
               (i * a_.y.batch[0] + j * a_.y.batch[1] + first * a_.y.row) *
                   static_cast<std::int64_t>(size_in_bytes(a_.y.type));
    stores_[block + 1 == b_.row_blocks]->run({{&from, 1}, {&to, 1}, nullptr});
    float* statistics = static_cast<float*>(arguments.outputs[1]) + (i * a_.batch[1] + j) * 2 * a_.rows;
    std::copy_n(w.state.maximum, rows, statistics + first);
    std::copy_n(inverse, rows, statistics + a_.rows + first);
  }

  Attention a_;
  AttentionBlocks b_;
  std::unique_ptr<const AttentionProducts> products_;
  DropMask drop_;
  AttentionLoops loops_;
  std::vector<KernelPointer> stores_;  // of whole blocks of rows and of the last one
  std::int64_t stretches_ = 1;         // parts that the rows of one attention are divided into
};

}  // namespace

Prepared prepare_attention(const Attention& attention) {
  if (std::string fault = fault_of(attention); !fault.empty()) return refuse("attention", fault);
  auto kernel = std::make_unique<AttentionKernel>(attention, choose_blocks(attention));
  if (!kernel->complete()) return refuse("attention", "the result cannot be stored");
  return kernel;
}

}  // namespace superstep::kernels
