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

}  // namespace superstep::language::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::language {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(MultiplyTile);

namespace {

// Of rows that are unpacked together: a multiple of what blocks of packed weights hold.
constexpr std::int64_t columns_at_a_time = 512;
// Rows a power of two apart would share few places of a cache.
constexpr std::int64_t stride = columns_at_a_time + 16;

// What is turned over a line of the cache at a time: read once, or written once.
constexpr std::int64_t line = 16;

}  // namespace

void store_across(const float* sums, std::int64_t width, std::int64_t rows, std::int64_t tokens, float* y,
                  std::int64_t y_stride) {
  for (std::int64_t first = 0; first < rows; first += line)
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t r = first; r < std::min(rows, first + line); ++r)
        y[t * y_stride + r] = sums[r * width + t];
}

std::int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }

void multiply_tile(const PanelTile& tile, std::int64_t rows, std::int64_t tokens) {
  HWY_DYNAMIC_DISPATCH(MultiplyTile)(tile, rows, tokens);
}

TokenPanels::TokenPanels(std::int64_t tokens, std::int64_t columns)
    : tokens_(tokens),
      columns_(columns),
      width_(panel_width()),
      values_(ElementType::f32, Shape{count(), columns, width_}) {}

void TokenPanels::set(std::int64_t panel, const float* tokens) {
  float* to = values_.as<float>().data() + panel * columns_ * width_;
  for (std::int64_t first = 0; first < columns_; first += line)
    for (std::int64_t t = 0; t < tokens_of(panel); ++t)
      for (std::int64_t c = first; c < std::min(columns_, first + line); ++c)
        to[c * width_ + t] = tokens[t * columns_ + c];
}

PanelScratch::PanelScratch(const TokenPanels& panels)
    : rows_(ElementType::f32, Shape{most_rows_by_panels, stride}),
      sums_(ElementType::f32, Shape{panels.count(), most_rows_by_panels, panels.width()}) {}

void multiply_panels(const Matrix& matrix, const TokenPanels& x, std::int64_t first, std::int64_t last,
                     float* y, std::int64_t y_stride, PanelScratch& scratch) {
  float *rows = scratch.rows_.as<float>().data(), *sums = scratch.sums_.as<float>().data();
  const std::int64_t sums_of_panel = most_rows_by_panels * x.width();
  for (std::int64_t column = 0; column < x.columns(); column += columns_at_a_time) {
    const std::int64_t columns = std::min(columns_at_a_time, x.columns() - column);
    const std::int64_t ahead = std::min(columns_at_a_time, x.columns() - column - columns);
    for (std::int64_t r = first; r < last; ++r) {
      unpack_part(matrix, r, column, columns, rows + (r - first) * stride);
      if (ahead > 0) prefetch_part(matrix, r, column + columns, ahead);
    }
    for (std::int64_t p = 0; p < x.count(); ++p) HWY_DYNAMIC_DISPATCH(MultiplyTile)
    ({.rows = rows,
      .stride = stride,
      .tokens = x.panel(p) + column * x.width(),
      .columns = columns,
      .width = x.width(),
      .sums = sums + p * sums_of_panel,
      .added = column > 0},
     last - first, x.tokens_of(p));
  }
  for (std::int64_t p = 0; p < x.count(); ++p)
    store_across(sums + p * sums_of_panel, x.width(), last - first, x.tokens_of(p),
                 y + p * x.width() * y_stride + first, y_stride);
}

}  // namespace superstep::language
#endif  // HWY_ONCE
