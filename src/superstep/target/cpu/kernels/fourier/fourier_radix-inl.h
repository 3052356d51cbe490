// Transforms of a few numbers in registers, one line a lane, for each instruction set.
#if defined(SUPERSTEP_FOURIER_RADIX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_FOURIER_RADIX_INL_H
#undef SUPERSTEP_FOURIER_RADIX_INL_H
#else
#define SUPERSTEP_FOURIER_RADIX_INL_H
#endif

#include <array>
#include <cmath>
#include <numbers>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

struct VectorPair {
  V re, im;
};

HWY_INLINE VectorPair plus(const VectorPair& a, const VectorPair& b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
HWY_INLINE VectorPair minus(const VectorPair& a, const VectorPair& b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
HWY_INLINE VectorPair times(const VectorPair& a, V re, V im) {
  return {hn::NegMulAdd(a.im, im, hn::Mul(a.re, re)), hn::MulAdd(a.im, re, hn::Mul(a.re, im))};
}
// -i a.
HWY_INLINE VectorPair turned(const VectorPair& a) { return {a.im, hn::Neg(a.re)}; }

HWY_INLINE void transform_four(VectorPair& a0, VectorPair& a1, VectorPair& a2, VectorPair& a3) {
  const VectorPair even = plus(a0, a2), difference = minus(a0, a2), odd = plus(a1, a3),
                   quarter = turned(minus(a1, a3));
  a0 = plus(even, odd);
  a1 = plus(difference, quarter);
  a2 = minus(even, odd);
  a3 = minus(difference, quarter);
}

HWY_INLINE void transform_eight(VectorPair* a) {
  VectorPair e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6], o0 = a[1], o1 = a[3], o2 = a[5], o3 = a[7];
  transform_four(e0, e1, e2, e3);
  transform_four(o0, o1, o2, o3);
  const V half = constant(std::numbers::sqrt2_v<float> / 2);
  // times e^(-pi i / 4), -i and e^(-3 pi i / 4)
  const VectorPair t1{hn::Mul(hn::Add(o1.re, o1.im), half), hn::Mul(hn::Sub(o1.im, o1.re), half)};
  const VectorPair t2 = turned(o2);
  const VectorPair t3{hn::Mul(hn::Sub(o3.im, o3.re), half), hn::Neg(hn::Mul(hn::Add(o3.re, o3.im), half))};
  a[0] = plus(e0, o0), a[4] = minus(e0, o0);
  a[1] = plus(e1, t1), a[5] = minus(e1, t1);
  a[2] = plus(e2, t2), a[6] = minus(e2, t2);
  a[3] = plus(e3, t3), a[7] = minus(e3, t3);
}

template <int R>
struct OddRoots {
  std::array<float, R> cosine, sine;  // of 2 pi k / R
};
template <int R>
inline const OddRoots<R>& odd_roots() {
  static const OddRoots<R> roots = [] {
    OddRoots<R> r;
    for (int k = 0; k < R; ++k) {
      r.cosine[static_cast<std::size_t>(k)] = static_cast<float>(std::cos(2 * std::numbers::pi * k / R));
      r.sine[static_cast<std::size_t>(k)] = static_cast<float>(std::sin(2 * std::numbers::pi * k / R));
    }
    return r;
  }();
  return roots;
}

// Sums and differences of the elements k and R - k, and with them the results j and R - j.
template <int R>
HWY_INLINE void transform_odd(VectorPair* a, const OddRoots<R>& roots) {
  constexpr std::size_t half = (R - 1) / 2;
  VectorPair sums[half], differences[half];
  VectorPair first = a[0];
  unrolled<half>([&](auto k) SUPERSTEP_INLINE_LAMBDA {
    sums[k] = plus(a[k + 1], a[R - 1 - k]);
    differences[k] = minus(a[k + 1], a[R - 1 - k]);
    first = plus(first, sums[k]);
  });
  const VectorPair zero = a[0];
  a[0] = first;
  unrolled<half>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
    VectorPair even = zero, odd{hn::Zero(f32_tag), hn::Zero(f32_tag)};
    unrolled<half>([&](auto k) SUPERSTEP_INLINE_LAMBDA {
      constexpr std::size_t at = (decltype(j)::value + 1) * (decltype(k)::value + 1) % R;
      const V cosine = constant(roots.cosine[at]), sine = constant(roots.sine[at]);
      even = {hn::MulAdd(sums[k].re, cosine, even.re), hn::MulAdd(sums[k].im, cosine, even.im)};
      odd = {hn::MulAdd(differences[k].re, sine, odd.re), hn::MulAdd(differences[k].im, sine, odd.im)};
    });
    a[j + 1] = plus(even, turned(odd));
    a[R - 1 - j] = minus(even, turned(odd));
  });
}

// a[j] = sum over k of a[k] e^(-2 pi i j k / R).
template <int R>
HWY_INLINE void transform_radix(VectorPair* a) {
  if constexpr (R == 2) {
    const VectorPair b = minus(a[0], a[1]);
    a[0] = plus(a[0], a[1]);
    a[1] = b;
  } else if constexpr (R == 4) {
    transform_four(a[0], a[1], a[2], a[3]);
  } else if constexpr (R == 8) {
    transform_eight(a);
  } else {
    transform_odd<R>(a, odd_roots<R>());
  }
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
