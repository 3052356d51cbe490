// Tables that drive a weight gradient as batch-reduce products of dy and shifted x. Internal to the kernels.
#pragma once

#include <algorithm>
#include <expected>
#include <string>
#include <vector>

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"

namespace superstep::kernels {

// One batch-reduce product: tap by panel.
struct GradientCall {
  std::size_t product, offsets;  // offsets: which table of positions
  std::int64_t tap_d, tap_h;
  std::int64_t positions;          // entries a row takes in the table
  std::int64_t dy_start, x_start;  // elements, in row 0 of the window
  std::int64_t dw_start;           // elements, within the group
  TapRange planes, rows;           // of the output, that the tap reaches; rows of a plane
};

// Offsets of the operands for consecutive (plane, row, position): bytes.
struct OffsetTable {
  std::vector<std::uint64_t> dy, x;
};

struct GradientTables {
  bool out_inner;  // dw's contiguous dimension is the output channel
  bool paired;     // bf16 pairs: the operands are packed, row by row, into the images below
  Image dy, x;     // as the products see them
  std::vector<GradientCall> calls;
  std::vector<BatchReduceProduct> products;
  std::vector<OffsetTable> offsets;
  std::int64_t chunk_planes = 1, chunk_rows = 1;  // several planes: all rows of each
  std::int64_t group_elements = 0;                // of dw
};

std::expected<GradientTables, std::string> make_gradient_tables(const Convolution& convolution,
                                                                ProductMaker maker);

// Output planes and, of each, the rows that are summed before the next ones come.
struct Chunk {
  TapRange planes, rows;
};

// body(chunk) for the whole output, in order.
template <class Body>
void for_each_chunk(const Image& y, const GradientTables& t, const Body& body) {
  for (std::int64_t plane = 0; plane < y.planes; plane += t.chunk_planes)
    for (std::int64_t row = 0; row < y.rows(); row += t.chunk_rows)
      body(Chunk{{plane, std::min(plane + t.chunk_planes, y.planes)},
                 {row, std::min(row + t.chunk_rows, y.rows())}});
}

}  // namespace superstep::kernels
