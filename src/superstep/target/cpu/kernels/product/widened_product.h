// Products of bf16 pairs multiplied in f32, for the shapes of batch_reduce.h. Internal to the kernels.
//
// Where pairs have no instruction, or one that takes longer than f32's, they are multiplied as f32: some of
// the summed dimension at a time, both operands are widened into the caches of the core, and generated code
// for f32 multiplies them there. What is read from memory stays bf16. Products of two bf16 are exact in f32;
// sums are f32, in another order than those of pairs.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "superstep/target/cpu/kernels/product/product_shape.h"

namespace superstep::kernels {

class BatchReduceProduct;

// Are pairs of this shape multiplied in f32 under the set in force? Not over few columns: widening A would
// take longer than the product.
bool widens(const ProductShape& shape);

// The loops that widen: A's pairs to rows [k][m] of f32, B's columns to columns [n][k].
struct WideningLoops {
  void (*rows)(const std::uint32_t* pairs, std::int64_t stride, std::int64_t m, std::int64_t k, float* to);
  void (*columns)(const bf16* from, std::int64_t stride, std::int64_t n, std::int64_t k, float* to);
};
// For the instruction set in force.
WideningLoops widening_loops();

class WidenedProduct {
 public:
  // Of a shape that widens. The reason where no code is made for it.
  static std::expected<std::shared_ptr<const WidenedProduct>, std::string> prepare(const ProductShape& shape);

  // As BatchReduceProduct.
  void operator()(const void* a, const void* b, float* c, std::uint64_t count, const std::uint64_t* a_offsets,
                  const std::uint64_t* b_offsets) const;

 private:
  // Part of the sum: some of one product's depth, or the whole depth of several products.
  struct Piece {
    const std::uint64_t *a_offsets, *b_offsets;
    std::uint64_t count;
    std::int64_t first, depth;  // of the summed dimension
    bool later;                 // adds to the sums of those before
  };

  explicit WidenedProduct(const ProductShape& shape);
  std::string make_products();
  void add(const Piece& piece, const std::byte* a, const std::byte* b, float* c) const;

  ProductShape s_;
  WideningLoops loops_;
  std::int64_t depth_, columns_;              // of a block
  std::uint64_t together_;                    // products whose whole depth is a block
  std::vector<BatchReduceProduct> products_;  // [fewer columns][less depth][later]
};

}  // namespace superstep::kernels
