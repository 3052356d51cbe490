#include <algorithm>
#include <vector>

#include "superstep/target/cpu/kernels/numerics/narrowing_loops.h"
#include "superstep/target/cpu/kernels/numerics/panel_loops.h"
#include "superstep/target/numerics/product.h"

namespace superstep::target::numerics {
namespace {

using superstep::numerics::Arithmetic;
using superstep::numerics::Narrowing;

// Chosen so that a panel of B and its sums stay in the nearest two caches: 64 columns of 256 products are 64
// kB.
constexpr std::int64_t block_columns = 64, block_products = 256;
constexpr std::int64_t block_rows = 256;  // sums of 64 kB
constexpr std::int64_t elements_at_a_time =
    1 << 16;  // of narrowing; a thread's turn takes tens of microseconds

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

struct Scratch {
  std::vector<float> a, b, sums;
};

// One block of results.
class Block {
 public:
  Block(const Product& product, const ProductRun& run, Scratch& scratch)
      : product_(product), run_(run), scratch_(scratch) {}

  void compute(std::int64_t group, std::int64_t row, std::int64_t column) {
    rows_ = std::min(block_rows, product_.rows - row);
    columns_ = std::min(block_columns, product_.columns - column);
    pitch_ = rounded_up(columns_, kernels::panel_columns);
    const std::int64_t chunk = run_.arithmetic->chunk;
    const std::int64_t most = std::max(chunk, block_products / chunk * chunk);
    scratch_.sums.assign(static_cast<std::size_t>(rows_ * pitch_), 0.0f);
    scratch_.a.resize(static_cast<std::size_t>(rows_ * most));
    scratch_.b.resize(static_cast<std::size_t>(pitch_ * most + Product::slack));
    for (std::int64_t k = 0; k < product_.k; k += most) {
      const std::int64_t count = std::min(most, product_.k - k);
      const Panel a = product_.left(group, row, rows_, k, count, scratch_.a.data());
      product_.right(group, k, count, column, columns_, scratch_.b.data(), pitch_);
      kernels::panel_loop()({.a = a.values,
                             .b = scratch_.b.data(),
                             .sums = scratch_.sums.data(),
                             .a_pitch = a.pitch,
                             .b_pitch = pitch_,
                             .sums_pitch = pitch_,
                             .rows = rows_,
                             .columns = pitch_,
                             .k = count,
                             .first = k,
                             .row = static_cast<std::uint32_t>(group * product_.rows + row),
                             .column = static_cast<std::uint32_t>(column),
                             .node = run_.stream + static_cast<std::uint32_t>(Stream::sums),
                             .key = run_.key,
                             .arithmetic = run_.arithmetic});
    }
    finish(group, row, column);
  }

 private:
  float* line(std::int64_t i) { return scratch_.sums.data() + i * pitch_; }

  // All rows at once, but where each element has a random word of its own: that of its row and column.
  void narrow(std::int64_t row_of_all, std::int64_t column, Stream stream) {
    const bool draws = run_.arithmetic->results.rounding == superstep::numerics::Rounding::stochastic;
    const std::int64_t at_a_time = draws ? 1 : rows_;
    const std::int64_t width = rounded_up(product_.columns, block_columns);
    for (std::int64_t i = 0; i < rows_; i += at_a_time)
      kernels::narrowing_loop()({.from = line(i),
                                 .to = line(i),
                                 .n = at_a_time * pitch_,
                                 .how = run_.arithmetic->results,
                                 .first = (row_of_all + i) * width + column,
                                 .node = run_.stream + static_cast<std::uint32_t>(stream),
                                 .key = run_.key});
  }

  void finish(std::int64_t group, std::int64_t row, std::int64_t column) {
    const std::int64_t row_of_all = group * product_.rows + row;
    if (product_.alpha != 1)
      for (float& sum : scratch_.sums) sum *= product_.alpha;
    if (run_.bias && !run_.arithmetic->bias_in_sum) narrow(row_of_all, column, Stream::before_bias);
    if (run_.bias)
      for (std::int64_t i = 0; i < rows_; ++i) add_bias(group, row + i, column, line(i));
    if (!run_.arithmetic->results.keeps_all()) narrow(row_of_all, column, Stream::result);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const float* sums = line(i);
      for (std::int64_t j = 0; j < columns_;) {
        const Product::Run at = product_.results(group, row + i, column + j);
        const std::int64_t count = std::min(at.count, columns_ - j);
        std::copy_n(sums + j, count, run_.result + at.place);
        j += count;
      }
    }
  }

  void add_bias(std::int64_t group, std::int64_t row, std::int64_t column, float* sums) {
    if (product_.bias_by_place) {
      const float* const bias = run_.bias + product_.results(group, row, column).place;
      for (std::int64_t j = 0; j < columns_; ++j) sums[j] += bias[j];
      return;
    }
    const float bias = run_.bias[(group * product_.rows + row) * product_.bias_row_stride];
    for (std::int64_t j = 0; j < columns_; ++j) sums[j] += bias;
  }

  const Product& product_;
  const ProductRun& run_;
  Scratch& scratch_;
  std::int64_t rows_ = 0, columns_ = 0, pitch_ = 0;
};

}  // namespace

void run_product(const Product& product, const ProductRun& run, ThreadPool& pool) {
  const std::int64_t across = (product.columns + block_columns - 1) / block_columns;
  const std::int64_t down = (product.rows + block_rows - 1) / block_rows;
  std::vector<Scratch> scratch(static_cast<std::size_t>(pool.threads()));
  pool.parallel_for(product.groups * across * down, [&](std::int64_t item, int worker) {
    Block block(product, run, scratch[static_cast<std::size_t>(worker)]);
    block.compute(item / (across * down), item % down * block_rows, item / down % across * block_columns);
  });
}

void run_narrowing(const float* from, float* to, std::int64_t n, const Narrowing& how, std::uint32_t stream,
                   std::uint64_t key, ThreadPool& pool) {
  const std::int64_t parts = (n + elements_at_a_time - 1) / elements_at_a_time;
  pool.parallel_for(parts, [&](std::int64_t part, int) {
    const std::int64_t first = part * elements_at_a_time;
    kernels::narrowing_loop()({.from = from + first,
                               .to = to + first,
                               .n = std::min(elements_at_a_time, n - first),
                               .how = how,
                               .first = first,
                               .node = stream,
                               .key = key});
  });
}

}  // namespace superstep::target::numerics
