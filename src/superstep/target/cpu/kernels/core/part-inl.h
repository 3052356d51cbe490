// Parts of vectors: lanes behind them are neither read nor written. Compiled once an instruction set.
#if defined(SUPERSTEP_PART_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_PART_INL_H
#undef SUPERSTEP_PART_INL_H
#else
#define SUPERSTEP_PART_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// The first `n` elements, zeros behind them; n in [1, lanes].
template <class D, class T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_part(D d, const T* p, std::size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#else
  // Where no instruction leaves lanes out, Highway reads and writes whole vectors: memory behind the part
  // may be another's, or nobody's.
  HWY_ALIGN T buffer[hn::MaxLanes(d)] = {};
  std::memcpy(buffer, p, n * sizeof(T));
  return hn::Load(d, buffer);
#endif
}

template <class D, class T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store_part(hwy::HWY_NAMESPACE::Vec<D> v, D d, T* p, std::size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, n * sizeof(T));
#endif
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
