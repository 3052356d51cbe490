#include "superstep/target/cpu/kernels/sequence/attention_products.h"

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"

namespace superstep::kernels {

namespace {

// scores [row][key] = q [row][depth] times a panel of keys [depth][key].
ProductShape score_shape(const AttentionBlocks& b, std::int64_t rows, std::int64_t keys, std::int64_t depth,
                         std::int64_t stride) {
  return {.m = keys, .n = rows, .k = depth, .a_stride = b.stride, .b_n_stride = stride, .c_stride = b.stride};
}

// y [row][width] (+)= weights [row][key] times v [key][width].
ProductShape value_shape(const AttentionBlocks& b, const Attention& a, std::int64_t rows, std::int64_t keys,
                         std::int64_t stride, bool accumulate) {
  return {.m = a.width,
          .n = rows,
          .k = keys,
          .a_stride = stride,
          .b_n_stride = b.stride,
          .c_stride = a.width,
          .accumulate = accumulate};
}

class FloatProducts final : public AttentionProducts {
 public:
  FloatProducts(const Attention& a, const AttentionBlocks& b)
      : b_(b),
        sharing_(a.sharing),
        q_(a.q, a.rows, a.depth),
        v_(a.v, a.keys, a.width),
        keys_(a.k, a, b, a.depth),
        scores_(a, b,
                [&](std::int64_t rows, std::int64_t keys) {
                  return score_shape(b, rows, keys, a.depth, q_.stride());
                }),
        first_(a, b,
               [&](std::int64_t rows, std::int64_t keys) {
                 return value_shape(b, a, rows, keys, v_.stride(), false);
               }),
        later_(a, b, [&](std::int64_t rows, std::int64_t keys) {
          return value_shape(b, a, rows, keys, v_.stride(), true);
        }) {}

  AttentionOperands place(const Arguments& arguments, std::int64_t i, std::int64_t j,
                          Scratch& scratch) const override {
    AttentionOperands o{};
    o.q = q_.place(arguments.inputs[0], i, j, scratch.take(q_.scratch_floats()));
    o.v = v_.place(arguments.inputs[2], i, j / sharing_, scratch.take(v_.scratch_floats()));
    float* const panels = scratch.take(keys_.scratch_floats());
    keys_.pack(arguments.inputs[1], i, j / sharing_, panels);
    o.keys = panels;
    return o;
  }
  void score(const AttentionOperands& o, std::int64_t row_block, std::int64_t key_block,
             float* scores) const override {
    scores_.at(row_block, key_block)(static_cast<const float*>(o.keys) + key_block * keys_.panel_floats(),
                                     static_cast<const float*>(o.q) + row_block * b_.rows * q_.stride(),
                                     scores);
  }
  void weigh(const AttentionOperands& o, std::int64_t row_block, std::int64_t key_block, float* weights,
             float* result) const override {
    const BlockProducts& products = key_block > 0 ? later_ : first_;
    products.at(row_block, key_block)(static_cast<const float*>(o.v) + key_block * b_.keys * v_.stride(),
                                      weights, result);
  }
  std::int64_t scratch_floats() const override {
    return q_.scratch_floats() + v_.scratch_floats() + keys_.scratch_floats() + 3 * 16;
  }
  ElementType type() const override { return ElementType::f32; }

 private:
  AttentionBlocks b_;
  std::int64_t sharing_;
  DenseOperand q_, v_;
  KeyPanels keys_;
  BlockProducts scores_, first_, later_;
};

std::shared_ptr<const Kernel> whole(Prepared kernel) {
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), "an operand of attention");
  return std::move(*kernel);
}

void run(const Kernel& kernel, const void* from, void* to) { kernel.run({{&from, 1}, {&to, 1}, nullptr}); }

const bf16* element(const void* base, const MatrixStrides& s, std::int64_t i, std::int64_t j,
                    std::int64_t row) {
  return static_cast<const bf16*>(base) + i * s.batch[0] + j * s.batch[1] + row * s.row;
}

// A matrix [keys][columns] in pairs for the left side of products, a block of keys at a time, and the last
// block's panels.
class PairPanels {
 public:
  // `along_keys`: pairs of neighbouring keys, for sums over keys; else of neighbouring columns.
  PairPanels(const MatrixStrides& strides, const Attention& a, const AttentionBlocks& b, std::int64_t columns,
             bool along_keys)
      : strides_(strides), keys_(b.keys), blocks_(b.key_blocks) {
    const auto panel = [&](std::int64_t keys) {
      PairPanel p{keys, columns, strides.row, strides.column, ElementType::bf16, PairPanel::Order::panels};
      if (!along_keys) std::swap(p.depth, p.width), std::swap(p.depth_stride, p.width_stride);
      return whole(prepare(p));
    };
    whole_ = panel(b.keys);
    last_ = panel(b.keys_of(a, b.key_blocks - 1));
    elements_ = padded_depth(b.keys) * padded_depth(columns);
  }
  std::int64_t elements() const { return elements_; }  // of a block
  std::int64_t scratch_floats() const { return (blocks_ * elements_ + 1) / 2; }
  void pack(const void* base, std::int64_t i, std::int64_t j, void* to) const {
    for (std::int64_t block = 0; block < blocks_; ++block)
      run(block + 1 == blocks_ ? *last_ : *whole_, element(base, strides_, i, j, block * keys_),
          static_cast<bf16*>(to) + block * elements_);
  }

 private:
  MatrixStrides strides_;
  std::int64_t keys_, blocks_, elements_ = 0;
  std::shared_ptr<const Kernel> whole_, last_;
};

ProductShape pair_shape(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t right_stride,
                        std::int64_t result_stride, bool accumulate) {
  ProductShape s{
      .m = m, .n = n, .k = k, .a_stride = m, .b_n_stride = right_stride, .c_stride = result_stride};
  s.accumulate = accumulate;
  s.type = ElementType::bf16;
  s.pairs = true;
  return s;
}

// Scores are sums of bf16 products in f32; weights are rounded to bf16 once their sums are made.
class PairProducts final : public AttentionProducts {
 public:
  PairProducts(const Attention& a, const AttentionBlocks& b)
      : a_(a),
        b_(b),
        in_place_(a.q.column == 1 && a.q.row % 2 == 0),
        q_stride_(in_place_ ? a.q.row : a.depth),
        weight_stride_(padded_depth(b.keys)),
        keys_(a.k, a, b, a.depth, false),
        values_(a.v, a, b, a.width, true),
        scores_(a, b,
                [&](std::int64_t rows, std::int64_t keys) {
                  return pair_shape(keys, rows, a.depth, q_stride_, b.stride, false);
                }),
        first_(a, b,
               [&](std::int64_t rows, std::int64_t keys) {
                 return pair_shape(a.width, rows, padded_depth(keys), weight_stride_, a.width, false);
               }),
        later_(a, b, [&](std::int64_t rows, std::int64_t keys) {
          return pair_shape(a.width, rows, padded_depth(keys), weight_stride_, a.width, true);
        }) {
    if (!in_place_)
      q_copy_ = whole(prepare(StridedCopy{.extents = {a.rows, a.depth},
                                          .x_strides = {a.q.row, a.q.column},
                                          .y_strides = {a.depth, 1},
                                          .x_type = ElementType::bf16,
                                          .y_type = ElementType::bf16}));
    for (const std::int64_t rows : {b.rows, b.rows_of(a, b.row_blocks - 1)})
      for (const std::int64_t keys : {b.keys, b.keys_of(a, b.key_blocks - 1)})
        rounding_.push_back(whole(prepare(StridedCopy{.extents = {rows, keys},
                                                      .x_strides = {b.stride, 1},
                                                      .y_strides = {weight_stride_, 1},
                                                      .x_type = ElementType::f32,
                                                      .y_type = ElementType::bf16})));
  }

  AttentionOperands place(const Arguments& arguments, std::int64_t i, std::int64_t j,
                          Scratch& scratch) const override {
    AttentionOperands o{};
    o.q = element(arguments.inputs[0], a_.q, i, j, 0);
    if (!in_place_) {
      float* const copy = scratch.take(q_floats());
      run(*q_copy_, o.q, copy);
      o.q = copy;
    }
    o.keys = scratch.take(keys_.scratch_floats());
    keys_.pack(arguments.inputs[1], i, j / a_.sharing, o.keys);
    float* const values = scratch.take(values_.scratch_floats());
    values_.pack(arguments.inputs[2], i, j / a_.sharing, values);
    o.v = values;
    o.weights = scratch.take(weight_floats());
    // The last one of an odd number of keys meets a zero, which nothing else may be multiplied with.
    std::fill_n(static_cast<float*>(o.weights), weight_floats(), 0.0f);
    return o;
  }
  void score(const AttentionOperands& o, std::int64_t row_block, std::int64_t key_block,
             float* scores) const override {
    scores_.at(row_block, key_block)(static_cast<const bf16*>(o.keys) + key_block * keys_.elements(),
                                     static_cast<const bf16*>(o.q) + row_block * b_.rows * q_stride_, scores);
  }
  void weigh(const AttentionOperands& o, std::int64_t row_block, std::int64_t key_block, float* weights,
             float* result) const override {
    const bool last_rows = row_block + 1 == b_.row_blocks, last_keys = key_block + 1 == b_.key_blocks;
    run(*rounding_[2 * static_cast<std::size_t>(last_rows) + static_cast<std::size_t>(last_keys)], weights,
        o.weights);
    const BlockProducts& products = key_block > 0 ? later_ : first_;
    products.at(row_block, key_block)(static_cast<const bf16*>(o.v) + key_block * values_.elements(),
                                      o.weights, result);
  }
  std::int64_t scratch_floats() const override {
    return (in_place_ ? 0 : q_floats()) + keys_.scratch_floats() + values_.scratch_floats() +
           weight_floats() + 4 * 16;
  }
  ElementType type() const override { return ElementType::bf16; }

 private:
  std::int64_t q_floats() const { return a_.rows * a_.depth / 2; }
  std::int64_t weight_floats() const { return b_.rows * weight_stride_ / 2; }

  Attention a_;
  AttentionBlocks b_;
  bool in_place_;
  std::int64_t q_stride_, weight_stride_;
  PairPanels keys_, values_;
  BlockProducts scores_, first_, later_;
  std::shared_ptr<const Kernel> q_copy_;
  std::vector<std::shared_ptr<const Kernel>> rounding_;  // [last rows][last keys]
};

bool multiplies_in_pairs(const Attention& a) {
  if (!multiplies_pairs_fast() || a.depth % 2 != 0) return false;
  const ElementType types[] = {a.q.type, a.k.type, a.v.type};
  return std::ranges::all_of(types, [](ElementType type) { return type == ElementType::bf16; });
}

}  // namespace

std::unique_ptr<const AttentionProducts> attention_products(const Attention& a,
                                                            const AttentionBlocks& blocks) {
  if (multiplies_in_pairs(a)) return std::make_unique<PairProducts>(a, blocks);
  return std::make_unique<FloatProducts>(a, blocks);
}

}  // namespace superstep::kernels
