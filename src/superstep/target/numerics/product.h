// Products of a node as products of matrices whose panels are gathered as they are needed, and the loop over
// them in the arithmetic of a machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/base/thread_pool.h"
#include "superstep/graph/graph.h"
#include "superstep/numerics/arithmetic.h"

namespace superstep::target::numerics {

// A part of a matrix: rows of `pitch` elements.
struct Panel {
  const float* values;
  std::int64_t pitch;
};

// result[group](row, column) = sum over k of a[group](row, k) b[group](k, column).
class Product {
 public:
  virtual ~Product() = default;
  std::int64_t groups = 1, rows = 1, columns = 1, k = 1;

  // The operands of a run, rounded to their type.
  virtual void begin(const float* a, const float* b) = 0;
  // Rows [row, row + rows) and products [k, k + kc), which lie in the operand or in `buffer`.
  virtual Panel left(std::int64_t group, std::int64_t row, std::int64_t row_count, std::int64_t first,
                     std::int64_t count, float* buffer) const = 0;
  // Products [first, first + count) of columns [column, column + columns), written to `buffer` with rows of
  // `pitch`; columns up to the pitch are zeroed, and up to `slack` elements behind the last row are written.
  static constexpr std::int64_t slack = 16;
  virtual void right(std::int64_t group, std::int64_t first, std::int64_t count, std::int64_t column,
                     std::int64_t column_count, float* buffer, std::int64_t pitch) const = 0;
  // Where the results of neighbouring columns lie: so many from `column` on, at this place, one after the
  // other.
  struct Run {
    std::int64_t place, count;
  };
  virtual Run results(std::int64_t group, std::int64_t row, std::int64_t column) const = 0;

  // What is added to all results of a row, or to one of a place; null, or that of no bias.
  std::int64_t bias_row_stride = 0;  // bias[group * rows * stride + row * stride], or
  bool bias_by_place = false;        // bias[place]
  float alpha = 1;                   // of the products
};

// The operands' places among the node's inputs: a product may take input 1 as its left operand.
struct Emulated {
  std::unique_ptr<Product> product;
  int left = 0, right = 1, bias = -1;  // inputs; left -1: ones (a sum); bias -1: none
};

// How the node is products, or sums: null where it is neither, and for kinds that are not emulated.
Emulated emulated(const graph::Graph& graph, const graph::Node& node);

// What is to be computed, by node number `node` (the streams of random words are node * streams + 0 ...).
struct ProductRun {
  const superstep::numerics::Arithmetic* arithmetic;
  std::uint32_t stream;
  std::uint64_t key;
  const float* bias = nullptr;
  float* result;
};
inline constexpr std::uint32_t streams_of_a_node = 8;
enum class Stream : std::uint32_t { sums, left, right, before_bias, result };

void run_product(const Product& product, const ProductRun& run, ThreadPool& pool);
// Elements rounded, shared by the threads.
void run_narrowing(const float* from, float* to, std::int64_t n, const superstep::numerics::Narrowing& how,
                   std::uint32_t stream, std::uint64_t key, ThreadPool& pool);

}  // namespace superstep::target::numerics
