// Functions that are computed in f64 and rounded once: trigonometry, hyperbolic functions, powers. For each
// instruction set, hence the odd guard. Every result is within 1 ulp of f32.
#if defined(SUPERSTEP_VECTOR_FUNCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_VECTOR_FUNCTIONS_INL_H
#undef SUPERSTEP_VECTOR_FUNCTIONS_INL_H
#else
#define SUPERSTEP_VECTOR_FUNCTIONS_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <limits>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// One value at a time the standard library is as quick.
struct WideSin {};
using WideCos = WideSin;
using WideTan = WideSin;
using WideAsin = WideSin;
using WideAcos = WideSin;
using WideAtan = WideSin;
using WideSinh = WideSin;
using WideCosh = WideSin;
using WideAsinh = WideSin;
using WideAcosh = WideSin;
using WideAtanh = WideSin;

#else

using D = hn::Repartition<double, F>;
using VD = hn::Vec<D>;
constexpr D f64_tag;

HWY_INLINE VD wide(double value) { return hn::Set(f64_tag, value); }
HWY_INLINE VD horner_wide(VD, VD c) { return c; }
template <class... Rest>
HWY_INLINE VD horner_wide(VD x, VD c, Rest... rest) {
  return hn::MulAdd(horner_wide(x, rest...), x, c);
}

template <class Function, class... Vectors>
HWY_INLINE V through_f64(const Function& function, Vectors... x) {
  const hn::Half<F> half;
  const auto low = hn::DemoteTo(half, function(hn::PromoteTo(f64_tag, hn::LowerHalf(half, x))...));
  const auto high = hn::DemoteTo(half, function(hn::PromoteTo(f64_tag, hn::UpperHalf(half, x))...));
  return hn::Combine(f32_tag, high, low);
}

// sin and cos of x = q pi/2 + r, |r| <= pi/4: q from x 2/pi, r in two steps (Cody and Waite), which a fused
// multiply-add makes exact to 2^-75 for |x| < 2^30. The series of Taylor end below 2^-37 of the result.
struct Angle {
  VD sine, cosine;                          // of r
  hn::Vec<hn::RebindToSigned<D> > quarter;  // q in the lowest bits
};
HWY_INLINE Angle angle_of(VD x) {
  const VD magic = wide(0x1.8p52), sum = hn::MulAdd(x, wide(0x1.45f306dc9c883p-1), magic);
  const VD q = hn::Sub(sum, magic);
  const VD r = hn::NegMulAdd(q, wide(0x1.1a62633145c07p-54), hn::NegMulAdd(q, wide(0x1.921fb54442d18p0), x));
  const VD s = hn::Mul(r, r);
  const VD odd = horner_wide(s, wide(-1.0 / 6), wide(1.0 / 120), wide(-1.0 / 5040), wide(1.0 / 362880),
                             wide(-1.0 / 39916800));
  const VD even = horner_wide(s, wide(-1.0 / 2), wide(1.0 / 24), wide(-1.0 / 720), wide(1.0 / 40320),
                              wide(-1.0 / 3628800));
  return {hn::MulAdd(hn::Mul(r, s), odd, r), hn::MulAdd(s, even, wide(1)),
          hn::BitCast(hn::RebindToSigned<D>(), sum)};
}

// Every second quarter the other function, every second half the other sign.
HWY_INLINE VD at_quarter(hn::Vec<hn::RebindToSigned<D> > q, VD even, VD odd) {
  const hn::RebindToSigned<D> tag;
  const auto is_odd = hn::RebindMask(f64_tag, hn::TestBit(q, hn::Set(tag, 1)));
  const VD sign = hn::BitCast(f64_tag, hn::ShiftLeft<62>(hn::And(q, hn::Set(tag, 2))));
  return hn::Xor(hn::IfThenElse(is_odd, odd, even), sign);
}

struct WideSin {
  HWY_INLINE VD operator()(VD x) const {
    const Angle angle = angle_of(x);
    return at_quarter(angle.quarter, angle.sine, angle.cosine);
  }
};
struct WideCos {
  HWY_INLINE VD operator()(VD x) const {
    const Angle angle = angle_of(x);
    const hn::RebindToSigned<D> tag;
    return at_quarter(hn::Add(angle.quarter, hn::Set(tag, 1)), angle.sine, angle.cosine);
  }
};
struct WideTan {
  HWY_INLINE VD operator()(VD x) const {
    const Angle angle = angle_of(x);
    const hn::RebindToSigned<D> tag;
    const auto is_odd = hn::RebindMask(f64_tag, hn::TestBit(angle.quarter, hn::Set(tag, 1)));
    const VD above = hn::IfThenElse(is_odd, hn::Neg(angle.cosine), angle.sine),
             below = hn::IfThenElse(is_odd, angle.sine, angle.cosine);
    return hn::Div(above, below);
  }
};

// atan x = atan t + a multiple of pi/4, |t| <= tan(pi/8), by the addition theorem; atan(t)/t by the
// polynomial in t^2 of the least largest error (2^-40 of the result; by Remez's algorithm, with one as its
// first coefficient).
struct WideAtan {
  HWY_INLINE VD operator()(VD x) const {
    const VD size = hn::Abs(x), one = wide(1);
    const auto small = hn::Lt(size, wide(0x1.a827999fcef32p-2)),
               large = hn::Gt(size, wide(0x1.3504f333f9de6p1));
    const VD above = hn::IfThenElse(small, size, hn::IfThenElse(large, wide(-1), hn::Sub(size, one)));
    const VD below = hn::IfThenElse(small, one, hn::IfThenElse(large, size, hn::Add(size, one)));
    const VD start = hn::IfThenZeroElse(
        small, hn::IfThenElse(large, wide(0x1.921fb54442d18p0), wide(0x1.921fb54442d18p-1)));
    const VD t = hn::Div(above, below), s = hn::Mul(t, t);
    const VD rest =
        horner_wide(s, wide(-0x1.5555554ba2c1cp-2), wide(0x1.99999045843d1p-3), wide(-0x1.249091125df2dp-3),
                    wide(0x1.c6cc2802f0229p-4), wide(-0x1.70557dc179d2fp-4), wide(0x1.1da89250a2e2cp-4),
                    wide(-0x1.3474380309273p-5));
    return hn::CopySign(hn::Add(start, hn::MulAdd(hn::Mul(t, s), rest, t)), x);
  }
};

#define SUPERSTEP_WIDE(name, expression)                        \
  struct Wide##name {                                           \
    HWY_INLINE VD operator()(VD x) const { return expression; } \
  };
SUPERSTEP_WIDE(Asin, hn::Asin(f64_tag, x))
SUPERSTEP_WIDE(Acos, hn::Acos(f64_tag, x))
SUPERSTEP_WIDE(Sinh, hn::Sinh(f64_tag, x))
SUPERSTEP_WIDE(Cosh, hn::Mul(wide(0.5), hn::Add(hn::Exp(f64_tag, x), hn::Exp(f64_tag, hn::Neg(x)))))
SUPERSTEP_WIDE(Asinh, hn::Asinh(f64_tag, x))
SUPERSTEP_WIDE(Acosh, hn::Acosh(f64_tag, x))
SUPERSTEP_WIDE(Atanh, hn::Atanh(f64_tag, x))
#undef SUPERSTEP_WIDE

// x^y for x > 0. Beyond e^120 and e^-120 f32 has infinity and zero, which rounding makes of the ends.
struct WidePow {
  HWY_INLINE VD operator()(VD x, VD y) const {
    const VD logarithm = hn::Mul(y, hn::Log(f64_tag, x));
    return hn::Exp(f64_tag, hn::Min(wide(120), hn::Max(wide(-120), logarithm)));
  }
};

HWY_INLINE Mask is_between(V x, float low, float high) {
  return hn::And(hn::Ge(x, constant(low)), hn::Le(x, constant(high)));
}

#endif

// y = `function` where all elements of a vector lie in [low, high], else what the standard library gives in
// f64 (in f32 its results are off by up to two units): `rare`, which is right everywhere.
template <class Function, class Rare>
HWY_INLINE void function_loop(const float* x, float* y, std::int64_t n, [[maybe_unused]] float low,
                              [[maybe_unused]] float high, [[maybe_unused]] const Function& function,
                              const Rare& rare) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (; i < n; i += width) {
    const std::int64_t count = std::min(width, n - i);
    const auto first = static_cast<std::size_t>(count);
    const V v = load_first(x + i, first);
    if (hn::AllTrue(f32_tag, hn::Or(hn::Not(hn::FirstN(f32_tag, first)), is_between(v, low, high))))
      store_first(through_f64(function, v), y + i, first);
    else
      for (std::int64_t k = i; k < i + count; ++k) y[k] = rare(x[k]);
  }
#endif
  for (; i < n; ++i) y[i] = rare(x[i]);
}

HWY_INLINE float power(float a, float b) {
  return static_cast<float>(std::pow(static_cast<double>(a), static_cast<double>(b)));
}

// a^b; by products and roots elsewhere where b is a constant that allows it.
inline void power_loop(const float* a, const float* b, float* y, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr auto width = static_cast<std::int64_t>(lanes);
  constexpr float least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
  for (; i < n; i += width) {
    const std::int64_t count = std::min(width, n - i);
    const auto first = static_cast<std::size_t>(count);
    const V base = load_first(a + i, first), exponent = load_first(b + i, first);
    const Mask plain = hn::And(is_between(base, least, most), is_between(exponent, -most, most));
    if (hn::AllTrue(f32_tag, hn::Or(hn::Not(hn::FirstN(f32_tag, first)), plain))) {
      store_first(through_f64(WidePow(), base, exponent), y + i, first);
    } else {
      for (std::int64_t k = i; k < i + count; ++k) y[k] = power(a[k], b[k]);
    }
  }
#endif
  for (; i < n; ++i) y[i] = power(a[i], b[i]);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
