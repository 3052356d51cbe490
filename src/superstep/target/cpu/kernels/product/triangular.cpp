#include "superstep/target/cpu/kernels/product/triangular.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/target/cpu/kernels/product/triangular_loops.h"

namespace superstep::kernels {
namespace {

// Columns of a system that one part solves: enough for whole vectors, few enough that threads can share one
// system.
constexpr std::int64_t columns_of_a_part = 64;

// The factor is computed as its transpose U, whose rows are contiguous: row k of U is column k of A from the
// diagonal on, less what the rows before it take off, divided by the root of its first element. Four rows at
// a time.
template <class T>
class CholeskyKernel final : public Kernel {
 public:
  CholeskyKernel(KernelInfo info, const CholeskyFactor& factor)
      : Kernel(std::move(info)), f_(factor), fold_(fold_loop(T())) {
    info_.parts = std::clamp<std::int64_t>(f_.matrices, 1, most_parts);
    info_.scratch_bytes = static_cast<std::size_t>(f_.order * f_.order) * sizeof(T);
  }

  void run(const Arguments& arguments) const override { run_range(arguments, {0, f_.matrices}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(f_.matrices, part, info_.parts));
  }

 private:
  void run_range(const Arguments& arguments, PartRange range) const {
    const std::int64_t size = f_.order * f_.order;
    for (std::int64_t k = range.begin; k < range.end; ++k)
      factor(static_cast<const T*>(arguments.inputs[0]) + k * size, static_cast<T*>(arguments.scratch),
             static_cast<T*>(arguments.outputs[0]) + k * size);
  }

  void factor(const T* a, T* u, T* l) const {
    const std::int64_t n = f_.order;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) u[j * n + i] = a[i * n + j];
    for (std::int64_t k = 0; k < n; k += most_folded_rows)
      if (!finish_rows(u, k, std::min<std::int64_t>(most_folded_rows, n - k))) {
        std::fill_n(l, n * n, std::numeric_limits<T>::quiet_NaN());
        return;
      }
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) l[i * n + j] = j <= i ? u[j * n + i] : T(0);
  }

  // Rows [k, k + rows) of U. What lies left of the diagonal within them is changed and never read.
  bool finish_rows(T* u, std::int64_t k, std::int64_t rows) const {
    const std::int64_t n = f_.order;
    T* const first = u + k * n;
    clear_left_of_diagonal(first + k, rows);
    fold_({first + k, u + k, u + k, n, n, n, 1, rows, k, n - k});
    for (std::int64_t r = 0; r < rows; ++r) {
      T* const row = first + r * n;
      if (r > 0) fold_({row + k, first + k, first + k + r, n, n, n, 1, 1, r, n - k});
      const T pivot = row[k + r];
      if (!(pivot > 0)) return false;
      const T root = std::sqrt(pivot);
      for (std::int64_t j = k + r; j < n; ++j) row[j] /= root;
    }
    return true;
  }

  void clear_left_of_diagonal(T* block, std::int64_t rows) const {
    for (std::int64_t r = 1; r < rows; ++r) std::fill_n(block + r * f_.order, r, T(0));
  }

  CholeskyFactor f_;
  FoldLoop<T>* fold_;
};

// Row by row of X, or from the last row on: each less what the rows that are known take off. Four rows at a
// time.
template <class T>
class TriangularKernel final : public Kernel {
 public:
  TriangularKernel(KernelInfo info, const TriangularSystem& system)
      : Kernel(std::move(info)), s_(system), fold_(fold_loop(T())) {
    blocks_ = (s_.columns + columns_of_a_part - 1) / columns_of_a_part;
    info_.parts = std::clamp<std::int64_t>(s_.matrices * blocks_, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_range(arguments, {0, s_.matrices * blocks_}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(s_.matrices * blocks_, part, info_.parts));
  }

 private:
  void run_range(const Arguments& arguments, PartRange range) const {
    const std::int64_t n = s_.order;
    for (std::int64_t item = range.begin; item < range.end; ++item) {
      const std::int64_t matrix = item / blocks_, left = item % blocks_ * columns_of_a_part;
      const std::int64_t columns = std::min(columns_of_a_part, s_.columns - left),
                         at = matrix * n * s_.columns + left;
      const T* const b = static_cast<const T*>(arguments.inputs[1]) + at;
      T* const x = static_cast<T*>(arguments.outputs[0]) + at;
      for (std::int64_t i = 0; i < n; ++i) std::copy_n(b + i * s_.columns, columns, x + i * s_.columns);
      const T* const l = static_cast<const T*>(arguments.inputs[0]) + matrix * n * n;
      s_.transposed ? backwards(l, x, columns) : forwards(l, x, columns);
    }
  }

  void forwards(const T* l, T* x, std::int64_t columns) const {
    const std::int64_t n = s_.order, stride = s_.columns;
    for (std::int64_t i = 0; i < n; i += most_folded_rows) {
      const std::int64_t rows = std::min<std::int64_t>(most_folded_rows, n - i);
      fold_({x + i * stride, x, l + i * n, stride, stride, 1, n, rows, i, columns});
      for (std::int64_t r = i; r < i + rows; ++r) {
        if (r > i)
          fold_({x + r * stride, x + i * stride, l + r * n + i, stride, stride, 1, n, 1, r - i, columns});
        divide(x + r * stride, l[r * n + r], columns);
      }
    }
  }

  void backwards(const T* l, T* x, std::int64_t columns) const {
    const std::int64_t n = s_.order, stride = s_.columns;
    for (std::int64_t end = n; end > 0; end -= std::min<std::int64_t>(most_folded_rows, end)) {
      const std::int64_t begin = std::max<std::int64_t>(0, end - most_folded_rows);
      fold_({x + begin * stride, x + end * stride, l + end * n + begin, stride, stride, n, 1, end - begin,
             n - end, columns});
      for (std::int64_t r = end - 1; r >= begin; --r) {
        if (r + 1 < end)
          fold_({x + r * stride, x + (r + 1) * stride, l + (r + 1) * n + r, stride, stride, n, 1, 1,
                 end - r - 1, columns});
        divide(x + r * stride, l[r * n + r], columns);
      }
    }
  }

  static void divide(T* row, T divisor, std::int64_t columns) {
    for (std::int64_t j = 0; j < columns; ++j) row[j] /= divisor;
  }

  TriangularSystem s_;
  FoldLoop<T>* fold_;
  std::int64_t blocks_ = 0;
};

template <template <class> class Made, class Specification>
Prepared made(const Specification& specification, KernelInfo info, ElementType type) {
  if (type == ElementType::f32) return std::make_unique<Made<float>>(std::move(info), specification);
  return std::make_unique<Made<double>>(std::move(info), specification);
}

bool is_served(ElementType type) { return type == ElementType::f32 || type == ElementType::f64; }

}  // namespace

Prepared prepare(const CholeskyFactor& factor) {
  if (!is_served(factor.type))
    return refuse("Cholesky", fmt::format("no factors of {}", name_of(factor.type)));
  if (factor.matrices < 0 || factor.order < 0) return refuse("Cholesky", "an extent is negative");
  const auto n = static_cast<double>(factor.order), stack = static_cast<double>(factor.matrices);
  return made<CholeskyKernel>(factor,
                              {.name = "Cholesky, four rows",
                               .flops = stack * n * n * n / 3,
                               .bytes = stack * 1.5 * n * n * static_cast<double>(size_in_bytes(factor.type)),
                               .inputs = 1,
                               .outputs = 1,
                               .arithmetic = factor.type},
                              factor.type);
}

Prepared prepare(const TriangularSystem& system) {
  if (!is_served(system.type))
    return refuse("triangular system", fmt::format("no systems of {}", name_of(system.type)));
  if (system.matrices < 0 || system.order < 0 || system.columns < 0)
    return refuse("triangular system", "an extent is negative");
  const auto n = static_cast<double>(system.order), m = static_cast<double>(system.columns),
             stack = static_cast<double>(system.matrices);
  return made<TriangularKernel>(
      system,
      {.name = "triangular system, four rows",
       .flops = stack * n * n * m,
       .bytes = stack * (0.5 * n * n + 2 * n * m) * static_cast<double>(size_in_bytes(system.type)),
       .inputs = 2,
       .outputs = 1,
       .arithmetic = system.type},
      system.type);
}

}  // namespace superstep::kernels
