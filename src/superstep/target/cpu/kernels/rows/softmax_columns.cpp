#include "superstep/target/cpu/kernels/rows/softmax_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/rows/softmax_columns.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"
#include "superstep/target/cpu/kernels/rows/softmax_columns_loops.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// So many vectors of columns side by side: enough that sums and maxima do not wait for one another.
constexpr std::size_t column_vectors = 4;
constexpr auto vector_width = static_cast<std::int64_t>(lanes);

// N vectors of columns, of which the last has `last` elements.
template <std::size_t N, class X, class Y>
HWY_INLINE void softmax_of_columns(const SoftmaxColumns& s, const X* x, Y* y, std::size_t last) {
  const auto count = [last](std::size_t i) { return i + 1 < N ? lanes : last; };
  V maximum[N], sum[N];
  unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    maximum[i] = constant(-std::numeric_limits<float>::infinity());
    sum[i] = hn::Zero(f32_tag);
  });
  for (std::int64_t k = 0; k < s.length; ++k)
    unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      maximum[i] = max_or_second(maximum[i], load_first(x + k * s.x_step + i * lanes, count(i)));
    });
  // A bf16 result has no room for exact exponentials, and a logarithm needs none: they are made again.
  constexpr bool has_room = std::is_same_v<Y, float>;
  const bool kept = has_room && !s.logarithm;
  for (std::int64_t k = 0; k < s.length; ++k)
    unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      const V e = exp_negative(hn::Sub(load_first(x + k * s.x_step + i * lanes, count(i)), maximum[i]));
      sum[i] = hn::Add(sum[i], e);
      if constexpr (has_room)
        if (kept) store_first(e, y + k * s.y_step + i * lanes, count(i));
    });
  if (s.logarithm) {
    unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA { maximum[i] = hn::Add(maximum[i], log(sum[i])); });
    for (std::int64_t k = 0; k < s.length; ++k)
      unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
        const V z = load_first(x + k * s.x_step + i * lanes, count(i));
        store_first(hn::Sub(z, maximum[i]), y + k * s.y_step + i * lanes, count(i));
      });
    return;
  }
  unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sum[i] = hn::Div(constant(1), sum[i]); });
  for (std::int64_t k = 0; k < s.length; ++k)
    unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      V e;
      if constexpr (has_room)
        e = load_first(y + k * s.y_step + i * lanes, count(i));
      else
        e = exp_negative(hn::Sub(load_first(x + k * s.x_step + i * lanes, count(i)), maximum[i]));
      store_first(hn::Mul(e, sum[i]), y + k * s.y_step + i * lanes, count(i));
    });
}

template <class X, class Y>
void softmax_columns(const SoftmaxColumns& s, const void* x_base, void* y_base) {
  const auto* x = static_cast<const X*>(x_base);
  auto* y = static_cast<Y*>(y_base);
  std::int64_t c = 0;
  for (; c + column_vectors * vector_width <= s.columns; c += column_vectors * vector_width)
    softmax_of_columns<column_vectors>(s, x + c, y + c, lanes);
  for (; c < s.columns; c += vector_width)
    softmax_of_columns<1>(s, x + c, y + c, static_cast<std::size_t>(std::min(vector_width, s.columns - c)));
}

SoftmaxColumnsFunction* softmax_columns_function(ElementType x, ElementType y) {
  const bool wide = y == ElementType::f32;
  if (x == ElementType::f32) return wide ? softmax_columns<float, float> : softmax_columns<float, bf16>;
  return wide ? softmax_columns<bf16, float> : softmax_columns<bf16, bf16>;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(softmax_columns_function);

namespace {

// Columns of a part: whole lines of 64 bytes of f32.
constexpr std::int64_t columns_of_a_line = 16;

class SoftmaxColumnsKernel final : public Kernel {
 public:
  SoftmaxColumnsKernel(KernelInfo info, const SoftmaxColumns& softmax, SoftmaxColumnsFunction* function)
      : Kernel(std::move(info)), softmax_(softmax), function_(function) {
    info_.parts = std::clamp<std::int64_t>(lines(), 1, most_parts);
  }
  void run(const Arguments& arguments) const override {
    function_(softmax_, arguments.inputs[0], arguments.outputs[0]);
  }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const PartRange range = part_range(lines(), part, info_.parts);
    const std::int64_t first = range.begin * columns_of_a_line;
    SoftmaxColumns piece = softmax_;
    piece.columns = std::min(softmax_.columns, range.end * columns_of_a_line) - first;
    const auto bytes = [first](ElementType type) {
      return first * static_cast<std::int64_t>(size_in_bytes(type));
    };
    function_(piece, static_cast<const std::byte*>(arguments.inputs[0]) + bytes(softmax_.x_type),
              static_cast<std::byte*>(arguments.outputs[0]) + bytes(softmax_.y_type));
  }

 private:
  std::int64_t lines() const { return (softmax_.columns + columns_of_a_line - 1) / columns_of_a_line; }

  SoftmaxColumns softmax_;
  SoftmaxColumnsFunction* function_;
};

std::string fault_of(const SoftmaxColumns& s) {
  if (s.columns < 1 || s.length < 1) return "the columns are empty";
  for (ElementType type : {s.x_type, s.y_type})
    if (type != ElementType::f32 && type != ElementType::bf16)
      return fmt::format("no softmax of {}", name_of(type));
  if (s.length > 1 && (s.x_step < s.columns || s.y_step < s.columns)) return "columns overlap";
  return {};
}

}  // namespace

Prepared prepare(const SoftmaxColumns& s) {
  if (std::string fault = fault_of(s); !fault.empty()) return refuse("softmax of columns", fault);
  const auto elements = static_cast<double>(s.columns * s.length);
  KernelInfo info;
  info.name = fmt::format("{}softmax, {} columns of {}", s.logarithm ? "log-" : "", s.columns, s.length);
  info.flops = elements * 5;
  info.bytes = elements * static_cast<double>(size_in_bytes(s.x_type) + size_in_bytes(s.y_type));
  info.inputs = info.outputs = 1;
  return std::make_unique<SoftmaxColumnsKernel>(
      std::move(info), s, SUPERSTEP_VECTOR_FUNCTION(softmax_columns_function)(s.x_type, s.y_type));
}

}  // namespace superstep::kernels
#endif
