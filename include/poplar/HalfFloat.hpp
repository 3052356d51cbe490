// Half-precision numbers of codelets: 16 bits in memory, computed in single precision.
#ifndef poplar_HalfFloat_hpp
#define poplar_HalfFloat_hpp

#include <cmath>
#include <limits>

#ifdef __FLT16_MAX__
__extension__ typedef _Float16 half;
namespace poplar {
using ::half;
}

namespace std {

#ifndef __STDCPP_FLOAT16_T__
template <>
class numeric_limits<half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, is_iec559 = true;
  static constexpr bool is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr float_round_style round_style = round_to_nearest;
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5, radix = 2;
  static constexpr int min_exponent = -13, min_exponent10 = -4, max_exponent = 16, max_exponent10 = 4;
  static constexpr half min() noexcept { return static_cast<half>(6.103515625e-05f); }  // 2^-14
  static constexpr half max() noexcept { return static_cast<half>(65504.0f); }
  static constexpr half lowest() noexcept { return static_cast<half>(-65504.0f); }
  static constexpr half epsilon() noexcept { return static_cast<half>(9.765625e-04f); }  // 2^-10
  static constexpr half round_error() noexcept { return static_cast<half>(0.5f); }
  static constexpr half infinity() noexcept { return static_cast<half>(__builtin_huge_valf()); }
  static constexpr half quiet_NaN() noexcept { return static_cast<half>(__builtin_nanf("")); }
  static constexpr half signaling_NaN() noexcept { return static_cast<half>(__builtin_nansf("")); }
  static constexpr half denorm_min() noexcept { return static_cast<half>(5.9604644775390625e-08f); }  // 2^-24
};

// Of the library's functions, in single precision and rounded.
#define POPLAR_HALF_FUNCTION(name) \
  inline half name(half x) { return static_cast<half>(name(static_cast<float>(x))); }
POPLAR_HALF_FUNCTION(abs)
POPLAR_HALF_FUNCTION(fabs)
POPLAR_HALF_FUNCTION(sqrt)
POPLAR_HALF_FUNCTION(cbrt)
POPLAR_HALF_FUNCTION(exp)
POPLAR_HALF_FUNCTION(exp2)
POPLAR_HALF_FUNCTION(expm1)
POPLAR_HALF_FUNCTION(log)
POPLAR_HALF_FUNCTION(log2)
POPLAR_HALF_FUNCTION(log10)
POPLAR_HALF_FUNCTION(log1p)
POPLAR_HALF_FUNCTION(sin)
POPLAR_HALF_FUNCTION(cos)
POPLAR_HALF_FUNCTION(tan)
POPLAR_HALF_FUNCTION(asin)
POPLAR_HALF_FUNCTION(acos)
POPLAR_HALF_FUNCTION(atan)
POPLAR_HALF_FUNCTION(sinh)
POPLAR_HALF_FUNCTION(cosh)
POPLAR_HALF_FUNCTION(tanh)
POPLAR_HALF_FUNCTION(erf)
POPLAR_HALF_FUNCTION(ceil)
POPLAR_HALF_FUNCTION(floor)
POPLAR_HALF_FUNCTION(trunc)
POPLAR_HALF_FUNCTION(round)
POPLAR_HALF_FUNCTION(rint)
POPLAR_HALF_FUNCTION(nearbyint)
#undef POPLAR_HALF_FUNCTION
inline half pow(half x, half y) {
  return static_cast<half>(pow(static_cast<float>(x), static_cast<float>(y)));
}
inline half fmod(half x, half y) {
  return static_cast<half>(fmod(static_cast<float>(x), static_cast<float>(y)));
}
inline half fmin(half x, half y) {
  return static_cast<half>(fmin(static_cast<float>(x), static_cast<float>(y)));
}
inline half fmax(half x, half y) {
  return static_cast<half>(fmax(static_cast<float>(x), static_cast<float>(y)));
}
inline bool isnan(half x) { return isnan(static_cast<float>(x)); }
inline bool isinf(half x) { return isinf(static_cast<float>(x)); }
inline bool isfinite(half x) { return isfinite(static_cast<float>(x)); }
inline bool signbit(half x) { return signbit(static_cast<float>(x)); }
#endif

}  // namespace std

// The C library's header declares these globally.
using std::abs;
using std::ceil;
using std::cos;
using std::exp;
using std::fabs;
using std::floor;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::log;
using std::pow;
using std::rint;
using std::round;
using std::sin;
using std::sqrt;
using std::tan;
using std::tanh;
using std::trunc;
#endif

#endif
