#include "superstep/target/cpu/kernels/product/wide_product.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/product/triangular_loops.h"

namespace superstep::kernels {
namespace {

// Rows of c that one part makes, in steps of the rows that one pass over b serves: threads share a product of
// many rows, and one of few rows costs no more than it must.
constexpr std::int64_t rows_of_a_part = 16 * most_folded_rows;

// With c's columns contiguous; a product whose rows are is that of the transposed matrices.
Matmul turned_to_columns(Matmul m) {
  if (m.c.column == 1 || m.columns == 1) return m;
  std::swap(m.a, m.b);
  for (MatrixStrides* each : {&m.a, &m.b, &m.c}) std::swap(each->row, each->column);
  std::swap(m.rows, m.columns);
  return m;
}

class WideProductKernel final : public Kernel {
 public:
  WideProductKernel(KernelInfo info, const WideProduct& product)
      : Kernel(std::move(info)),
        m_(turned_to_columns(product.matmul)),
        p_(product),
        fold_(fold_loop(double())) {
    blocks_ = (m_.rows + rows_of_a_part - 1) / rows_of_a_part;
    info_.parts = std::clamp<std::int64_t>(items(), 1, most_parts);
    packs_ = m_.b.column != 1 && m_.columns > 1;
    if (packs_) info_.scratch_bytes = static_cast<std::size_t>(m_.inner * m_.columns) * sizeof(double);
  }

  void run(const Arguments& arguments) const override { run_range(arguments, {0, items()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(items(), part, info_.parts));
  }

 private:
  std::int64_t items() const { return m_.batch[0] * m_.batch[1] * blocks_; }

  static std::int64_t place(const MatrixStrides& strides, std::int64_t b0, std::int64_t b1) {
    return b0 * strides.batch[0] + b1 * strides.batch[1];
  }

  void run_range(const Arguments& arguments, PartRange range) const {
    // A product whose rows are contiguous has its operands exchanged.
    const bool turned = p_.matmul.c.column != 1 && p_.matmul.columns != 1;
    const auto* a = static_cast<const double*>(arguments.inputs[turned ? 1 : 0]);
    const auto* b = static_cast<const double*>(arguments.inputs[turned ? 0 : 1]);
    const auto* bias = p_.bias ? static_cast<const double*>(arguments.inputs[2]) : nullptr;
    auto* c = static_cast<double*>(arguments.outputs[0]);
    auto* scratch = static_cast<double*>(arguments.scratch);
    const double* packed = nullptr;  // which b lies in scratch
    for (std::int64_t item = range.begin; item < range.end; ++item) {
      const std::int64_t matrix = item / blocks_, block = item % blocks_;
      const std::int64_t b0 = matrix / m_.batch[1], b1 = matrix % m_.batch[1];
      const double* right = b + place(m_.b, b0, b1);
      if (packs_ && packed != right) pack(right, scratch), packed = right;
      for (std::int64_t i = block * rows_of_a_part; i < std::min(m_.rows, (block + 1) * rows_of_a_part);
           i += most_folded_rows)
        make_rows(a + place(m_.a, b0, b1) + i * m_.a.row, packs_ ? scratch : right,
                  packs_ ? m_.columns : m_.b.row, c + place(m_.c, b0, b1) + i * m_.c.row, bias,
                  std::min<std::int64_t>(most_folded_rows, m_.rows - i));
    }
  }

  void pack(const double* from, double* to) const {
    for (std::int64_t k = 0; k < m_.inner; ++k)
      for (std::int64_t j = 0; j < m_.columns; ++j)
        to[k * m_.columns + j] = from[k * m_.b.row + j * m_.b.column];
  }

  // The loop takes products away, and so from minus what was there: what is left is minus the result.
  void make_rows(const double* a, const double* b, std::int64_t b_row, double* c, const double* bias,
                 std::int64_t rows) const {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < m_.columns; ++j) c[r * m_.c.row + j] = 0;
    fold_({c, b, a, m_.c.row, b_row, m_.a.column, m_.a.row, rows, m_.inner, m_.columns});
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < m_.columns; ++j) {
        double& element = c[r * m_.c.row + j];
        element = -p_.alpha * element + (bias ? bias[j] : 0);
      }
  }

  Matmul m_;
  WideProduct p_;
  FoldLoop<double>* fold_;
  std::int64_t blocks_ = 0;
  bool packs_ = false;
};

}  // namespace

Prepared prepare(const WideProduct& product) {
  const Matmul& m = product.matmul;
  for (const MatrixStrides* each : {&m.a, &m.b, &m.c})
    if (each->type != ElementType::f64) return refuse("product of f64", "an operand is of another type");
  if (!m.epilogue.steps.empty() || m.accumulate)
    return refuse("product of f64", "something more is asked of it than the product");
  const bool rows_contiguous = m.c.row == 1 || m.rows == 1;
  if (m.c.column != 1 && m.columns != 1 && !rows_contiguous)
    return refuse("product of f64", "the result has no contiguous dimension");
  if (product.bias && m.c.column != 1 && m.columns != 1)
    return refuse("product of f64", "a bias across the contiguous dimension");
  const auto stack = static_cast<double>(m.batch[0] * m.batch[1]), rows = static_cast<double>(m.rows),
             columns = static_cast<double>(m.columns), inner = static_cast<double>(m.inner);
  return std::make_unique<WideProductKernel>(
      KernelInfo{.name = "product of f64, four rows",
                 .flops = 2 * stack * rows * columns * inner,
                 .bytes = 8 * stack * (rows * inner + inner * columns + rows * columns),
                 .inputs = product.bias ? 3u : 2u,
                 .outputs = 1,
                 .arithmetic = ElementType::f64},
      product);
}

}  // namespace superstep::kernels
