#include "superstep/numerics/definition.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::numerics {
namespace {

__extension__ using Wide = unsigned __int128;

// (-1)^negative * digits * 2^exponent, and whether something below the last digit was left out.
struct Dyadic {
  bool negative = false;
  Wide digits = 0;
  int exponent = 0;
  bool sticky = false;
};

constexpr int wide_bits = 128;
constexpr int exponent_of_f32 = -126;  // of its smallest normal number
constexpr int room = 100;  // a sum's digits, with what is below them sticky; two factors of f32 have 48

int width(Wide x) {
  int bits = 0;
  while (x != 0) x >>= 1, ++bits;
  return bits;
}

// As the bits of f32 have it: 24 digits, subnormal numbers fewer.
Dyadic exact(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t field = (bits >> 23) & 0xffu, fraction = bits & 0x7fffffu;
  const std::uint32_t digits = field == 0 ? fraction : fraction | 0x800000u;
  return {(bits >> 31) != 0, digits, static_cast<int>(std::max(field, 1u)) - 150, false};
}

Dyadic product(float a, float b) {
  const Dyadic x = exact(a), y = exact(b);
  return {x.negative != y.negative, x.digits * y.digits, x.exponent + y.exponent, false};
}

// Exact but for what lies more than `room` digits below the larger one, which is sticky.
Dyadic sum(Dyadic x, Dyadic y) {
  if (x.digits == 0) return y.digits == 0 ? Dyadic{x.negative && y.negative, 0, 0, false} : y;
  if (y.digits == 0) return x;
  if (width(x.digits) + x.exponent < width(y.digits) + y.exponent) std::swap(x, y);
  const int shift = room - width(x.digits);
  x.digits <<= shift;
  x.exponent -= shift;
  const int down = x.exponent - y.exponent;
  if (down > 0) {
    const Wide kept = down >= wide_bits ? 0 : y.digits >> down;
    y.sticky = y.sticky || down >= wide_bits || (kept << down) != y.digits;
    y.digits = kept;
  } else {
    y.digits <<= -down;
  }
  Dyadic total{x.negative, 0, x.exponent, x.sticky || y.sticky};
  if (x.negative == y.negative) {
    total.digits = x.digits + y.digits;
  } else if (x.digits < y.digits) {  // of the same width, so nothing of y was left out
    total.digits = y.digits - x.digits;
    total.negative = y.negative;
  } else {
    total.digits = x.digits - y.digits;
    if (y.sticky) --total.digits;  // and something is left below
    if (total.digits == 0 && !total.sticky) total.negative = false;
  }
  return total;
}

// A value to be rounded: `kept` units, and below them `rest` of 2^cut parts of a unit.
struct Cut {
  Wide kept = 0, rest = 0;
  int cut = 1;
  bool sticky = false;
  bool fixed_unit = false;  // below the normal numbers of a format with a short exponent
};

// Stochastic rounding adds the word's last bits to what is cut off, as many as those are; where the unit is
// fixed it compares 24 of them with it.
bool rounds_up(const Cut& x, Rounding rounding, std::uint32_t word) {
  const Wide half = Wide{1} << (x.cut - 1);
  switch (rounding) {
    case Rounding::nearest: return x.rest > half || (x.rest == half && (x.sticky || (x.kept & 1) != 0));
    case Rounding::nearest_away: return x.rest >= half;
    case Rounding::truncate: return false;
    case Rounding::stochastic: break;
  }
  if (x.fixed_unit)
    return static_cast<double>(word & 0xffffffu) < std::ldexp(static_cast<double>(x.rest), 24 - x.cut);
  return x.rest + (word & ((Wide{1} << x.cut) - 1)) >= (Wide{1} << x.cut);
}

float overflown(bool negative, const Narrowing& to, const FormatFacts& facts) {
  const float sign = negative ? -1.0f : 1.0f;
  if (to.saturates || to.rounding == Rounding::truncate) return sign * facts.largest;
  return facts.infinities ? sign * std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN();
}

float rounded(const Dyadic& x, const Narrowing& to, std::uint32_t word) {
  const FormatFacts facts = facts_of(to.format);
  const float sign = x.negative ? -1.0f : 1.0f;
  if (x.digits == 0) return sign * 0.0f;
  const int leading = width(x.digits) - 1 + x.exponent;
  const int unit = std::max(leading, facts.min_exponent) - (facts.digits - 1);  // of the last place
  Wide kept = x.digits;
  int exponent = x.exponent;
  if (unit > x.exponent) {
    const int down = std::min(unit - x.exponent, wide_bits - 2);
    kept = x.digits >> down;
    const Cut cut{.kept = kept,
                  .rest = x.digits - (kept << down),
                  .cut = down,
                  .sticky = x.sticky,
                  .fixed_unit = leading < facts.min_exponent && facts.min_exponent > exponent_of_f32};
    if (rounds_up(cut, to.rounding, word)) ++kept;
    exponent = unit;
  }
  const double value = std::ldexp(static_cast<double>(kept), exponent);
  if (value > static_cast<double>(facts.largest)) return overflown(x.negative, to, facts);
  if (to.flushes && value < std::ldexp(1.0, facts.min_exponent)) return sign * 0.0f;
  return sign * static_cast<float>(value);
}

constexpr Narrowing f32_nearest{};

// f32 arithmetic of anything, finite or not.
float fused(float a, float b, float c) {
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) return std::fma(a, b, c);
  const Dyadic p = product(a, b), s = exact(c);
  const Dyadic total = sum(p, s);
  if (total.digits == 0) return std::fma(a, b, c);  // signs of zero
  return rounded(total, f32_nearest, 0);
}

float added(float a, float b) { return fused(1.0f, a, b); }
float multiplied(float a, float b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return a * b;
  return rounded(product(a, b), f32_nearest, 0);
}

float tree_sum(float total, std::span<const float> a, std::span<const float> b, std::size_t chunk) {
  std::vector<float> level(chunk, 0.0f);
  for (std::size_t i = 0; i < a.size(); ++i) level[i] = multiplied(a[i], b[i]);
  for (std::size_t n = chunk / 2; n > 0; n /= 2)
    for (std::size_t i = 0; i < n; ++i) level[i] = added(level[2 * i], level[2 * i + 1]);
  return added(total, level[0]);
}

// The exponent of a factor's leading place as its bits say it: subnormal numbers have that of the smallest
// normal ones.
int field_of(float value) {
  return std::max<int>(static_cast<int>((std::bit_cast<std::uint32_t>(value) >> 23) & 0xffu), 1) - 127;
}

// What comes of infinities and NaN does not depend on the order.
float not_finite_sum(float total, std::span<const float> a, std::span<const float> b) {
  double sum = static_cast<double>(total);
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return static_cast<float>(sum);
}

float aligned_sum(float total, std::span<const float> a, std::span<const float> b, int extra_bits) {
  int largest = lowest_aligned_exponent;
  if (total != 0) largest = std::max(largest, field_of(total));
  bool finite = std::isfinite(total);
  for (std::size_t i = 0; i < a.size(); ++i) {
    finite = finite && std::isfinite(a[i]) && std::isfinite(b[i]);
    if (a[i] != 0 && b[i] != 0) largest = std::max(largest, field_of(a[i]) + field_of(b[i]));
  }
  if (!finite) return not_finite_sum(total, a, b);
  const int unit = largest - (23 + extra_bits);
  std::int64_t sum_of_all = 0;
  const auto add = [&](const Dyadic& x) {
    const int down = unit - x.exponent;
    const Wide cut = down >= wide_bits ? 0 : down >= 0 ? x.digits >> down : x.digits << -down;
    sum_of_all += (x.negative ? -1 : 1) * static_cast<std::int64_t>(cut);
  };
  add(exact(total));
  for (std::size_t i = 0; i < a.size(); ++i) add(product(a[i], b[i]));
  const Dyadic result{sum_of_all < 0, static_cast<Wide>(sum_of_all < 0 ? -sum_of_all : sum_of_all), unit,
                      false};
  return rounded(result, {.rounding = Rounding::truncate}, 0);
}

}  // namespace

std::uint32_t word_of(const Draw& draw) {
  return philox(
      {draw.column, draw.row, draw.step / 4, draw.node},
      {static_cast<std::uint32_t>(draw.key), static_cast<std::uint32_t>(draw.key >> 32)})[draw.step % 4];
}

float narrowed(float value, const Narrowing& to, std::uint32_t word) {
  if (!std::isfinite(value)) {
    if (std::isinf(value) && (to.saturates || !facts_of(to.format).infinities) && to.format != Format::f32)
      return to.saturates ? std::copysign(facts_of(to.format).largest, value)
                          : std::numeric_limits<float>::quiet_NaN();
    return value;
  }
  return rounded(exact(value), to, word);
}

float summed(float total, std::span<const float> a, std::span<const float> b, const Arithmetic& arithmetic,
             std::int64_t first, Draw draw) {
  const auto chunk = static_cast<std::size_t>(arithmetic.chunk);
  for (std::size_t i = 0; i < a.size(); i += chunk) {
    const std::size_t n = std::min(chunk, a.size() - i);
    const auto x = a.subspan(i, n), y = b.subspan(i, n);
    switch (arithmetic.order) {
      case Order::in_turn:
        for (std::size_t k = 0; k < n; ++k) total = fused(x[k], y[k], total);
        break;
      case Order::tree: total = tree_sum(total, x, y, chunk); break;
      case Order::aligned: total = aligned_sum(total, x, y, arithmetic.extra_bits); break;
    }
    draw.step = static_cast<std::uint32_t>((static_cast<std::size_t>(first) + i) / chunk);
    const bool draws = arithmetic.sums.rounding == Rounding::stochastic;
    total = narrowed(total, arithmetic.sums, draws ? word_of(draw) : 0);
  }
  return total;
}

}  // namespace superstep::numerics
