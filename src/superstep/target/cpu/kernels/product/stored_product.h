// Dense layers over few rows whose weights are read where the model stores them. In training weights are new
// every step: over few rows packing them ahead, through memory, takes as long as the product itself.
//
//   y[row][o] = sum over i of x[row][i] * w(i, o),  then the epilogue
//
// Floor: 4 * in * out bytes of weights from memory, or 2 * rows * in * out operations. A core that reads
// 59 GB/s and does 321 GFLOP/s is bound by memory below some 11 rows.
#pragma once

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Slots: inputs x, weights (f32, dense), epilogue operands...; outputs y, epilogue outputs...
// Nothing may overlap: sums lie in y before the epilogue reads its operands.
struct StoredProduct {
  // How x lies in memory:
  //   rows     f32 [rows][in], x_stride elements between rows
  //   columns  f32 [in][rows], dense: what many rows are multiplied with where the weights lie [out][in]
  //   narrow   bf16 [rows][in], x_stride between rows, both even: weights are rounded to bf16, a panel at a
  //            time in the cache
  enum class Source : std::uint8_t { rows, columns, narrow };

  std::int64_t rows = 1, in = 1, out = 1;
  bool out_in = false;  // weights lie [out][in], else [in][out]
  Source source = Source::rows;
  std::int64_t x_stride = 1, y_stride = 1;
  ElementType y_type = ElementType::f32;  // f32 or bf16
  Epilogue epilogue;                      // sees y as `rows` columns of `out` channels
};

// The source that suits so many rows of x and this order of the weights best.
StoredProduct::Source best_source(std::int64_t rows, bool out_in, ElementType x_type);

const ImplementationList<StoredProduct>& stored_product();

std::string fault_of(const StoredProduct& product);

}  // namespace superstep::kernels
