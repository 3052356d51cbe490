// Vectors of f32 as wide as the instruction set that this is compiled for, with loads and stores of every
// element type. Included once for each instruction set (see hwy/foreach_target.h), hence the odd guard;
// every kernel file that uses it is compiled for scalar, AVX2 and AVX-512, and picks one when a kernel is
// prepared.
#if defined(SUPERSTEP_VECTOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_VECTOR_INL_H
#undef SUPERSTEP_VECTOR_INL_H
#else
#define SUPERSTEP_VECTOR_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/core/part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using V = hn::Vec<F>;
using Mask = hn::Mask<F>;
using VI = hn::Vec<I>;
using VU = hn::Vec<U>;
constexpr F f32_tag;
constexpr I i32_tag;
constexpr U u32_tag;
constexpr std::size_t lanes = HWY_LANES(float);

// body(0), body(1), ... body(N - 1), each index a constant of its own type: arrays of vectors indexed so stay
// in registers, which the compiler does not promise for loops.
template <std::size_t... i, class Body>
HWY_INLINE void unrolled(const Body& body, std::index_sequence<i...>) {
  (body(std::integral_constant<std::size_t, i>()), ...);
}
template <std::size_t N, class Body>
HWY_INLINE void unrolled(const Body& body) {
  unrolled(body, std::make_index_sequence<N>());
}
#define SUPERSTEP_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

// The same vector, in a register: keeps the compiler from reading it from memory again at each use.
HWY_INLINE V in_register(V v) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#elif HWY_TARGET == HWY_AVX2
  asm("" : "+x"(v.raw));
#endif
  return v;
}

HWY_INLINE V constant(float value) { return hn::Set(f32_tag, value); }

// The first `n` of `lanes` elements; those behind are not touched. n in [1, lanes].
HWY_INLINE V load_first(const float* p, std::size_t n) {
  return n == lanes ? hn::LoadU(f32_tag, p) : load_part(f32_tag, p, n);
}
HWY_INLINE void store_first(V v, float* p, std::size_t n) {
  if (n == lanes)
    hn::StoreU(v, f32_tag, p);
  else
    store_part(v, f32_tag, p, n);
}

// Full vectors of other types, converted to and from f32.
HWY_INLINE V load(const float* p) { return hn::LoadU(f32_tag, p); }
HWY_INLINE void store(V v, float* p) { hn::StoreU(v, f32_tag, p); }

HWY_INLINE V load(const bf16* p) {
  const hn::Rebind<std::uint16_t, F> half;
  const auto bits = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(p));
  return hn::BitCast(f32_tag, hn::ShiftLeft<16>(hn::PromoteTo(u32_tag, bits)));
}

// The 32 bits of each lane rounded to bf16 in their lower half: to nearest, ties to even; NaN stays NaN.
HWY_INLINE VU round_to_bf16(V v) {
  const VU bits = hn::BitCast(u32_tag, v);
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32_tag, 1));
  const VU rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(u32_tag, 0x7fff))));
  const VU quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(u32_tag, 0x40));
  const auto nan = hn::RebindMask(u32_tag, hn::IsNaN(v));
  return hn::IfThenElse(nan, quiet, rounded);
}

HWY_INLINE void store(V v, bf16* p) {
  const hn::Rebind<std::uint16_t, F> half;
#if HWY_TARGET == HWY_AVX3
  // Rounds as round_to_bf16() does, but for subnormal numbers, which become 0.
  if (converts_bf16) {
    hn::Vec<decltype(half)> narrow;
    asm("vcvtneps2bf16 %1, %0" : "=v"(narrow.raw) : "v"(v.raw));
    return hn::StoreU(narrow, half, reinterpret_cast<std::uint16_t*>(p));
  }
#endif
  // The upper halves are zero, so that a saturating conversion of signed values keeps the bits only below
  // 0x8000: truncate instead.
  hn::StoreU(hn::TruncateTo(half, round_to_bf16(v)), half, reinterpret_cast<std::uint16_t*>(p));
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE V load(const f16* p) { return hn::Set(f32_tag, static_cast<float>(*p)); }
HWY_INLINE void store(V v, f16* p) { *p = f16(hn::GetLane(v)); }
#else
HWY_INLINE V load(const f16* p) {
  const hn::Rebind<hwy::float16_t, F> half;
  return hn::PromoteTo(f32_tag, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
}
HWY_INLINE void store(V v, f16* p) {
  const hn::Rebind<hwy::float16_t, F> half;
  hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t*>(p));
}
#endif

// To the nearest f16 and back; beyond its range infinity.
HWY_INLINE V round_to_f16(V v) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(f32_tag, static_cast<float>(f16(hn::GetLane(v))));
#else
  const hn::Rebind<hwy::float16_t, F> half;
  return hn::PromoteTo(f32_tag, hn::DemoteTo(half, v));
#endif
}

HWY_INLINE V load(const std::int32_t* p) { return hn::ConvertTo(f32_tag, hn::LoadU(i32_tag, p)); }
HWY_INLINE V load(const std::uint8_t* p) {
  const hn::Rebind<std::uint8_t, F> bytes;
  return hn::ConvertTo(f32_tag, hn::PromoteTo(i32_tag, hn::LoadU(bytes, p)));
}
HWY_INLINE V load(const std::int8_t* p) {
  const hn::Rebind<std::int8_t, F> bytes;
  return hn::ConvertTo(f32_tag, hn::PromoteTo(i32_tag, hn::LoadU(bytes, p)));
}
HWY_INLINE V load(const bool* p) { return load(reinterpret_cast<const std::uint8_t*>(p)); }

// Truncates towards zero; what does not fit saturates; NaN gives 0.
HWY_INLINE VI to_integer(V v, float low, float high) {
  const V clamped = hn::Min(hn::Max(v, constant(low)), constant(high));
  return hn::ConvertTo(i32_tag, hn::IfThenElse(hn::IsNaN(v), hn::Zero(f32_tag), clamped));
}
HWY_INLINE void store(V v, std::int32_t* p) {
  const VI inside = to_integer(v, -2147483648.0f, 2147483520.0f);
  const auto above = hn::RebindMask(i32_tag, hn::Ge(v, constant(2147483648.0f)));
  hn::StoreU(hn::IfThenElse(above, hn::Set(i32_tag, 2147483647), inside), i32_tag, p);
}
HWY_INLINE void store(V v, std::uint8_t* p) {
  const hn::Rebind<std::uint8_t, F> bytes;
  hn::StoreU(hn::DemoteTo(bytes, to_integer(v, 0, 255)), bytes, p);
}
HWY_INLINE void store(V v, std::int8_t* p) {
  const hn::Rebind<std::int8_t, F> bytes;
  hn::StoreU(hn::DemoteTo(bytes, to_integer(v, -128, 127)), bytes, p);
}
HWY_INLINE void store(V v, bool* p) {
  const V one = hn::IfThenElseZero(hn::Ne(v, hn::Zero(f32_tag)), constant(1));
  store(one, reinterpret_cast<std::uint8_t*>(p));
}

#if HWY_TARGET == HWY_AVX3
HWY_INLINE V load_first(const bf16* p, std::size_t n) {
  const hn::Rebind<std::uint16_t, F> half;
  const auto bits = hn::MaskedLoad(hn::FirstN(half, n), half, reinterpret_cast<const std::uint16_t*>(p));
  return hn::BitCast(f32_tag, hn::ShiftLeft<16>(hn::PromoteTo(u32_tag, bits)));
}
#endif

// Parts of vectors of other types go through a buffer.
template <class T>
HWY_INLINE V load_first(const T* p, std::size_t n) {
  if (n >= lanes) return load(p);
  alignas(64) T buffer[lanes] = {};
  std::memcpy(buffer, p, n * sizeof(T));
  return load(buffer);
}
template <class T>
HWY_INLINE void store_first(V v, T* p, std::size_t n) {
  if (n >= lanes) return store(v, p);
  alignas(64) T buffer[lanes];
  store(v, buffer);
  std::memcpy(p, buffer, n * sizeof(T));
}

// Maximum and minimum that return the second operand when either is NaN, on every instruction set: vectors of
// x86 do so in one instruction, those of ARM would return the operand that is a number.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
HWY_INLINE V max_or_second(V a, V b) { return hn::Max(a, b); }
HWY_INLINE V min_or_second(V a, V b) { return hn::Min(a, b); }
#else
HWY_INLINE V max_or_second(V a, V b) { return hn::IfThenElse(hn::Gt(a, b), a, b); }
HWY_INLINE V min_or_second(V a, V b) { return hn::IfThenElse(hn::Lt(a, b), a, b); }
#endif

HWY_INLINE float sum_of_lanes(V v) { return hn::GetLane(hn::SumOfLanes(f32_tag, v)); }
HWY_INLINE float max_of_lanes(V v) { return hn::GetLane(hn::MaxOfLanes(f32_tag, v)); }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
