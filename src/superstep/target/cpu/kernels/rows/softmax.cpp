#include "superstep/target/cpu/kernels/rows/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/rows/softmax.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"
#include "superstep/target/cpu/kernels/rows/softmax_loops.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

// Calls body(i, n) for the vectors of a row: the elements i to i + n - 1, all full but the last.
template <class Body>
HWY_INLINE void for_each_vector(std::int64_t length, const Body& body) {
  std::int64_t i = 0;
  for (; i + width <= length; i += width) body(i, lanes);
  if (i < length) body(i, static_cast<std::size_t>(length - i));
}

// As load_first, with `fill` in the lanes behind.
template <class T>
HWY_INLINE V load_or(const T* p, std::size_t n, V fill) {
  return hn::IfThenElse(hn::FirstN(f32_tag, n), load_first(p, n), fill);
}

template <class X>
HWY_INLINE V row_maximum(const X* x, std::int64_t length) {
  const V low = constant(-std::numeric_limits<float>::infinity());
  V a = low, b = low;
  std::int64_t i = 0;
  for (; i + 2 * width <= length; i += 2 * width) {
    a = max_or_second(a, load(x + i));
    b = max_or_second(b, load(x + i + width));
  }
  for (; i < length; i += width)
    a = max_or_second(a, load_or(x + i, static_cast<std::size_t>(std::min(width, length - i)), low));
  return constant(max_of_lanes(max_or_second(a, b)));
}

// Writes exp(scale * (x - maximum)) when T is not void and returns the sum.
template <class X, class T>
HWY_INLINE V exponentials(const X* x, T* y, std::int64_t length, V scale, V maximum) {
  const V shift = hn::Mul(maximum, scale);
  V sum = hn::Zero(f32_tag);
  for_each_vector(length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
    const V low = constant(-std::numeric_limits<float>::infinity());
    const V z = n == lanes ? load(x + i) : load_first(x + i, n);
    V shifted = hn::MulSub(z, scale, shift);
    if (n != lanes) shifted = hn::IfThenElse(hn::FirstN(f32_tag, n), shifted, low);
    const V e = exp_negative(shifted);
    sum = hn::Add(sum, e);
    if constexpr (!std::is_void_v<T>) store_first(e, y + i, n);
  });
  return constant(sum_of_lanes(sum));
}

// Rows are done eight at a time, step by step, so that the latencies of one row's sums and maxima are filled
// with the work of the others.
constexpr std::int64_t row_block = 8;

template <class X, class Y>
HWY_INLINE void softmax_block(const Softmax& s, const X* x, Y* y, std::int64_t rows) {
  const V scale = constant(s.scale);
  // A bf16 row has no room for exact exponentials: they are made again.
  constexpr bool keep = std::is_same_v<Y, float>;
  float maximum[row_block], factor[row_block];
  for (std::int64_t r = 0; r < rows; ++r) maximum[r] = hn::GetLane(row_maximum(x + r * s.x_stride, s.length));
  for (std::int64_t r = 0; r < rows; ++r) {
    auto* kept = static_cast<std::conditional_t<keep, Y, void>*>(y + r * s.y_stride);
    factor[r] =
        1 / hn::GetLane(exponentials(x + r * s.x_stride, kept, s.length, scale, constant(maximum[r])));
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const X* xr = x + r * s.x_stride;
    Y* yr = y + r * s.y_stride;
    const V shift = hn::Mul(constant(maximum[r]), scale), row_factor = constant(factor[r]);
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      V e;
      if constexpr (keep)
        e = load_first(yr + i, n);
      else
        e = exp_negative(hn::MulSub(load_first(xr + i, n), scale, shift));
      store_first(hn::Mul(e, row_factor), yr + i, n);
    });
  }
}

// A row that fits into registers, N vectors: read and written once.
template <std::size_t N, class X, class Y>
HWY_INLINE void softmax_short_row(const X* x, Y* y, std::size_t last, V scale) {
  const V low = constant(-std::numeric_limits<float>::infinity());
  V e[N];
  unrolled<N - 1>([&](auto i) SUPERSTEP_INLINE_LAMBDA { e[i] = load(x + i * lanes); });
  e[N - 1] = load_or(x + (N - 1) * lanes, last, low);
  V maximum = e[N - 1];
  unrolled<N - 1>([&](auto i) SUPERSTEP_INLINE_LAMBDA { maximum = max_or_second(maximum, e[i]); });
  const V shift = hn::Mul(hn::MaxOfLanes(f32_tag, maximum), scale);
  unrolled<N>([&](auto i) SUPERSTEP_INLINE_LAMBDA { e[i] = exp_negative(hn::MulSub(e[i], scale, shift)); });
  e[N - 1] = hn::IfThenElseZero(hn::FirstN(f32_tag, last), e[N - 1]);
  V sum = e[N - 1];
  unrolled<N - 1>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sum = hn::Add(sum, e[i]); });
  const V factor = hn::Div(constant(1), hn::SumOfLanes(f32_tag, sum));
  unrolled<N - 1>([&](auto i) SUPERSTEP_INLINE_LAMBDA { store(hn::Mul(e[i], factor), y + i * lanes); });
  store_first(hn::Mul(e[N - 1], factor), y + (N - 1) * lanes, last);
}

template <std::size_t N, class X, class Y>
void softmax_short_rows(const Softmax& s, const X* x, Y* y) {
  const V scale = constant(s.scale);
  const std::size_t last = static_cast<std::size_t>(s.length) - (N - 1) * lanes;
  for (std::int64_t row = 0; row < s.rows; ++row, x += s.x_stride, y += s.y_stride)
    softmax_short_row<N>(x, y, last, scale);
}

constexpr std::int64_t short_vectors = 8;

template <class X, class Y, std::size_t... i>
void choose_short_rows(const Softmax& s, const X* x, Y* y, std::size_t vectors, std::index_sequence<i...>) {
  static constexpr void (*functions[])(const Softmax&, const X*, Y*) = {softmax_short_rows<i + 1, X, Y>...};
  functions[vectors - 1](s, x, y);
}

template <class X, class Y>
void softmax_rows(const Softmax& s, const void* x, const void*, void* y) {
  const std::int64_t vectors = (s.length + width - 1) / width;
  if (vectors <= short_vectors)
    return choose_short_rows(s, static_cast<const X*>(x), static_cast<Y*>(y),
                             static_cast<std::size_t>(vectors), std::make_index_sequence<short_vectors>());
  for (std::int64_t row = 0; row < s.rows; row += row_block)
    softmax_block(s, static_cast<const X*>(x) + row * s.x_stride, static_cast<Y*>(y) + row * s.y_stride,
                  std::min(row_block, s.rows - row));
}

template <class X, class Y>
void log_softmax_rows(const Softmax& s, const void* x_base, const void*, void* y_base) {
  const V scale = constant(s.scale);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const X* x = static_cast<const X*>(x_base) + row * s.x_stride;
    Y* y = static_cast<Y*>(y_base) + row * s.y_stride;
    const V maximum = row_maximum(x, s.length);
    const V sum = exponentials(x, static_cast<void*>(nullptr), s.length, scale, maximum);
    const V shift = hn::MulAdd(maximum, scale, log(sum));
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      store_first(hn::MulSub(load_first(x + i, n), scale, shift), y + i, n);
    });
  }
}

template <class X, class Y, class G>
void softmax_gradient_rows(const Softmax& s, const void* y_base, const void* dy_base, void* dx_base) {
  const V scale = constant(s.scale);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const Y* y = static_cast<const Y*>(y_base) + row * s.y_stride;
    const G* dy = static_cast<const G*>(dy_base) + row * s.dy_stride;
    X* dx = static_cast<X*>(dx_base) + row * s.x_stride;
    V a = hn::Zero(f32_tag);
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      a = hn::MulAdd(load_first(y + i, n), load_first(dy + i, n), a);
    });
    const V dot = constant(sum_of_lanes(a));
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      const V difference = hn::Sub(load_first(dy + i, n), dot);
      store_first(hn::Mul(scale, hn::Mul(load_first(y + i, n), difference)), dx + i, n);
    });
  }
}

template <class X, class Y, class G>
void log_softmax_gradient_rows(const Softmax& s, const void* y_base, const void* dy_base, void* dx_base) {
  const V scale = constant(s.scale);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const Y* y = static_cast<const Y*>(y_base) + row * s.y_stride;
    const G* dy = static_cast<const G*>(dy_base) + row * s.dy_stride;
    X* dx = static_cast<X*>(dx_base) + row * s.x_stride;
    V a = hn::Zero(f32_tag);
    for_each_vector(s.length,
                    [&](std::int64_t i, std::size_t n) HWY_ATTR { a = hn::Add(a, load_first(dy + i, n)); });
    const V sum = constant(sum_of_lanes(a));
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      const V p = exp_negative(load_first(y + i, n));
      store_first(hn::Mul(scale, hn::NegMulAdd(p, sum, load_first(dy + i, n))), dx + i, n);
    });
  }
}

template <class X, class Y>
SoftmaxFunction* choose(const SoftmaxChoice& c) {
  const bool wide = c.dy_type == ElementType::f32;
  if (!c.gradient) return c.logarithm ? log_softmax_rows<X, Y> : softmax_rows<X, Y>;
  if (c.logarithm)
    return wide ? log_softmax_gradient_rows<X, Y, float> : log_softmax_gradient_rows<X, Y, bf16>;
  return wide ? softmax_gradient_rows<X, Y, float> : softmax_gradient_rows<X, Y, bf16>;
}

SoftmaxFunction* softmax_function(const SoftmaxChoice& c) {
  const bool x_wide = c.x_type == ElementType::f32, y_wide = c.y_type == ElementType::f32;
  if (x_wide) return y_wide ? choose<float, float>(c) : choose<float, bf16>(c);
  return y_wide ? choose<bf16, float>(c) : choose<bf16, bf16>(c);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(softmax_function);

namespace {

class SoftmaxKernel final : public Kernel {
 public:
  SoftmaxKernel(KernelInfo info, const Softmax& softmax, SoftmaxFunction* function)
      : Kernel(std::move(info)), softmax_(softmax), function_(function) {
    info_.parts = std::clamp<std::int64_t>(softmax_.rows, 1, most_parts);
  }
  void run(const Arguments& arguments) const override {
    const void* dy = info_.inputs > 1 ? arguments.inputs[1] : nullptr;
    function_(softmax_, arguments.inputs[0], dy, arguments.outputs[0]);
  }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const PartRange rows = part_range(softmax_.rows, part, info_.parts);
    Softmax piece = softmax_;
    piece.rows = rows.end - rows.begin;
    const bool gradient = info_.inputs > 1;  // then the first input is y
    const auto at = [&](const void* base, std::int64_t stride, ElementType type) {
      return static_cast<const std::byte*>(base) +
             rows.begin * stride * static_cast<std::int64_t>(size_in_bytes(type));
    };
    const auto& s = softmax_;
    const void* first = gradient ? at(arguments.inputs[0], s.y_stride, s.y_type)
                                 : at(arguments.inputs[0], s.x_stride, s.x_type);
    const void* dy = gradient ? at(arguments.inputs[1], s.dy_stride, s.dy_type) : nullptr;
    const void* result = gradient ? at(arguments.outputs[0], s.x_stride, s.x_type)
                                  : at(arguments.outputs[0], s.y_stride, s.y_type);
    function_(piece, first, dy, const_cast<void*>(result));
  }

 private:
  Softmax softmax_;
  SoftmaxFunction* function_;
};

std::string fault_of(const Softmax& s) {
  if (s.rows < 0 || s.length < 1) return "the rows are empty";
  for (ElementType type : {s.x_type, s.y_type, s.dy_type})
    if (type != ElementType::f32 && type != ElementType::bf16)
      return fmt::format("no softmax of {}", name_of(type));
  for (std::int64_t stride : {s.x_stride, s.y_stride, s.dy_stride})
    if (stride != 0 && stride < s.length) return "rows overlap";
  if (!(s.scale > 0)) return "the scale is not positive";
  return {};
}

Prepared prepare(Softmax s, bool gradient) {
  if (std::string fault = fault_of(s); !fault.empty()) return refuse("softmax", fault);
  for (std::int64_t* stride : {&s.x_stride, &s.y_stride, &s.dy_stride})
    if (*stride == 0) *stride = s.length;
  const auto elements = static_cast<double>(s.rows * s.length);
  KernelInfo info;
  info.name = fmt::format("{}softmax{}, {} rows of {}", s.logarithm ? "log-" : "",
                          gradient ? " gradient" : "", s.rows, s.length);
  info.flops = elements * (gradient ? 4 : 5);
  info.bytes = elements * static_cast<double>(size_in_bytes(s.x_type) + size_in_bytes(s.y_type) +
                                              (gradient ? size_in_bytes(s.dy_type) : 0));
  info.inputs = gradient ? 2 : 1;
  info.outputs = 1;
  auto* function =
      SUPERSTEP_VECTOR_FUNCTION(softmax_function)({gradient, s.logarithm, s.x_type, s.y_type, s.dy_type});
  return std::make_unique<SoftmaxKernel>(std::move(info), s, function);
}

}  // namespace

Prepared prepare_softmax(const Softmax& softmax) { return prepare(softmax, false); }
Prepared prepare_softmax_gradient(const Softmax& softmax) { return prepare(softmax, true); }

}  // namespace superstep::kernels
#endif
