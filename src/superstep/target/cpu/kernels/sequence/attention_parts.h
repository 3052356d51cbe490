// What attention and its gradient are made of. Internal to the kernels.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "superstep/target/cpu/kernels/elementwise/random_mask_loops.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "superstep/target/cpu/kernels/sequence/attention.h"
#include "superstep/target/cpu/kernels/sequence/attention_loops.h"

namespace superstep::kernels {

// Blocks of scores that stay in the caches.
struct AttentionBlocks {
  std::int64_t rows, keys;              // of a block; the last ones may be smaller
  std::int64_t row_blocks, key_blocks;  // of one attention
  std::int64_t stride;                  // between rows of a block of scores, and of a panel of keys

  std::int64_t rows_of(const Attention& a, std::int64_t block) const {
    return std::min(rows, a.rows - block * rows);
  }
  std::int64_t keys_of(const Attention& a, std::int64_t block) const {
    return std::min(keys, a.keys - block * keys);
  }
  std::int64_t score_floats() const { return rows * stride; }
};
AttentionBlocks choose_blocks(const Attention& attention);

// A matrix of each attention as f32 with contiguous rows: where it lies, or copied into scratch.
class DenseOperand {
 public:
  DenseOperand(const MatrixStrides& strides, std::int64_t rows, std::int64_t columns);
  const float* place(const void* base, std::int64_t i, std::int64_t j, float* scratch) const;
  std::int64_t stride() const { return copy_ ? columns_ : strides_.row; }
  std::int64_t scratch_floats() const { return copy_ ? (rows_ * columns_ + 15) / 16 * 16 : 0; }

 private:
  MatrixStrides strides_;
  std::int64_t rows_, columns_;
  std::shared_ptr<const Kernel> copy_;
};

// A matrix [keys][depth] turned round, a block of keys at a time: [block][depth][stride].
class KeyPanels {
 public:
  KeyPanels(const MatrixStrides& strides, const Attention& attention, const AttentionBlocks& blocks,
            std::int64_t depth);
  void pack(const void* base, std::int64_t i, std::int64_t j, float* panels) const;
  std::int64_t panel_floats() const { return panel_floats_; }
  std::int64_t scratch_floats() const { return blocks_.key_blocks * panel_floats_; }

 private:
  MatrixStrides strides_;
  AttentionBlocks blocks_;
  std::int64_t panel_floats_;
  std::shared_ptr<const Kernel> whole_, last_;
};

// One product for every combination of whole and last blocks.
class BlockProducts {
 public:
  // `shape(rows, keys)`: the product over a block of that size.
  BlockProducts(const Attention& attention, const AttentionBlocks& blocks,
                const std::function<ProductShape(std::int64_t rows, std::int64_t keys)>& shape);
  const BatchReduceProduct& at(std::int64_t row_block, std::int64_t key_block) const {
    return products_[row_block + 1 == row_blocks_][key_block + 1 == key_blocks_];
  }

 private:
  std::int64_t row_blocks_, key_blocks_;
  std::vector<std::vector<BatchReduceProduct>> products_;
};

// What the input slots behind q, k and v hold.
struct AttentionSlots {
  explicit AttentionSlots(const Attention& attention);
  int bias = -1, condition = -1, address = -1;
  int next = 3;
};

// The block's scores as the loops want them; `scores` holds products.
ScoreBlock score_block(const Attention& attention, const AttentionBlocks& blocks, const Arguments& arguments,
                       std::array<std::int64_t, 4> at, float* scores);  // batch 0, batch 1, row and key block

// The drop factors of one block, rows `blocks.stride` apart.
class DropMask {
 public:
  DropMask(const Attention& attention, const AttentionBlocks& blocks);
  bool drops() const { return attention_.keep < 1; }
  const float* make(const Arguments& arguments, std::array<std::int64_t, 4> at, float* dropped) const;
  std::int64_t scratch_floats() const { return drops() ? blocks_.score_floats() : 0; }

 private:
  Attention attention_;
  AttentionBlocks blocks_;
  AttentionSlots slots_;
  MaskLoop* loop_;
};

// Walks through scratch memory.
class Scratch {
 public:
  explicit Scratch(void* base) : next_(static_cast<float*>(base)) {}
  float* take(std::int64_t floats) {
    float* result = next_;
    next_ += (floats + 15) / 16 * 16;
    return result;
  }

 private:
  float* next_;
};

}  // namespace superstep::kernels
