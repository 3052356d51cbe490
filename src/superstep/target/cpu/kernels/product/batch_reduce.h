// The workhorse under convolutions and products: a sum of products of small matrices,
//   C [+]= sum over i of A_i * B_i,   A_i: m x k with m contiguous, B_i: k x n, C: m x n with m contiguous,
// where A_i and B_i are found by byte offsets from two base pointers (a "batch-reduce" product: Georganas et
// al., "High-performance deep learning via a single building block", arXiv:1906.06440). Internal to the
// kernels.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "superstep/target/cpu/kernels/product/matrix_tiles.h"
#include "superstep/target/cpu/kernels/product/product_shape.h"
#include "superstep/target/cpu/kernels/product/widened_product.h"

namespace superstep::kernels {

// What makes the product.
enum class ProductMaker {
  libxsmm,   // machine code made for the shape, or matrix registers where there are some and it is large
             // enough; pairs that are slow are multiplied in f32 (widened_product.h)
  portable,  // our own loops, any strides
  dot,       // our own loops along k, for m up to 8: A is stored [m][k] and a_stride lies between its rows
};

class BatchReduceProduct {
 public:
  // The reason when `maker` cannot serve the shape on the instruction set in force.
  static std::expected<BatchReduceProduct, std::string> prepare(const ProductShape& shape,
                                                                ProductMaker maker);

  // `count` products; offsets in bytes.
  void operator()(const void* a, const void* b, float* c, std::uint64_t count, const std::uint64_t* a_offsets,
                  const std::uint64_t* b_offsets) const {
    if (tiles_)
      (*tiles_)(a, b, c, count, a_offsets, b_offsets);
    else if (widened_)
      (*widened_)(a, b, c, count, a_offsets, b_offsets);
    else if (pieces_ && static_cast<std::int64_t>(count) > pieces_->most_together)
      run_in_pieces(a, b, c, count, a_offsets, b_offsets);
    else if (generated_)
      generated_(a, b, c, &count, a_offsets, b_offsets);
    else
      portable_(shape_, a, b, c, count, a_offsets, b_offsets);
  }
  // One product.
  void operator()(const void* a, const void* b, float* c) const {
    const std::uint64_t zero = 0;
    (*this)(a, b, c, 1, &zero, &zero);
  }

 private:
  using Generated = void (*)(const void*, const void*, float*, const std::uint64_t*, const std::uint64_t*,
                             const std::uint64_t*);
  using Portable = void (*)(const ProductShape&, const void*, const void*, float*, std::uint64_t,
                            const std::uint64_t*, const std::uint64_t*);
  // Generated code goes over the columns of B a few at a time and over all of A for each few: with vectors of
  // 8 it waits for A where that is not in the first-level cache. Then the sum is made piece by piece of k.
  struct Pieces {
    Generated first, later, first_rest, later_rest;  // `first` begins the sum, `later` adds to it
    std::int64_t whole;                              // pieces of full depth; a shorter one follows where
    bool rest;                                       // there is a rest
    std::int64_t a_step, b_step;                     // bytes between pieces
    std::int64_t most_together;                      // products whose A fit together: made at once
  };
  std::string cut(const ProductShape& shape);
  void run_in_pieces(const void* a, const void* b, float* c, std::uint64_t count,
                     const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) const;

  std::shared_ptr<const MatrixTileProduct> tiles_;
  std::shared_ptr<const WidenedProduct> widened_;
  std::shared_ptr<const Pieces> pieces_;
  Generated generated_ = nullptr;
  Portable portable_ = nullptr;
  ProductShape shape_;
};

const char* name_of(ProductMaker maker);

}  // namespace superstep::kernels
