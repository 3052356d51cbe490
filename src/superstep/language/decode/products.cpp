// Loops in every instruction set that Highway knows for this machine; the best is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/language/decode/products.cpp"
#include "superstep/language/decode/products.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "superstep/file/weights/blocks.h"
#include "superstep/language/decode/byte_dots.h"

// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace superstep::language::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;

// Sums of products of 16 integers: of i16, into half as many i32.
using I16 = hn::CappedTag<std::int16_t, 16>;
using I8 = hn::Rebind<std::int8_t, I16>;
using U8 = hn::Rebind<std::uint8_t, I16>;
using I32 = hn::RepartitionToWide<I16>;
using FloatSums = hn::Rebind<float, I32>;
using Integers = hn::Vec<I16>;
using Sums = hn::Vec<I32>;

HWY_INLINE float Half(const std::byte* at) {
  const hn::CappedTag<float, 1> one;
  const hn::Rebind<hwy::float16_t, decltype(one)> half;
  return hn::GetLane(hn::PromoteTo(one, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(at))));
}

// 16 products, of `weights(i)`, the lanes from the i-th on, with bytes at x.
template <class Weights>
HWY_INLINE Sums Products(const Weights& weights, const std::int8_t* x, Sums sums) {
  const I16 d16;
  const I32 d32;
  Sums more = hn::Zero(d32);
  for (std::size_t i = 0; i < 16; i += hn::Lanes(d16)) {
    const Integers b = hn::PromoteTo(d16, hn::LoadU(I8(), x + i));
    sums = hn::ReorderWidenMulAccumulate(d32, weights(i), b, sums, more);
  }
  return hn::Add(sums, more);
}

HWY_INLINE Integers Bytes(const std::byte* at) {
  return hn::PromoteTo(I16(), hn::LoadU(U8(), reinterpret_cast<const std::uint8_t*>(at)));
}
HWY_INLINE Integers Lower(const std::byte* at) { return hn::And(Bytes(at), hn::Set(I16(), 15)); }
HWY_INLINE Integers Upper(const std::byte* at) { return hn::ShiftRight<4>(Bytes(at)); }

HWY_INLINE hn::Vec<FloatSums> AddScaledSums(Sums sums, float scale, hn::Vec<FloatSums> total) {
  const FloatSums d;
  return hn::MulAdd(hn::ConvertTo(d, sums), hn::Set(d, scale), total);
}

struct BytesOfToken {
  const std::int8_t* bytes;
  const float *scales, *sums;
};

float RowOfQ8(const std::byte* row, std::int64_t columns, const BytesOfToken& x) {
  const I16 d16;
  hn::Vec<FloatSums> total = hn::Zero(FloatSums());
  for (std::int64_t block = 0; block < columns / 32; ++block, row += 34) {
    const auto* own = reinterpret_cast<const std::int8_t*>(row + 2);
    const std::int8_t* bytes = x.bytes + block * 32;
    const auto at = [&](std::size_t first) {
      return [=](std::size_t i) { return hn::PromoteTo(d16, hn::LoadU(I8(), own + first + i)); };
    };
    const Sums sums = Products(at(16), bytes + 16, Products(at(0), bytes, hn::Zero(I32())));
    total = AddScaledSums(sums, Half(row) * x.scales[block], total);
  }
  return hn::GetLane(hn::SumOfLanes(FloatSums(), total));
}

float RowOfQ4(const std::byte* row, std::int64_t columns, const BytesOfToken& x) {
  const Integers eight = hn::Set(I16(), 8);
  hn::Vec<FloatSums> total = hn::Zero(FloatSums());
  for (std::int64_t block = 0; block < columns / 32; ++block, row += 18) {
    const std::int8_t* bytes = x.bytes + block * 32;
    const std::byte* own = row + 2;
    Sums sums =
        Products([&](std::size_t i) { return hn::Sub(Lower(own + i), eight); }, bytes, hn::Zero(I32()));
    sums = Products([&](std::size_t i) { return hn::Sub(Upper(own + i), eight); }, bytes + 16, sums);
    total = AddScaledSums(sums, Half(row) * x.scales[block], total);
  }
  return hn::GetLane(hn::SumOfLanes(FloatSums(), total));
}

float RowOfQ4K(const std::byte* row, std::int64_t columns, const BytesOfToken& x) {
  hn::Vec<FloatSums> total = hn::Zero(FloatSums());
  float smallest = 0;
  for (std::int64_t block = 0; block < columns / 256; ++block, row += 144) {
    const float scale = Half(row), low = Half(row + 2);
    const std::byte *groups = row + 4, *values = row + 16;
    for (int group = 0; group < 8; ++group) {
      const std::int64_t place = block * 8 + group;
      const std::byte* own = values + group / 2 * 32;
      const std::int8_t* bytes = x.bytes + place * 32;
      const data::GroupScale g = data::group_scale(groups, group);
      Sums sums = hn::Zero(I32());
      for (std::size_t half = 0; half < 32; half += 16)
        sums = group % 2 == 0
                   ? Products([&](std::size_t i) { return Lower(own + half + i); }, bytes + half, sums)
                   : Products([&](std::size_t i) { return Upper(own + half + i); }, bytes + half, sums);
      total = AddScaledSums(sums, scale * static_cast<float>(g.scale) * x.scales[place], total);
      smallest += low * static_cast<float>(g.smallest) * x.sums[place];
    }
  }
  return hn::GetLane(hn::SumOfLanes(FloatSums(), total)) - smallest;
}

// The 16 numbers from `first` on of part `Part` of a half: four bits of one byte, two of another, less 32.
template <int Part>
HWY_INLINE Integers SixBits(const std::byte* lower, const std::byte* upper) {
  const I16 d;
  const Integers four = Part < 2 ? Lower(lower) : Upper(lower);
  const Integers two = hn::And(hn::ShiftRight<2 * Part>(Bytes(upper)), hn::Set(d, 3));
  return hn::Sub(hn::Or(four, hn::ShiftLeft<4>(two)), hn::Set(d, 32));
}

// A part is 32 numbers in two groups, each with a scale of its own.
template <int Part>
HWY_INLINE Sums SixBitPart(const std::byte* lower, const std::byte* upper, const std::byte* scales,
                           const std::int8_t* bytes) {
  const I32 d;
  const std::byte* own = lower + Part % 2 * 32;
  Sums sums = hn::Zero(d);
  for (std::size_t group = 0; group < 2; ++group) {
    const std::size_t first = group * 16;
    const Sums products =
        Products([&](std::size_t i) { return SixBits<Part>(own + first + i, upper + first + i); },
                 bytes + first, hn::Zero(d));
    const auto scale = static_cast<std::int8_t>(scales[2 * Part + static_cast<int>(group)]);
    sums = hn::Add(sums, hn::Mul(products, hn::Set(d, scale)));
  }
  return sums;
}

float RowOfQ6K(const std::byte* row, std::int64_t columns, const BytesOfToken& x) {
  hn::Vec<FloatSums> total = hn::Zero(FloatSums());
  for (std::int64_t block = 0; block < columns / 256; ++block, row += 210) {
    const float scale = Half(row + 208);
    for (int half = 0; half < 2; ++half) {
      const std::byte *lower = row + 64 * half, *upper = row + 128 + 32 * half,
                      *scales = row + 192 + 8 * half;
      const std::int64_t place = block * 8 + half * 4;
      const std::int8_t* bytes = x.bytes + place * 32;
      total = AddScaledSums(SixBitPart<0>(lower, upper, scales, bytes), scale * x.scales[place], total);
      total =
          AddScaledSums(SixBitPart<1>(lower, upper, scales, bytes + 32), scale * x.scales[place + 1], total);
      total =
          AddScaledSums(SixBitPart<2>(lower, upper, scales, bytes + 64), scale * x.scales[place + 2], total);
      total =
          AddScaledSums(SixBitPart<3>(lower, upper, scales, bytes + 96), scale * x.scales[place + 3], total);
    }
  }
  return hn::GetLane(hn::SumOfLanes(FloatSums(), total));
}

// Sums of `Rows` rows side by side, two for each of them: the same whichever rows are beside it.
// `load(r, i)`: the vector of row r's weights from the i-th on, `one(r, i)`: the weight alone.
template <int Rows, class Load, class One>
HWY_INLINE void SumsOfRows(const Load& load, const One& one, std::int64_t columns, const float* x,
                           float (&found)[Rows]) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<F32> even[Rows], odd[Rows];
  for (int r = 0; r < Rows; ++r) even[r] = odd[r] = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= columns; i += 2 * lanes) {
    const auto first = hn::LoadU(d, x + i), second = hn::LoadU(d, x + i + lanes);
    for (int r = 0; r < Rows; ++r) {
      even[r] = hn::MulAdd(load(r, i), first, even[r]);
      odd[r] = hn::MulAdd(load(r, i + lanes), second, odd[r]);
    }
  }
  if (i + lanes <= columns) {
    for (int r = 0; r < Rows; ++r) even[r] = hn::MulAdd(load(r, i), hn::LoadU(d, x + i), even[r]);
    i += lanes;
  }
  for (int r = 0; r < Rows; ++r) {
    found[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[r], odd[r])));
    for (std::int64_t k = i; k < columns; ++k) found[r] += one(r, k) * x[k];
  }
}

float Dot(const float* w, const float* x, std::int64_t count) {
  float found[1];
  SumsOfRows<1>([=](int, std::int64_t i) HWY_ATTR { return hn::LoadU(F32(), w + i); },
                [=](int, std::int64_t i) { return w[i]; }, count, x, found);
  return found[0];
}

// Rows of numbers, `bytes` apart.
template <class Stored, int Rows>
HWY_INLINE void SumsOfStoredRows(const std::byte* row, std::size_t bytes, std::int64_t columns,
                                 const float* x, float (&found)[Rows]) {
  const F32 d;
  const hn::CappedTag<float, 1> single;
  const auto at = [=](int r, std::int64_t i) {
    return reinterpret_cast<const Stored*>(row + static_cast<std::size_t>(r) * bytes) + i;
  };
  if constexpr (std::is_same_v<Stored, float>) {
    SumsOfRows<Rows>([=](int r, std::int64_t i) HWY_ATTR { return hn::LoadU(d, at(r, i)); },
                     [=](int r, std::int64_t i) { return *at(r, i); }, columns, x, found);
  } else {
    const hn::Rebind<Stored, F32> stored;
    const hn::Rebind<Stored, decltype(single)> one;
    SumsOfRows<Rows>([=](int r, std::int64_t i)
                         HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(stored, at(r, i))); },
                     [=](int r, std::int64_t i)
                         HWY_ATTR { return hn::GetLane(hn::PromoteTo(single, hn::LoadU(one, at(r, i)))); },
                     columns, x, found);
  }
}

// Four rows at a time, each from a quarter of its own: memory brings what is read at several places sooner
// than what is read at one, and sooner than rows that lie side by side.
template <class Stored>
HWY_INLINE void MultiplyNumbers(const Matrix& m, const float* x, std::int64_t first, std::int64_t last,
                                float* y) {
  constexpr int together = 4;
  const std::int64_t apart = (last - first) / together;
  for (std::int64_t r = first; r < first + apart; ++r) {
    float found[together];
    SumsOfStoredRows<Stored>(m.row(r), static_cast<std::size_t>(apart) * m.row_bytes(), m.columns, x, found);
    for (int i = 0; i < together; ++i) y[r + i * apart] = found[i];
  }
  for (std::int64_t r = first + together * apart; r < last; ++r) {
    float found[1];
    SumsOfStoredRows<Stored>(m.row(r), 0, m.columns, x, found);
    y[r] = found[0];
  }
}

void MultiplyRows(const Matrix& m, const Activations& x, std::int64_t first, std::int64_t last, float* y) {
  const BytesOfToken bytes{x.bytes.data(), x.scales.data(), x.sums.data()};
  const float* values = x.values.data();
  switch (m.packing) {
    case Packing::f32: return MultiplyNumbers<float>(m, values, first, last, y);
    case Packing::f16: return MultiplyNumbers<hwy::float16_t>(m, values, first, last, y);
    case Packing::bf16: return MultiplyNumbers<hwy::bfloat16_t>(m, values, first, last, y);
    default: break;
  }
  for (std::int64_t r = first; r < last; ++r) {
    const std::byte* row = m.row(r);
    switch (m.packing) {
      case Packing::q8_0: y[r] = RowOfQ8(row, m.columns, bytes); break;
      case Packing::q4_0: y[r] = RowOfQ4(row, m.columns, bytes); break;
      case Packing::q4_k: y[r] = RowOfQ4K(row, m.columns, bytes); break;
      case Packing::q6_k: y[r] = RowOfQ6K(row, m.columns, bytes); break;
      default: break;
    }
  }
}

using Four = hn::Vec<F32>[4];

// The sums of four vectors.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void StoreSums(const Four& of, float* to) {
  for (int i = 0; i < 4; ++i) to[i] = hn::GetLane(of[i]);
}
#else
using F4 = hn::CappedTag<float, 4>;

// Vectors are blocks of four numbers: their sum.
template <class D>
HWY_INLINE hn::Vec<F4> SumOfBlocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

HWY_INLINE void StoreSums(const Four& of, float* to) {
  const F32 d;
  const hn::RepartitionToWide<F32> two;
  const auto pairs = [&](const auto& a, const auto& b) HWY_ATTR {
    return hn::BitCast(two, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto first = pairs(of[0], of[1]), last = pairs(of[2], of[3]);
  const auto lower = hn::InterleaveLower(two, first, last), upper = hn::InterleaveUpper(two, first, last);
  hn::StoreU(SumOfBlocks(d, hn::Add(hn::BitCast(d, lower), hn::BitCast(d, upper))), F4(), to);
}
#endif

// Four rows by `Tokens` tokens: as many sums in registers.
template <int Tokens>
HWY_INLINE void Tile(const Panel& panel, const float* x, std::int64_t x_stride, float* y,
                     std::int64_t y_stride) {
  const std::int64_t columns = panel.columns, stride = panel.stride;
  const float* rows = panel.rows;
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Four sums[Tokens];
  for (Four& of_token : sums)
    for (auto& sum : of_token) sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) {
    hn::Vec<F32> of_tokens[Tokens];
    for (int t = 0; t < Tokens; ++t) of_tokens[t] = hn::LoadU(d, x + t * x_stride + i);
    for (int r = 0; r < 4; ++r) {
      const auto weight = hn::LoadU(d, rows + r * stride + i);
      for (int t = 0; t < Tokens; ++t) sums[t][r] = hn::MulAdd(weight, of_tokens[t], sums[t][r]);
    }
  }
  for (int t = 0; t < Tokens; ++t) {
    float found[4];
    StoreSums(sums[t], found);
    for (std::int64_t k = i; k < columns; ++k)
      for (int r = 0; r < 4; ++r) found[r] += rows[r * stride + k] * x[t * x_stride + k];
    float* results = y + t * y_stride;
    for (int r = 0; r < 4; ++r) results[r] = panel.added ? results[r] + found[r] : found[r];
  }
}

// With 32 registers 24 sums, six tokens and a weight are in them: ten are read for 24 products.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
constexpr int tokens_of_tile = 6;
#else
constexpr int tokens_of_tile = 3;
#endif

// Four rows stay in a first cache of 32 kB beside the tokens of a tile that pass by.
std::int64_t MostColumns() { return tokens_of_tile > 3 ? 512 : 1024; }

void MultiplyPanel(const Panel& panel, const float* x, std::int64_t x_stride, std::int64_t tokens, float* y,
                   std::int64_t y_stride) {
  std::int64_t t = 0;
  if (panel.count == panel_rows) {
    for (; t + tokens_of_tile <= tokens; t += tokens_of_tile)
      Tile<tokens_of_tile>(panel, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
    for (; t + 3 <= tokens; t += 3) Tile<3>(panel, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
    for (; t < tokens; ++t) Tile<1>(panel, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
    return;
  }
  for (; t < tokens; ++t)
    for (std::int64_t r = 0; r < panel.count; ++r) {
      const float sum = Dot(panel.rows + r * panel.stride, x + t * x_stride, panel.columns);
      float& result = y[t * y_stride + r];
      result = panel.added ? result + sum : sum;
    }
}

template <class Stored>
void Widen(const std::uint16_t* from, std::int64_t count, float* to) {
  const auto* stored = reinterpret_cast<const Stored*>(from);
  const F32 d;
  const hn::Rebind<Stored, F32> narrow;
  const hn::CappedTag<float, 1> one;
  const hn::Rebind<Stored, decltype(one)> narrow_one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, stored + i)), d, to + i);
  for (; i < count; ++i) hn::StoreU(hn::PromoteTo(one, hn::LoadU(narrow_one, stored + i)), one, to + i);
}
void WidenF16(const std::uint16_t* from, std::int64_t count, float* to) {
  Widen<hwy::float16_t>(from, count, to);
}
void WidenBF16(const std::uint16_t* from, std::int64_t count, float* to) {
  Widen<hwy::bfloat16_t>(from, count, to);
}

void RoundToBytes(const float* x, std::int64_t count, std::int8_t* bytes, float* scales) {
  const hn::CappedTag<float, byte_block> d;
  const hn::Rebind<std::int8_t, decltype(d)> byte;
  const auto lanes =
      static_cast<std::int64_t>(hn::Lanes(d));  // known when run, where vectors have any length
  for (; count >= byte_block; count -= byte_block, x += byte_block, bytes += byte_block) {
    auto most = hn::Abs(hn::LoadU(d, x));
    for (std::int64_t i = lanes; i < byte_block; i += lanes)
      most = hn::Max(most, hn::Abs(hn::LoadU(d, x + i)));
    const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
    const auto inverse = hn::Set(d, largest > 0 ? 127 / largest : 0);
    for (std::int64_t i = 0; i < byte_block; i += lanes)
      hn::StoreU(hn::DemoteTo(byte, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse))), byte, bytes + i);
    *scales++ = largest / 127;
  }
}

void AddScaled(float factor, const float* x, float* y, std::int64_t count) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  for (; i < count; ++i) y[i] += factor * x[i];
}

void MultiplyBySilu(const float* x, float* y, std::int64_t count) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0f), least = hn::Set(d, -80.0f);  // exp of more than 88 is no f32
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto of = hn::LoadU(d, x + i);
    const auto power = hn::Exp(d, hn::Neg(hn::Max(of, least)));
    hn::StoreU(hn::Mul(hn::Div(of, hn::Add(one, power)), hn::LoadU(d, y + i)), d, y + i);
  }
  for (; i < count; ++i) y[i] *= x[i] / (1 + std::exp(-x[i]));
}

const char* NameOfTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace superstep::language::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::language {

HWY_EXPORT(MultiplyRows);
HWY_EXPORT(MultiplyPanel);
HWY_EXPORT(MostColumns);
HWY_EXPORT(WidenF16);
HWY_EXPORT(WidenBF16);
HWY_EXPORT(Dot);
HWY_EXPORT(RoundToBytes);
HWY_EXPORT(AddScaled);
HWY_EXPORT(MultiplyBySilu);
HWY_EXPORT(NameOfTarget);

void Activations::set(std::span<const float> x, bool as_bytes) {
  values = x;
  if (!as_bytes) return;
  const std::size_t blocks = x.size() / byte_block;
  bytes.resize(blocks * byte_block), scales.resize(blocks), sums.resize(blocks);
  round_to_bytes(x.data(), static_cast<std::int64_t>(blocks) * byte_block, bytes.data(), scales.data());
  for (std::size_t b = 0; b < blocks; ++b) {
    int sum = 0;
    for (std::size_t i = 0; i < byte_block; ++i) sum += bytes[b * byte_block + i];
    sums[b] = scales[b] * static_cast<float>(sum);
  }
}

void round_to_bytes(const float* x, std::int64_t count, std::int8_t* bytes, float* scales) {
  HWY_DYNAMIC_DISPATCH(RoundToBytes)(x, count, bytes, scales);
}

void multiply_rows(const Matrix& matrix, const Activations& x, std::int64_t first, std::int64_t last,
                   float* y) {
  if (suits_byte_dots(matrix.packing)) return multiply_rows_by_byte_dots(matrix, x, first, last, y);
  multiply_rows_by_vectors(matrix, x, first, last, y);
}
void multiply_rows_by_vectors(const Matrix& matrix, const Activations& x, std::int64_t first,
                              std::int64_t last, float* y) {
  HWY_DYNAMIC_DISPATCH(MultiplyRows)(matrix, x, first, last, y);
}
std::int64_t columns_at_a_time(std::int64_t columns) {
  return std::min(columns, HWY_DYNAMIC_DISPATCH(MostColumns)());
}

void multiply_panel(const Panel& panel, const float* x, std::int64_t x_stride, std::int64_t tokens, float* y,
                    std::int64_t y_stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanel)(panel, x, x_stride, tokens, y, y_stride);
}
void widen_f16(const std::uint16_t* from, std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenF16)(from, count, to);
}
void widen_bf16(const std::uint16_t* from, std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenBF16)(from, count, to);
}
float dot(const float* a, const float* b, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(Dot)(a, b, count);
}
void add_scaled(float factor, const float* x, float* y, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, x, y, count);
}
void multiply_by_silu(const float* x, float* y, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(MultiplyBySilu)(x, y, count);
}
const char* vectors_in_use() { return HWY_DYNAMIC_DISPATCH(NameOfTarget)(); }

}  // namespace superstep::language
#endif  // HWY_ONCE
