// Elementary functions over vectors, for each instruction set. Polynomials were fitted by the Remez
// exchange algorithm to the least maximal relative error on the interval named.
#if defined(SUPERSTEP_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_VECTOR_MATH_INL_H
#undef SUPERSTEP_VECTOR_MATH_INL_H
#else
#define SUPERSTEP_VECTOR_MATH_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>

#include <limits>

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

HWY_INLINE V horner(V, V c) { return c; }
template <class... Rest>
HWY_INLINE V horner(V x, V c, Rest... rest) {
  return hn::MulAdd(horner(x, rest...), x, c);
}

// exp(x) = 2^n exp(r), r = x - n ln 2 in two steps (Cody and Waite), |r| <= ln(2)/2.
struct ExpParts {
  VI shifted;  // n in the lowest bits
  V p;         // exp(r)
};
HWY_INLINE ExpParts exp_parts(V x) {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum.
  const V magic = constant(12582912.0f);
  const V sum = hn::MulAdd(x, constant(1.44269504f), magic);
  const V n = hn::Sub(sum, magic);
  const V r = hn::NegMulAdd(n, constant(-2.12194440e-4f), hn::NegMulAdd(n, constant(0.693359375f), x));
  const V p = horner(r, constant(1), constant(1), constant(4.999999343e-01f), constant(1.666652040e-01f),
                     constant(4.166839079e-02f), constant(8.368745108e-03f), constant(1.381454009e-03f));
  return {hn::BitCast(i32_tag, sum), p};
}

// x times 2^n by adding n to the exponent, where the result is a normal number.
HWY_INLINE V scale_exponent(V x, VI n) {
  return hn::BitCast(f32_tag, hn::Add(hn::BitCast(i32_tag, x), hn::ShiftLeft<23>(n)));
}

// For x below 88: at most 2 ulp; results below the smallest normal number are 0. -inf gives 0, NaN NaN.
HWY_INLINE V exp_negative(V x) {
  const ExpParts e = exp_parts(x);
  return hn::IfThenElseZero(hn::Not(hn::Lt(x, constant(-87.3f))), scale_exponent(e.p, e.shifted));
}

// Every x: at most 2 ulp, subnormal results to half a unit of theirs, overflow to infinity.
HWY_INLINE V exp(V x) {
  const ExpParts e = exp_parts(min_or_second(constant(89), max_or_second(constant(-104.5f), x)));
  // Two factors, because 2^n alone may leave the range.
  const VI n = hn::ShiftRight<9>(hn::ShiftLeft<9>(e.shifted));
  const VI half = hn::ShiftRight<1>(n), rest = hn::Sub(n, half);
  return hn::Mul(scale_exponent(e.p, half), scale_exponent(constant(1), rest));
}

// Results below the smallest normal number are 0.
HWY_INLINE V sigmoid(V x) {
  const Mask vanishes = hn::Lt(x, constant(-87.3f));
#if HWY_TARGET == HWY_AVX3
  // exp(-x) = 2^n exp(-r), r = x + n ln 2; the instruction that scales by 2^n takes care of its range. The
  // reciprocal is an estimate of 14 bits and one step of Newton's: a third of the time of a division.
  const V magic = constant(12582912.0f), one = constant(1);
  const V n = hn::Sub(hn::MulAdd(x, constant(-1.44269504f), magic), magic);
  const V r = hn::MulAdd(n, constant(-2.12194440e-4f), hn::MulAdd(n, constant(0.693359375f), x));
  const V p = horner(r, one, constant(-1), constant(4.999999343e-01f), constant(-1.666652040e-01f),
                     constant(4.166839079e-02f), constant(-8.368745108e-03f), constant(1.381454009e-03f));
  const V d = hn::Add(one, V{_mm512_scalef_ps(p.raw, n.raw)});
  const V estimate = hn::ApproximateReciprocal(d);
  const V s = hn::MulAdd(estimate, hn::NegMulAdd(d, estimate, one), estimate);
#else
  // From exp(-|x|), which cannot overflow.
  const V e = exp_negative(hn::Neg(hn::Abs(x)));
  const V q = hn::Div(constant(1), hn::Add(constant(1), e));
  const V s = hn::IfThenElse(hn::Lt(x, hn::Zero(f32_tag)), hn::Mul(e, q), q);
#endif
  return hn::IfThenElseZero(hn::Not(vanishes), s);
}

// The sigmoid that silu multiplies by, of x from -87 on: within 4e-7 of itself above -20 and 1.2e-6 below,
// where silu is 1e-8 and less, and within 1e-7 anywhere.
HWY_INLINE V sigmoid_for_silu(V x) {
#if HWY_TARGET == HWY_AVX3
  // As above with 2^f instead of exp(r), one step and one term less.
  const V magic = constant(12582912.0f), one = constant(1), per_bit = constant(-1.44269504f);
  const V n = hn::Sub(hn::MulAdd(x, per_bit, magic), magic);
  const V f = hn::MulSub(x, per_bit, n);
  const V p = horner(f, constant(1.000000072e+00f), constant(6.931469671e-01f), constant(2.402211972e-01f),
                     constant(5.550713274e-02f), constant(9.675541334e-03f), constant(1.327647187e-03f));
  const V d = hn::Add(one, V{_mm512_scalef_ps(p.raw, n.raw)});
  const V estimate = hn::ApproximateReciprocal(d);
  return hn::MulAdd(estimate, hn::NegMulAdd(d, estimate, one), estimate);
#else
  return sigmoid(x);
#endif
}

// What silu(x) and its slope are taken at: below -87 they are less than 1.5e-36. NaN stays NaN.
HWY_INLINE V silu_domain(V x) { return max_or_second(constant(-87), x); }

HWY_INLINE V silu(V x) {
  const V inside = silu_domain(x);
  return hn::Mul(inside, sigmoid_for_silu(inside));
}

HWY_INLINE V silu_slope(V x) {
  const V inside = silu_domain(x), s = sigmoid_for_silu(inside);
  return hn::MulAdd(hn::Mul(inside, s), hn::Sub(constant(1), s), s);
}

// e / (e + 2) with e = exp(2x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), which keeps its digits near 0; beyond 9.1
// the result is 1.
HWY_INLINE V tanh(V x) {
  const V magic = constant(12582912.0f), one = constant(1);
  const V a = min_or_second(constant(9.1f), max_or_second(constant(-9.1f), x));
  const V sum = hn::MulAdd(a, constant(2.88539008f), magic), n = hn::Sub(sum, magic);
  const V r =
      hn::NegMulAdd(n, constant(-2.12194440e-4f), hn::NegMulAdd(n, constant(0.693359375f), hn::Add(a, a)));
  const V q = horner(r, constant(4.999999343e-01f), constant(1.666652040e-01f), constant(4.166839079e-02f),
                     constant(8.368745108e-03f), constant(1.381454009e-03f));
#if HWY_TARGET == HWY_AVX3
  const V scale = V{_mm512_scalef_ps(one.raw, n.raw)};
#else
  // |n| is 26 at most.
  const V scale = scale_exponent(one, hn::BitCast(i32_tag, sum));
#endif
  const V e = hn::MulAdd(scale, hn::MulAdd(hn::Mul(q, r), r, r), hn::Sub(scale, one));
  const V d = hn::Add(e, constant(2));
#if HWY_TARGET == HWY_AVX3
  // An estimate of 14 bits and one step of Newton's.
  const V estimate = hn::ApproximateReciprocal(d);
  const V start = hn::Mul(e, estimate);
  const V quotient = hn::MulAdd(hn::NegMulAdd(d, start, e), estimate, start);
#else
  const V quotient = hn::Div(e, d);
#endif
  return hn::CopySign(quotient, x);
}

HWY_INLINE V erf(V x) {
  const V a = hn::Abs(x), s = hn::Mul(x, x);
  // |x| < 0.95: odd polynomial; above: erfc = exp(-p(|x|)), 1 from 3.95 on.
  const V q = horner(s, constant(1.128379166e+00f), constant(-3.761263069e-01f), constant(1.128365079e-01f),
                     constant(-2.685702290e-02f), constant(5.195372870e-03f), constant(-8.080975060e-04f),
                     constant(8.119053542e-05f));
  const V t = min_or_second(constant(3.95f), a);
  const V p = horner(t, constant(1.956758032e-04f), constant(1.127675626e+00f), constant(6.371822488e-01f),
                     constant(1.039315954e-01f), constant(-2.222691956e-02f), constant(3.043217179e-03f),
                     constant(-1.959372137e-04f));
  const V large = hn::Sub(constant(1), exp_negative(hn::Neg(p)));
  return hn::IfThenElse(hn::Lt(a, constant(0.95f)), hn::Mul(x, q), hn::CopySign(large, x));
}

// At most 2 ulp; 0 gives minus infinity, negative values NaN.
HWY_INLINE V log(V x) {
  const V zero = hn::Zero(f32_tag), infinity = constant(std::numeric_limits<float>::infinity());
  const V inside = hn::Log(f32_tag, x);
  const V edge =
      hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), constant(std::numeric_limits<float>::quiet_NaN()));
  const V low = hn::IfThenElse(hn::Le(x, zero), edge, inside);
  return hn::IfThenElse(hn::Lt(x, infinity), low, hn::Add(x, x));  // infinity and NaN stay
}

HWY_INLINE V softplus(V x) {  // log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))
  const V e = exp_negative(hn::Neg(hn::Abs(x)));
  return hn::Add(max_or_second(hn::Zero(f32_tag), x), hn::Log1p(f32_tag, e));
}

HWY_INLINE V clamp(V x, V low, V high) { return min_or_second(high, max_or_second(low, x)); }

HWY_INLINE V hard_swish(V x) {
  return hn::Mul(x,
                 clamp(hn::MulAdd(x, constant(1.0f / 6.0f), constant(0.5f)), hn::Zero(f32_tag), constant(1)));
}

// erf(x / sqrt 2) / 2, the normal distribution's function less a half, of GELU alone: within 1.5e-7 (erf
// above: 6e-8), and half of the instructions. What GELU multiplies by is near 1/2 where this is near 0, so
// that no more digits of small results are wanted. An odd quotient of two polynomials in x^2, 7e-9 from the
// function up to 5.5, all coefficients positive: nothing cancels; from 5.42 on it is +-1/2, exactly.
HWY_INLINE V half_erf_for_gelu(V x) {
  const V half = constant(0.5f), far = constant(5.9f);
  const V t = min_or_second(far, max_or_second(hn::Neg(far), x)), s = hn::Mul(t, t);
  const V p =
      horner(s, constant(3.98942234639e-01f), constant(3.38530180769e-02f), constant(4.67728453919e-03f),
             constant(1.68829562111e-04f), constant(6.35215070675e-06f), constant(2.27491532279e-08f));
  const V q =
      horner(s, constant(1), constant(2.51522850679e-01f), constant(2.86460869065e-02f),
             constant(1.88446694545e-03f), constant(7.36487781390e-05f), constant(1.19750017219e-06f));
  const V numerator = hn::Mul(t, p);
#if HWY_TARGET == HWY_AVX3
  // An estimate of 14 bits and one step of Newton's.
  const V estimate = hn::ApproximateReciprocal(q);
  const V start = hn::Mul(numerator, estimate);
  const V quotient = hn::MulAdd(hn::NegMulAdd(q, start, numerator), estimate, start);
#else
  const V quotient = hn::Div(numerator, q);
#endif
  return min_or_second(half, max_or_second(hn::Neg(half), quotient));
}

// x (1 + erf(x / sqrt 2)) / 2, within 1.5e-7 |x| and a rounding; beyond 5.5 x and, on the other side, 0.
HWY_INLINE V gelu_erf(V x) { return hn::Mul(x, hn::Add(constant(0.5f), half_erf_for_gelu(x))); }

// The inner function of the tanh form of GELU, sqrt(2/pi) (x + 0.044715 x^3).
HWY_INLINE V gelu_argument(V x) {
  return hn::Mul(hn::Mul(constant(0.7978845608f), x),
                 hn::MulAdd(constant(0.044715f), hn::Mul(x, x), constant(1)));
}

HWY_INLINE V gelu_tanh(V x) {
  return hn::Mul(hn::Mul(constant(0.5f), x), hn::Add(constant(1), tanh(gelu_argument(x))));
}

inline HWY_NOINLINE V activate_slow(V x, Activation activation, V alpha, V beta) {
  const V zero = hn::Zero(f32_tag), one = constant(1);
  switch (activation) {
    case Activation::sigmoid: return sigmoid(x);
    case Activation::tanh: return tanh(x);
    case Activation::gelu_erf: return gelu_erf(x);
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::silu: return silu(x);
    case Activation::elu: return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, hn::Sub(exp(x), one)), x);
    case Activation::softplus: return softplus(x);
    case Activation::hard_sigmoid: return clamp(hn::MulAdd(alpha, x, beta), zero, one);
    case Activation::hard_swish: return hard_swish(x);
    case Activation::clip: return clamp(x, alpha, beta);
    default: return x;
  }
}

// activation'(x) of the functions whose derivative needs the input.
inline HWY_NOINLINE V derivative_from_input(V x, Activation activation, V alpha, V beta) {
  const V zero = hn::Zero(f32_tag), one = constant(1), half = constant(0.5f);
  switch (activation) {
    case Activation::relu: return hn::IfThenElseZero(hn::Gt(x, zero), one);
    case Activation::leaky_relu: return hn::IfThenElse(hn::Gt(x, zero), one, alpha);
    case Activation::sigmoid: {
      const V s = sigmoid(x);
      return hn::Mul(s, hn::Sub(one, s));
    }
    case Activation::tanh: {
      const V t = tanh(x);
      return hn::NegMulAdd(t, t, one);
    }
    case Activation::gelu_erf: {
      const V phi = hn::Mul(constant(0.3989422804f), exp_negative(hn::Mul(hn::Mul(x, x), constant(-0.5f))));
      const V cdf = hn::Add(half, half_erf_for_gelu(x));
      return hn::MulAdd(x, phi, cdf);
    }
    case Activation::gelu_tanh: {
      const V t = tanh(gelu_argument(x));
      const V slope =
          hn::Mul(constant(0.7978845608f), hn::MulAdd(constant(3 * 0.044715f), hn::Mul(x, x), one));
      const V edge = hn::Mul(hn::Mul(half, x), hn::Mul(hn::NegMulAdd(t, t, one), slope));
      return hn::MulAdd(half, hn::Add(one, t), edge);
    }
    case Activation::silu: return silu_slope(x);
    case Activation::hard_sigmoid: {
      const V y = hn::MulAdd(alpha, x, beta);
      return hn::IfThenElseZero(hn::And(hn::Gt(y, zero), hn::Lt(y, one)), alpha);
    }
    case Activation::hard_swish: {
      const V inner = hn::MulAdd(x, constant(1.0f / 3.0f), half);
      const V three = constant(3);
      return hn::IfThenElse(hn::Ge(x, three), one, hn::IfThenElseZero(hn::Gt(x, hn::Neg(three)), inner));
    }
    case Activation::clip: return hn::IfThenElseZero(hn::And(hn::Ge(x, alpha), hn::Le(x, beta)), one);
    case Activation::elu: return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, exp(x)), one);
    case Activation::softplus: return sigmoid(x);
    default: return one;
  }
}

// activation'(.) from the activation's output y.
HWY_INLINE V derivative_from_output(V y, Activation activation, V alpha, V beta) {
  const V zero = hn::Zero(f32_tag), one = constant(1);
  switch (activation) {
    case Activation::relu: return hn::IfThenElseZero(hn::Gt(y, zero), one);
    case Activation::leaky_relu: return hn::IfThenElse(hn::Gt(y, zero), one, alpha);
    case Activation::sigmoid: return hn::Mul(y, hn::Sub(one, y));
    case Activation::tanh: return hn::NegMulAdd(y, y, one);
    case Activation::hard_sigmoid: return hn::IfThenElseZero(hn::And(hn::Gt(y, zero), hn::Lt(y, one)), alpha);
    case Activation::clip: return hn::IfThenElseZero(hn::And(hn::Gt(y, alpha), hn::Lt(y, beta)), one);
    case Activation::elu: return hn::IfThenElse(hn::Lt(y, zero), hn::Add(y, alpha), one);
    default: return one;
  }
}

HWY_INLINE V activate(V x, Activation activation, V alpha, V beta) {
  const V zero = hn::Zero(f32_tag);
  if (activation == Activation::relu) return max_or_second(zero, x);
  if (activation == Activation::leaky_relu) return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, x), x);
  return activate_slow(x, activation, alpha, beta);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
