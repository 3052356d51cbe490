#include "superstep/target/cpu/kernels/elementwise/vector_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/elementwise/vector_ops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"
#include "superstep/target/cpu/kernels/elementwise/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

// ---- operations: structures with a static function over vectors

HWY_INLINE V truth(Mask mask) { return hn::IfThenElseZero(mask, constant(1)); }
// NaN is true, which is not equal to itself: a comparison for inequality that is ordered would say no.
HWY_INLINE Mask is_true(V v) { return hn::Not(hn::Eq(v, hn::Zero(f32_tag))); }
// The first operand when it is NaN, as both ONNX and IEEE 754-2019 maximum have it.
HWY_INLINE V nan_or(V a, V otherwise) { return hn::IfThenElse(hn::IsNaN(a), a, otherwise); }

#define SUPERSTEP_UNARY(name, expression)              \
  struct name {                                        \
    static HWY_INLINE V of(V a) { return expression; } \
  };
#define SUPERSTEP_BINARY(name, expression)                  \
  struct name {                                             \
    static HWY_INLINE V of(V a, V b) { return expression; } \
  };
SUPERSTEP_UNARY(Neg, hn::Neg(a))
SUPERSTEP_UNARY(Abs, hn::Abs(a))
SUPERSTEP_UNARY(Exp, exp(a))
SUPERSTEP_UNARY(Log, log(a))
SUPERSTEP_UNARY(Sqrt, hn::Sqrt(a))
SUPERSTEP_UNARY(Rsqrt, hn::Div(constant(1), hn::Sqrt(a)))
SUPERSTEP_UNARY(Reciprocal, hn::Div(constant(1), a))
SUPERSTEP_UNARY(Square, hn::Mul(a, a))
SUPERSTEP_UNARY(Floor, hn::Floor(a))
SUPERSTEP_UNARY(Ceil, hn::Ceil(a))
SUPERSTEP_UNARY(Round, hn::Round(a))
SUPERSTEP_UNARY(Sign,
                nan_or(a, hn::Sub(truth(hn::Gt(a, hn::Zero(f32_tag))), truth(hn::Lt(a, hn::Zero(f32_tag))))))
SUPERSTEP_UNARY(Relu, max_or_second(hn::Zero(f32_tag), a))
SUPERSTEP_UNARY(Sigmoid, sigmoid(a))
SUPERSTEP_UNARY(Tanh, tanh(a))
SUPERSTEP_UNARY(Erf, erf(a))
SUPERSTEP_UNARY(LogicalNot, truth(hn::Not(is_true(a))))
SUPERSTEP_UNARY(RoundHalf, round_to_f16(a))
SUPERSTEP_BINARY(Add, hn::Add(a, b))
SUPERSTEP_BINARY(Sub, hn::Sub(a, b))
SUPERSTEP_BINARY(Mul, hn::Mul(a, b))
SUPERSTEP_BINARY(Div, hn::Div(a, b))
SUPERSTEP_BINARY(Max, nan_or(a, max_or_second(a, b)))
SUPERSTEP_BINARY(Min, nan_or(a, min_or_second(a, b)))
SUPERSTEP_BINARY(Equal, truth(hn::Eq(a, b)))
SUPERSTEP_BINARY(Less, truth(hn::Lt(a, b)))
SUPERSTEP_BINARY(LessOrEqual, truth(hn::Le(a, b)))
SUPERSTEP_BINARY(LogicalAnd, truth(hn::And(is_true(a), is_true(b))))
SUPERSTEP_BINARY(LogicalOr, truth(hn::Or(is_true(a), is_true(b))))
#undef SUPERSTEP_UNARY
#undef SUPERSTEP_BINARY

struct Fma {
  static HWY_INLINE V of(V a, V b, V c) { return hn::MulAdd(a, b, c); }
};
struct Select {
  static HWY_INLINE V of(V a, V b, V c) { return hn::IfThenElse(is_true(a), b, c); }
};

// ---- loops

template <class Op>
void unary_loop(const VectorStep& s) {
  std::int64_t i = 0;
  for (; i + width <= s.n; i += width) store(Op::of(load(s.a + i)), s.out + i);
  if (i == s.n) return;
  const auto n = static_cast<std::size_t>(s.n - i);
  store_first(Op::of(load_first(s.a + i, n)), s.out + i, n);
}

template <class Op>
void binary_loop(const VectorStep& s) {
  std::int64_t i = 0;
  for (; i + width <= s.n; i += width) store(Op::of(load(s.a + i), load(s.b + i)), s.out + i);
  if (i == s.n) return;
  const auto n = static_cast<std::size_t>(s.n - i);
  store_first(Op::of(load_first(s.a + i, n), load_first(s.b + i, n)), s.out + i, n);
}

template <class Op>
void ternary_loop(const VectorStep& s) {
  std::int64_t i = 0;
  for (; i + width <= s.n; i += width) store(Op::of(load(s.a + i), load(s.b + i), load(s.c + i)), s.out + i);
  if (i == s.n) return;
  const auto n = static_cast<std::size_t>(s.n - i);
  store_first(Op::of(load_first(s.a + i, n), load_first(s.b + i, n), load_first(s.c + i, n)), s.out + i, n);
}

// With the instruction's activation and constants.
template <class Function>
HWY_INLINE void activation_loop(const VectorStep& s, const Function& function) {
  const Activation activation = s.instruction->activation;
  const V alpha = constant(s.instruction->alpha), beta = constant(s.instruction->beta);
  for (std::int64_t i = 0; i < s.n; i += width) {
    const auto n = static_cast<std::size_t>(std::min(width, s.n - i));
    store_first(function(load_first(s.a + i, n), activation, alpha, beta), s.out + i, n);
  }
}

void activate_loop(const VectorStep& s) {
  activation_loop(s, [](V v, Activation f, V alpha, V beta) HWY_ATTR { return activate(v, f, alpha, beta); });
}
void activation_gradient_loop(const VectorStep& s) {
  activation_loop(s, [](V v, Activation f, V alpha, V beta)
                         HWY_ATTR { return derivative_from_input(v, f, alpha, beta); });
}
void output_gradient_loop(const VectorStep& s) {
  activation_loop(s, [](V v, Activation f, V alpha, V beta)
                         HWY_ATTR { return derivative_from_output(v, f, alpha, beta); });
}

// Activations of image networks, without a call for each vector.
struct Silu {
  static HWY_INLINE V of(V x) { return silu(x); }
  static HWY_INLINE V slope(V x) { return silu_slope(x); }
};
struct HardSwish {
  static HWY_INLINE V of(V x) { return hard_swish(x); }
  static HWY_INLINE V slope(V x) {
    const V inner = hn::MulAdd(x, constant(1.0f / 3.0f), constant(0.5f));
    return hn::IfThenElse(hn::Ge(x, constant(3)), constant(1),
                          hn::IfThenElseZero(hn::Gt(x, constant(-3)), inner));
  }
};
struct Rectified {
  static HWY_INLINE V of(V x) { return max_or_second(hn::Zero(f32_tag), x); }
  static HWY_INLINE V slope(V x) { return truth(hn::Gt(x, hn::Zero(f32_tag))); }
};
template <class Function>
struct SlopeOf {
  static HWY_INLINE V of(V x) { return Function::slope(x); }
};
template <class Function>
struct OfAffine {
  static HWY_INLINE V of(V a, V b, V c) { return Function::of(hn::MulAdd(a, b, c)); }
};

template <class Function>
void slope_affine_loop(const VectorStep& s) {
  const auto slope = [&](std::int64_t i, std::size_t n) SUPERSTEP_INLINE_LAMBDA {
    const V x = hn::MulAdd(load_first(s.a + i, n), load_first(s.b + i, n), load_first(s.c + i, n));
    store_first(hn::Mul(load_first(s.d + i, n), Function::slope(x)), s.out + i, n);
  };
  std::int64_t i = 0;
  for (; i + width <= s.n; i += width) slope(i, lanes);
  if (i < s.n) slope(i, static_cast<std::size_t>(s.n - i));
}

VectorLoop* affine_of(Activation activation) {
  if (activation == Activation::silu) return ternary_loop<OfAffine<Silu>>;
  if (activation == Activation::hard_swish) return ternary_loop<OfAffine<HardSwish>>;
  return ternary_loop<OfAffine<Rectified>>;
}

VectorLoop* slope_affine_of(Activation activation) {
  if (activation == Activation::silu) return slope_affine_loop<Silu>;
  if (activation == Activation::hard_swish) return slope_affine_loop<HardSwish>;
  return slope_affine_loop<Rectified>;
}

VectorLoop* activation_of(Activation activation) {
  if (activation == Activation::silu) return unary_loop<Silu>;
  if (activation == Activation::hard_swish) return unary_loop<HardSwish>;
  return activate_loop;
}

VectorLoop* slope_of(Activation activation) {
  if (activation == Activation::silu) return unary_loop<SlopeOf<Silu>>;
  if (activation == Activation::hard_swish) return unary_loop<SlopeOf<HardSwish>>;
  return activation_gradient_loop;
}

// ---- functions computed in f64

constexpr float everywhere = std::numeric_limits<float>::max();
#define SUPERSTEP_FUNCTION(name, function, low, high)                                                      \
  void name##_loop(const VectorStep& s) {                                                                  \
    function_loop(s.a, s.out, s.n, low, high, function(),                                                  \
                  [](float x) HWY_ATTR { return static_cast<float>(std::name(static_cast<double>(x))); }); \
  }
SUPERSTEP_FUNCTION(sin, WideSin, -0x1p30f, 0x1p30f)
SUPERSTEP_FUNCTION(cos, WideCos, -0x1p30f, 0x1p30f)
SUPERSTEP_FUNCTION(tan, WideTan, -0x1p30f, 0x1p30f)
SUPERSTEP_FUNCTION(asin, WideAsin, -1, 1)
SUPERSTEP_FUNCTION(acos, WideAcos, -1, 1)
SUPERSTEP_FUNCTION(atan, WideAtan, -everywhere, everywhere)
SUPERSTEP_FUNCTION(sinh, WideSinh, -88, 88)
SUPERSTEP_FUNCTION(cosh, WideCosh, -88, 88)
SUPERSTEP_FUNCTION(asinh, WideAsinh, -everywhere, everywhere)
SUPERSTEP_FUNCTION(acosh, WideAcosh, 1, everywhere)
SUPERSTEP_FUNCTION(atanh, WideAtanh, -0x1.fffffep-1f, 0x1.fffffep-1f)
#undef SUPERSTEP_FUNCTION

void pow_loop(const VectorStep& s) { power_loop(s.a, s.b, s.out, s.n); }
// The remainder of a division that truncates.
void remainder_loop(const VectorStep& s) {
  for (std::int64_t i = 0; i < s.n; ++i) s.out[i] = std::fmod(s.a[i], s.b[i]);
}

VectorLoop* loop_of(const VectorProgram::Instruction& instruction) {
  switch (instruction.op) {
    case VectorOp::neg: return unary_loop<Neg>;
    case VectorOp::abs: return unary_loop<Abs>;
    case VectorOp::exp: return unary_loop<Exp>;
    case VectorOp::log: return unary_loop<Log>;
    case VectorOp::sqrt: return unary_loop<Sqrt>;
    case VectorOp::rsqrt: return unary_loop<Rsqrt>;
    case VectorOp::reciprocal: return unary_loop<Reciprocal>;
    case VectorOp::square: return unary_loop<Square>;
    case VectorOp::floor: return unary_loop<Floor>;
    case VectorOp::ceil: return unary_loop<Ceil>;
    case VectorOp::round: return unary_loop<Round>;
    case VectorOp::sign: return unary_loop<Sign>;
    case VectorOp::sin: return sin_loop;
    case VectorOp::cos: return cos_loop;
    case VectorOp::tan: return tan_loop;
    case VectorOp::asin: return asin_loop;
    case VectorOp::acos: return acos_loop;
    case VectorOp::atan: return atan_loop;
    case VectorOp::sinh: return sinh_loop;
    case VectorOp::cosh: return cosh_loop;
    case VectorOp::asinh: return asinh_loop;
    case VectorOp::acosh: return acosh_loop;
    case VectorOp::atanh: return atanh_loop;
    case VectorOp::relu: return unary_loop<Relu>;
    case VectorOp::sigmoid: return unary_loop<Sigmoid>;
    case VectorOp::tanh: return unary_loop<Tanh>;
    case VectorOp::erf: return unary_loop<Erf>;
    case VectorOp::logical_not: return unary_loop<LogicalNot>;
    case VectorOp::round_half: return unary_loop<RoundHalf>;
    case VectorOp::activate: return activation_of(instruction.activation);
    case VectorOp::activation_gradient: return slope_of(instruction.activation);
    case VectorOp::output_gradient: return output_gradient_loop;
    case VectorOp::add: return binary_loop<Add>;
    case VectorOp::sub: return binary_loop<Sub>;
    case VectorOp::mul: return binary_loop<Mul>;
    case VectorOp::div: return binary_loop<Div>;
    case VectorOp::max: return binary_loop<Max>;
    case VectorOp::min: return binary_loop<Min>;
    case VectorOp::pow: return pow_loop;
    case VectorOp::remainder: return remainder_loop;
    case VectorOp::equal: return binary_loop<Equal>;
    case VectorOp::less: return binary_loop<Less>;
    case VectorOp::less_or_equal: return binary_loop<LessOrEqual>;
    case VectorOp::logical_and: return binary_loop<LogicalAnd>;
    case VectorOp::logical_or: return binary_loop<LogicalOr>;
    case VectorOp::fma: return ternary_loop<Fma>;
    case VectorOp::select: return ternary_loop<Select>;
    case VectorOp::activate_affine: return affine_of(instruction.activation);
    case VectorOp::slope_affine: return slope_affine_of(instruction.activation);
  }
  return nullptr;
}

// ---- loads and stores

template <class T>
HWY_INLINE float to_float(T value) {
  return static_cast<float>(value);
}

template <class T>
void load_scalar(const void* from, std::int64_t stride, std::int64_t n, float* to) {
  const T* p = static_cast<const T*>(from);
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(p[i * stride]);
}

template <class T>
void load_loop(const void* from, std::int64_t stride, std::int64_t n, float* to) {
  const T* p = static_cast<const T*>(from);
  if (stride == 0) return static_cast<void>(std::fill_n(to, n, to_float(*p)));
  if (stride != 1) return load_scalar<T>(from, stride, n, to);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(load(p + i), to + i);
  if (i < n)
    store_first(load_first(p + i, static_cast<std::size_t>(n - i)), to + i, static_cast<std::size_t>(n - i));
}

// A vector at a time: what one writes beyond its row belongs to the next row, which comes after it. Nothing
// is read beyond a row, nor written beyond the last one.
template <class LoadPart>
HWY_INLINE void fill_rows(const RowsToLoad& r, const LoadPart& load_part) {
  float* const end = r.to + r.rows * r.n;
  float* to = r.to;
  for (std::int64_t row = 0; row < r.rows; ++row, to += r.n) {
    const float* line = static_cast<const float*>(r.from) + row * r.row_stride;
    for (std::int64_t i = 0; i < r.n; i += width) {
      const V v = load_part(line, i);
      if (to + i + width <= end)
        store(v, to + i);
      else
        store_first(v, to + i, static_cast<std::size_t>(end - (to + i)));
    }
  }
}

void load_rows(const RowsToLoad& r) {
  if (r.stride == 0) return fill_rows(r, [](const float* line, std::int64_t) { return constant(*line); });
  if (r.stride == 1)
    return fill_rows(r, [&](const float* line, std::int64_t i) {
      return r.n - i >= width ? load(line + i) : load_first(line + i, static_cast<std::size_t>(r.n - i));
    });
  for (std::int64_t row = 0; row < r.rows; ++row)
    load_scalar<float>(static_cast<const float*>(r.from) + row * r.row_stride, r.stride, r.n,
                       r.to + row * r.n);
}

LoadLoop* load_of(ElementType type) {
  switch (type) {
    case ElementType::f32: return load_loop<float>;
    case ElementType::bf16: return load_loop<bf16>;
    case ElementType::f16: return load_loop<f16>;
    case ElementType::i32: return load_loop<std::int32_t>;
    case ElementType::u8: return load_loop<std::uint8_t>;
    case ElementType::i8: return load_loop<std::int8_t>;
    case ElementType::boolean: return load_loop<bool>;
    case ElementType::f64: return load_scalar<double>;
    case ElementType::i64: return load_scalar<std::int64_t>;
    default: return nullptr;
  }
}

template <class T>
void store_loop(const float* from, void* to, std::int64_t stride, std::int64_t n) {
  T* p = static_cast<T*>(to);
  if (stride != 1) {
    // One at a time through a vector, so that every element is rounded by the same rule.
    for (std::int64_t i = 0; i < n; ++i) store_first(load_first(from + i, 1), p + i * stride, 1);
    return;
  }
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(load(from + i), p + i);
  if (i < n)
    store_first(load_first(from + i, static_cast<std::size_t>(n - i)), p + i,
                static_cast<std::size_t>(n - i));
}

void store_f64(const float* from, void* to, std::int64_t stride, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) static_cast<double*>(to)[i * stride] = static_cast<double>(from[i]);
}

void store_i64(const float* from, void* to, std::int64_t stride, std::int64_t n) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max(),
                 least = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = from[i];
    static_cast<std::int64_t*>(to)[i * stride] = std::isnan(v)  ? 0
                                                 : v >= 0x1p63f ? most
                                                 : v < -0x1p63f ? least
                                                                : static_cast<std::int64_t>(v);
  }
}

StoreLoop* store_of(ElementType type) {
  switch (type) {
    case ElementType::f32: return store_loop<float>;
    case ElementType::bf16: return store_loop<bf16>;
    case ElementType::f16: return store_loop<f16>;
    case ElementType::i32: return store_loop<std::int32_t>;
    case ElementType::u8: return store_loop<std::uint8_t>;
    case ElementType::i8: return store_loop<std::int8_t>;
    case ElementType::boolean: return store_loop<bool>;
    case ElementType::f64: return store_f64;
    case ElementType::i64: return store_i64;
    default: return nullptr;
  }
}

const VectorLoops* loops() {
  static constexpr VectorLoops table{loop_of, load_of, store_of, load_rows};
  return &table;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops);

const VectorLoops& vector_loops() { return *SUPERSTEP_VECTOR_FUNCTION(loops)(); }

}  // namespace superstep::kernels
#endif
