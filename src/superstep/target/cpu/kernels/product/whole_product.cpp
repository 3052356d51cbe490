#include "superstep/target/cpu/kernels/product/whole_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/product/triangular_loops.h"

namespace superstep::kernels {
namespace {

using ZeroPoint = WholeProduct::ZeroPoint;

// Rows of c that one part makes: b is widened anew by every part that reads it.
constexpr std::int64_t rows_of_a_part = 16 * most_folded_rows;

bool is_byte(ElementType type) { return type == ElementType::u8 || type == ElementType::i8; }

// Calls body(pointer to the elements of their own type).
template <class Body>
void with_elements(ElementType type, const void* data, const Body& body) {
  switch (type) {
    case ElementType::u8: return body(static_cast<const std::uint8_t*>(data));
    case ElementType::i8: return body(static_cast<const std::int8_t*>(data));
    case ElementType::i32:
    case ElementType::u32: return body(static_cast<const std::int32_t*>(data));
    default: return body(static_cast<const std::int64_t*>(data));
  }
}

// T: what is summed. Unsigned numbers are summed as signed ones of as many bits, which wrap around alike.
template <class T>
class WholeProductKernel final : public Kernel {
 public:
  WholeProductKernel(KernelInfo info, const WholeProduct& product)
      : Kernel(std::move(info)),
        p_(product),
        m_(product.matmul),
        fold_(fold_loop(T())),
        blocks_((m_.rows + rows_of_a_part - 1) / rows_of_a_part) {
    info_.parts = std::clamp<std::int64_t>(items(), 1, most_parts);
    info_.scratch_bytes = static_cast<std::size_t>(m_.inner * (m_.columns + most_folded_rows)) * sizeof(T);
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

  static const void* moved(const void* data, const MatrixStrides& matrix, std::int64_t elements) {
    return static_cast<const std::byte*>(data) +
           elements * static_cast<std::int64_t>(size_in_bytes(matrix.type));
  }

  void run_range(const Arguments& arguments, PartRange range) const {
    auto* const right = static_cast<T*>(arguments.scratch);
    T* const left = right + m_.inner * m_.columns;
    std::int64_t widened = -1;  // the matrix whose b is in scratch
    for (std::int64_t item = range.begin; item < range.end; ++item) {
      const std::int64_t matrix = item / blocks_, first = item % blocks_ * rows_of_a_part;
      const std::int64_t b0 = matrix / m_.batch[1], b1 = matrix % m_.batch[1];
      if (widened != matrix)
        widen_right(moved(arguments.inputs[1], m_.b, place(m_.b, b0, b1)), zero_points(arguments, true),
                    right);
      widened = matrix;
      const void* a = moved(arguments.inputs[0], m_.a, place(m_.a, b0, b1));
      T* c = static_cast<T*>(arguments.outputs[0]) + place(m_.c, b0, b1);
      for (std::int64_t i = first; i < std::min(m_.rows, first + rows_of_a_part); i += most_folded_rows) {
        const std::int64_t rows = std::min<std::int64_t>(most_folded_rows, m_.rows - i);
        widen_left(moved(a, m_.a, i * m_.a.row), zero_points(arguments, false), i, rows, left);
        for (std::int64_t r = 0; r < rows; ++r) std::fill_n(c + (i + r) * m_.c.row, m_.columns, T{0});
        fold_({c + i * m_.c.row, right, left, m_.c.row, m_.columns, most_folded_rows, 1, rows, m_.inner,
               m_.columns});
      }
    }
  }

  // Of b's columns or of a's rows; null where there are none.
  const void* zero_points(const Arguments& arguments, bool of_columns) const {
    if ((of_columns ? p_.of_columns : p_.of_rows) == ZeroPoint::none) return nullptr;
    return arguments.inputs[of_columns && p_.of_rows != ZeroPoint::none ? 3 : 2];
  }

  void widen_right(const void* from, const void* zeros, T* to) const {
    with_elements(m_.b.type, from, [&](const auto* b) {
      const auto* points = static_cast<decltype(b)>(zeros);
      const std::int64_t step = p_.of_columns == ZeroPoint::each ? 1 : 0;
      for (std::int64_t k = 0; k < m_.inner; ++k)
        for (std::int64_t j = 0; j < m_.columns; ++j)
          to[k * m_.columns + j] = less(b[k * m_.b.row + j * m_.b.column], points ? points[j * step] : 0);
    });
  }

  // Minus the rows: the loop takes products away.
  void widen_left(const void* from, const void* zeros, std::int64_t first, std::int64_t rows, T* to) const {
    with_elements(m_.a.type, from, [&](const auto* a) {
      const auto* points = static_cast<decltype(a)>(zeros);
      const std::int64_t step = p_.of_rows == ZeroPoint::each ? 1 : 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto zero = points ? points[(first + r) * step] : 0;
        for (std::int64_t k = 0; k < m_.inner; ++k)
          to[k * most_folded_rows + r] = less(zero, a[r * m_.a.row + k * m_.a.column]);
      }
    });
  }

  // a - b, wrapped around.
  template <class A, class B>
  static T less(A a, B b) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Bits>(a) - static_cast<Bits>(b));
  }

  WholeProduct p_;
  Matmul m_;
  FoldLoop<T>* fold_;
  std::int64_t blocks_;
};

std::string fault_of_types(const Matmul& m) {
  if (is_byte(m.a.type) && is_byte(m.b.type))
    return m.c.type == ElementType::i32 ? "" : "bytes whose sums are not i32";
  const bool whole = m.a.type == ElementType::i32 || m.a.type == ElementType::u32 ||
                     m.a.type == ElementType::i64 || m.a.type == ElementType::u64;
  if (!whole) return fmt::format("no whole numbers but {}", name_of(m.a.type));
  return m.a.type == m.b.type && m.a.type == m.c.type ? "" : "operands of several types";
}

}  // namespace

Prepared prepare(const WholeProduct& product) {
  const Matmul& m = product.matmul;
  const auto no = [](std::string why) { return refuse("product of whole numbers", std::move(why)); };
  if (std::string fault = fault_of_types(m); !fault.empty()) return no(std::move(fault));
  if (!m.epilogue.steps.empty() || m.accumulate) return no("something more is asked of it than the product");
  if (m.c.column != 1 && m.columns != 1) return no("the columns of the result do not lie side by side");
  const double places = static_cast<double>(m.batch[0] * m.batch[1]) * static_cast<double>(m.rows);
  const auto columns = static_cast<double>(m.columns), inner = static_cast<double>(m.inner);
  const auto bytes = [](ElementType type) { return static_cast<double>(size_in_bytes(type)); };
  const std::size_t zeros =
      (product.of_rows != ZeroPoint::none ? 1u : 0u) + (product.of_columns != ZeroPoint::none ? 1u : 0u);
  KernelInfo info{.name = "product of whole numbers, four rows",
                  .flops = 2 * places * columns * inner,
                  .bytes = places * (inner * bytes(m.a.type) + columns * bytes(m.c.type)) +
                           static_cast<double>(m.batch[0] * m.batch[1]) * inner * columns * bytes(m.b.type),
                  .inputs = 2 + zeros,
                  .outputs = 1,
                  .arithmetic = m.c.type};
  if (size_in_bytes(m.c.type) == sizeof(std::int32_t))
    return std::make_unique<WholeProductKernel<std::int32_t>>(std::move(info), product);
  return std::make_unique<WholeProductKernel<std::int64_t>>(std::move(info), product);
}

}  // namespace superstep::kernels
