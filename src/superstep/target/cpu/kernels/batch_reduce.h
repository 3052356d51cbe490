// The workhorse under convolutions and products: a sum of products of small matrices,
//   C [+]= sum over i of A_i * B_i,   A_i: m x k with m contiguous, B_i: k x n, C: m x n with m contiguous,
// where A_i and B_i are found by byte offsets from two base pointers (a "batch-reduce" product: Georganas et
// al., "High-performance deep learning via a single building block", arXiv:1906.06440). Internal to the
// kernels.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_stride = 1;                    // between columns of A (k to k + 1)
  std::int64_t b_k_stride = 1, b_n_stride = 1;  // of B
  std::int64_t c_stride = 1;                    // between columns of C
  bool accumulate = false;                      // C += ...
  // bf16 A is stored in pairs, [k/2][m][2] with a_stride pairs a row of [m][2], when `pairs` is set; B then
  // has k contiguous, or is in pairs too (`b_pairs`, portable alone): [k/2][n][2], its strides counting
  // pairs. C is f32. u8: the type of B; A is i8 in quads, [k/4][m][4] with a_stride quads a row of [m][4]; k
  // is a multiple of 4 and contiguous in B; C is i32, behind the float pointers of a call.
  ElementType type = ElementType::f32;
  bool pairs = false, b_pairs = false;
  std::int64_t a_ahead = 0;  // dot alone: so many elements behind what is read of A lies what is read next
};

// What makes the product.
enum class ProductMaker {
  libxsmm,   // machine code made for the shape
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
    if (generated_)
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
  Generated generated_ = nullptr;
  Portable portable_ = nullptr;
  ProductShape shape_;
};

const char* name_of(ProductMaker maker);

}  // namespace superstep::kernels
