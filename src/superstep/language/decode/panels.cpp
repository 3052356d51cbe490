#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/language/decode/panels.cpp"
#include "superstep/language/decode/panels.h"

#include <algorithm>

// foreach_target.h must come before the other.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace superstep::language::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;

// Sums in registers: with 32 of them 24, three vectors of tokens and a weight; with 16 half as many rows.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
constexpr int rows_of_tile = 8;
#else
constexpr int rows_of_tile = 4;
#endif
constexpr int vectors_of_panel = 3;

std::int64_t PanelWidth() { return vectors_of_panel * static_cast<std::int64_t>(hn::Lanes(F32())); }

template <int Rows, int Vectors>
HWY_INLINE void Multiply(const PanelTile& tile) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float *rows = tile.rows, *tokens = tile.tokens;
  const std::int64_t stride = tile.stride, step = tile.step, width = tile.width;
  hn::Vec<F32> sums[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sums[r][v] = tile.added ? hn::LoadU(d, tile.sums + r * width + v * lanes) : hn::Zero(d);
  for (std::int64_t column = 0; column < tile.columns; ++column, rows += step, tokens += width) {
    hn::Vec<F32> of_tokens[Vectors];
    for (int v = 0; v < Vectors; ++v) of_tokens[v] = hn::LoadU(d, tokens + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const auto weight = hn::Set(d, rows[r * stride]);
      for (int v = 0; v < Vectors; ++v) sums[r][v] = hn::MulAdd(weight, of_tokens[v], sums[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) hn::StoreU(sums[r][v], d, tile.sums + r * width + v * lanes);
}

template <int Vectors>
void MultiplyRows(PanelTile tile, std::int64_t rows) {
  std::int64_t r = 0;
  const auto next = [&](std::int64_t taken) {
    r += taken;
    tile.rows += taken * tile.stride;
    tile.sums += taken * tile.width;
  };
  for (; r + rows_of_tile <= rows; next(rows_of_tile)) Multiply<rows_of_tile, Vectors>(tile);
  for (; r < rows; next(1)) Multiply<1, Vectors>(tile);
}

// The vectors that have tokens in them.
void MultiplyTile(const PanelTile& tile, std::int64_t rows, std::int64_t tokens) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  if (tokens > 2 * lanes) return MultiplyRows<3>(tile, rows);
  if (tokens > lanes) return MultiplyRows<2>(tile, rows);
  MultiplyRows<1>(tile, rows);
}

#if HWY_TARGET == HWY_SCALAR
void TurnOver(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
              std::int64_t to_stride) {
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
}
#else
// What is turned over at a time: a line of the cache is read, or written, at once.
constexpr std::int64_t line = 16;

// Four rows of a vector's columns: the four numbers of column c lie at to[c * line].
HWY_INLINE void TurnFour(const float* from, std::int64_t stride, float* to) {
  const F32 d;
  const hn::RepartitionToWide<F32> two;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto row = [&](std::int64_t r) HWY_ATTR { return hn::LoadU(d, from + r * stride); };
  const auto a = row(0), b = row(1), c = row(2), e = row(3);
  const auto pairs = [&](auto x, auto y) HWY_ATTR { return hn::BitCast(two, hn::InterleaveLower(d, x, y)); };
  const auto later = [&](auto x, auto y) HWY_ATTR { return hn::BitCast(two, hn::InterleaveUpper(d, x, y)); };
  const auto first = pairs(a, b), second = pairs(c, e), third = later(a, b), fourth = later(c, e);
  // Each has, of every four columns, one.
  HWY_ALIGN float found[4 * hn::MaxLanes(F32())];
  const auto put = [&](std::int64_t number, auto v)
                       HWY_ATTR { hn::StoreU(hn::BitCast(d, v), d, found + number * lanes); };
  put(0, hn::InterleaveLower(two, first, second));
  put(1, hn::InterleaveUpper(two, first, second));
  put(2, hn::InterleaveLower(two, third, fourth));
  put(3, hn::InterleaveUpper(two, third, fourth));
  const hn::CappedTag<float, 4> four;
  for (std::int64_t column = 0; column < lanes; ++column)
    hn::StoreU(hn::LoadU(four, found + column % 4 * lanes + column / 4 * 4), four, to + column * line);
}

void TurnOver(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
              std::int64_t to_stride) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F32()));
  HWY_ALIGN float turned[line * hn::MaxLanes(F32())];
  for (std::int64_t r = 0; r < rows; r += line)
    for (std::int64_t c = 0; c < columns; c += lanes) {
      const float* own = from + r * from_stride + c;
      const std::int64_t of_rows = std::min(line, rows - r), of_columns = std::min(lanes, columns - c);
      const bool whole = of_rows == line && of_columns == lanes;
      for (std::int64_t i = 0; whole && i < line; i += 4)
        TurnFour(own + i * from_stride, from_stride, turned + i);
      for (std::int64_t k = 0; k < of_columns; ++k) {
        float* put = to + (c + k) * to_stride + r;
        if (whole) {
          std::copy_n(turned + k * line, line, put);
        } else {
          for (std::int64_t i = 0; i < of_rows; ++i) put[i] = own[i * from_stride + k];
        }
      }
    }
}
#endif

}  // namespace superstep::language::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::language {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(MultiplyTile);
HWY_EXPORT(TurnOver);

namespace {

// Of rows that are unpacked together: a multiple of what blocks of packed weights hold.
constexpr std::int64_t columns_at_a_time = 512;
// Rows a power of two apart would share few places of a cache.
constexpr std::int64_t stride = columns_at_a_time + 16;

}  // namespace

std::int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }

void multiply_tile(const PanelTile& tile, std::int64_t rows, std::int64_t tokens) {
  HWY_DYNAMIC_DISPATCH(MultiplyTile)(tile, rows, tokens);
}

void turn_over(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(TurnOver)(from, from_stride, rows, columns, to, to_stride);
}

void store_sums(const PanelCut& x, const float* sums, std::int64_t most_rows, std::int64_t rows, float* y,
                std::int64_t y_stride) {
  for (std::int64_t p = 0; p < x.count(); ++p)
    turn_over(sums + p * most_rows * x.width(), x.width(), rows, x.tokens_of(p), y + p * x.width() * y_stride,
              y_stride);
}

TokenPanels::TokenPanels(std::int64_t tokens, std::int64_t columns)
    : PanelCut(tokens, columns, panel_width()), values_(ElementType::f32, Shape{count(), columns, width()}) {}

void TokenPanels::set(std::int64_t panel, const float* tokens) {
  turn_over(tokens, columns(), tokens_of(panel), columns(),
            values_.as<float>().data() + panel * columns() * width(), width());
}

PanelProduct::PanelProduct(const TokenPanels& x)
    : x_(x),
      rows_(ElementType::f32, Shape{most_rows, stride}),
      sums_(ElementType::f32, Shape{x.count(), most_rows, x.width()}) {}

void PanelProduct::multiply(const Matrix& matrix, std::int64_t first, std::int64_t last, float* y,
                            std::int64_t y_stride) {
  float *rows = rows_.as<float>().data(), *sums = sums_.as<float>().data();
  for (std::int64_t column = 0; column < x_.columns(); column += columns_at_a_time) {
    const std::int64_t columns = std::min(columns_at_a_time, x_.columns() - column);
    const std::int64_t ahead = std::min(columns_at_a_time, x_.columns() - column - columns);
    for (std::int64_t r = first; r < last; ++r) {
      unpack_part(matrix, r, column, columns, rows + (r - first) * stride);
      if (ahead > 0) prefetch_part(matrix, r, column + columns, ahead);
    }
    for (std::int64_t p = 0; p < x_.count(); ++p)
      multiply_tile({.rows = rows,
                     .stride = stride,
                     .tokens = x_.panel(p) + column * x_.width(),
                     .columns = columns,
                     .width = x_.width(),
                     .sums = sums + p * most_rows * x_.width(),
                     .added = column > 0},
                    last - first, x_.tokens_of(p));
  }
  store_sums(x_, sums, most_rows, last - first, y + first, y_stride);
}

}  // namespace superstep::language
#endif  // HWY_ONCE
