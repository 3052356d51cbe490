// One vector rounded to a machine's number format, for each instruction set.
#if defined(SUPERSTEP_NARROWING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_NARROWING_INL_H
#undef SUPERSTEP_NARROWING_INL_H
#else
#define SUPERSTEP_NARROWING_INL_H
#endif

#include <bit>
#include <limits>

#include "superstep/numerics/format.h"
#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// Which code rounds: the processor's own conversions where they do what is asked.
enum class NarrowingKind { none, f16_nearest, bf16_nearest, any };

inline NarrowingKind kind_of(const numerics::Narrowing& how) {
  using numerics::Format;
  if (how.keeps_all()) return NarrowingKind::none;
  const bool plain = how.rounding == numerics::Rounding::nearest && !how.flushes && !how.saturates;
  if (plain && how.format == Format::f16) return NarrowingKind::f16_nearest;
  if (plain && how.format == Format::bf16) return NarrowingKind::bf16_nearest;
  return NarrowingKind::any;
}

// What the code for any format needs of it.
struct NarrowingFacts {
  explicit NarrowingFacts(const numerics::Narrowing& how)
      : rounding(how.rounding), facts(numerics::facts_of(how.format)), flushes(how.flushes) {
    constexpr int f32_digits = 24;
    cut = f32_digits - facts.digits;
    mask = (1u << cut) - 1u;
    half = cut > 0 ? 1u << (cut - 1) : 0u;
    fixed_unit = facts.min_exponent > -126;
    smallest = power_of_two(facts.min_exponent);
    to_unit = fixed_unit ? power_of_two(facts.digits - 1 - facts.min_exponent) : 1.0f;
    const float none = std::numeric_limits<float>::quiet_NaN();
    const float infinite = facts.infinities ? std::numeric_limits<float>::infinity() : none;
    const bool cuts = how.rounding == numerics::Rounding::truncate;
    overflow = how.saturates || cuts ? facts.largest : infinite;
    infinity = how.format == numerics::Format::f32 ? std::numeric_limits<float>::infinity()
               : how.saturates                     ? facts.largest
                                                   : infinite;
  }

  // Of exponents that normal numbers have; loops over short lines would wait for std::ldexp.
  static float power_of_two(int exponent) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
  }

  numerics::Rounding rounding;
  numerics::FormatFacts facts;
  bool flushes, fixed_unit;
  int cut;  // digits of f32 that the format does not have
  std::uint32_t mask, half;
  float smallest, to_unit, overflow, infinity;
};

// Below the normal numbers of a format with a short exponent: multiples of one unit.
HWY_INLINE V narrow_to_unit(V size, VU word, const NarrowingFacts& f) {
  const V scaled = hn::Mul(size, constant(f.to_unit));
  const VI units = hn::ConvertTo(i32_tag, hn::Min(scaled, constant(0x1p24f)));
  const V whole = hn::ConvertTo(f32_tag, units), rest = hn::Sub(scaled, whole);
  Mask up = hn::Lt(rest, hn::Zero(f32_tag));
  if (f.rounding == numerics::Rounding::nearest) {
    const auto odd = hn::RebindMask(f32_tag, hn::Ne(hn::And(units, hn::Set(i32_tag, 1)), hn::Zero(i32_tag)));
    up = hn::Or(hn::Gt(rest, constant(0.5f)), hn::And(hn::Eq(rest, constant(0.5f)), odd));
  } else if (f.rounding == numerics::Rounding::nearest_away) {
    up = hn::Ge(rest, constant(0.5f));
  } else if (f.rounding == numerics::Rounding::stochastic) {
    const VI number = hn::BitCast(i32_tag, hn::And(word, hn::Set(u32_tag, 0xffffffu)));
    up = hn::Lt(hn::Mul(hn::ConvertTo(f32_tag, number), constant(0x1p-24f)), rest);
  }
  const V rounded = hn::Add(whole, hn::IfThenElseZero(up, constant(1.0f)));
  return hn::Mul(rounded, constant(1.0f / f.to_unit));
}

// Any format and rounding; `word` is read by stochastic rounding alone.
HWY_INLINE V narrow_to_any(V v, VU word, const NarrowingFacts& f) {
  const VU bits = hn::BitCast(u32_tag, v);
  const VU sign = hn::And(bits, hn::Set(u32_tag, 0x80000000u)), size = hn::Xor(bits, sign);
  VU added = size;
  if (f.rounding == numerics::Rounding::nearest) {
    const VU odd = hn::And(hn::ShiftRightSame(size, f.cut), hn::Set(u32_tag, 1u));
    if (f.cut > 0) added = hn::Add(size, hn::Add(hn::Set(u32_tag, f.half - 1u), odd));
  } else if (f.rounding == numerics::Rounding::nearest_away) {
    added = hn::Add(size, hn::Set(u32_tag, f.half));
  } else if (f.rounding == numerics::Rounding::stochastic) {
    added = hn::Add(size, hn::And(word, hn::Set(u32_tag, f.mask)));
  }
  V result = hn::BitCast(f32_tag, hn::And(added, hn::Set(u32_tag, ~f.mask)));
  const V absolute = hn::BitCast(f32_tag, size);
  if (f.fixed_unit)
    result =
        hn::IfThenElse(hn::Lt(absolute, constant(f.smallest)), narrow_to_unit(absolute, word, f), result);
  result = hn::IfThenElse(hn::Gt(result, constant(f.facts.largest)), constant(f.overflow), result);
  if (f.flushes) result = hn::IfThenZeroElse(hn::Lt(result, constant(f.smallest)), result);
  const VI infinite = hn::Set(i32_tag, 0x7f800000), signed_size = hn::BitCast(i32_tag, size);
  result =
      hn::IfThenElse(hn::RebindMask(f32_tag, hn::Eq(signed_size, infinite)), constant(f.infinity), result);
  result = hn::IfThenElse(hn::RebindMask(f32_tag, hn::Gt(signed_size, infinite)), absolute, result);
  return hn::BitCast(f32_tag, hn::Or(hn::BitCast(u32_tag, result), sign));
}

template <NarrowingKind kind>
HWY_INLINE V narrowed(V v, VU word, const NarrowingFacts& facts) {
  if constexpr (kind == NarrowingKind::none) return v;
  if constexpr (kind == NarrowingKind::f16_nearest) return round_to_f16(v);
  if constexpr (kind == NarrowingKind::bf16_nearest)
    return hn::BitCast(f32_tag, hn::ShiftLeft<16>(round_to_bf16(v)));
  return narrow_to_any(v, word, facts);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
