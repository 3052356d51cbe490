#include "superstep/language/decode/pair_panels.h"

#include <algorithm>

#include "superstep/base/system/instruction_set.h"
#include "superstep/base/system/pair_rate.h"

namespace superstep::language {
namespace {

// Of rows that are multiplied together: the tokens of a panel take 48 kB. Even.
constexpr std::int64_t columns_of_piece = 512;
// Rows a power of two apart would share few places of a cache.
constexpr std::int64_t stride = columns_of_piece + 32;

}  // namespace

bool suits_pair_panels(Packing packing) {
  return packing == Packing::bf16 && instruction_set() >= InstructionSet::avx512_bf16 &&
         pair_products_are_fast();
}

PairPanels::PairPanels(std::int64_t tokens, std::int64_t columns)
    : PanelCut(tokens, columns, pair_panel_width),
      values_(ElementType::bf16, Shape{count(), pairs(), width(), 2}) {}

// Some columns at a time, which stay near while the tokens of the panel are put beside each other.
void PairPanels::set(std::int64_t panel, const float* tokens) {
  constexpr std::int64_t most = 128, apart = most + 32;
  bf16 rounded[pair_panel_width * apart]{};
  bf16* to = values_.as<bf16>().data() + panel * 2 * pairs() * width();
  for (std::int64_t first = 0; first < columns(); first += most) {
    const std::int64_t taken = std::min(most, columns() - first);
    for (std::int64_t t = 0; t < tokens_of(panel); ++t)
      round_to_pairs(tokens + t * columns() + first, taken, rounded + t * apart);
    turn_over(reinterpret_cast<const float*>(rounded), apart / 2, tokens_of(panel), (taken + 1) / 2,
              reinterpret_cast<float*>(to + first * width()), width());
  }
}

PairPanelProduct::PairPanelProduct(const PairPanels& x)
    : x_(x),
      rows_(ElementType::bf16, Shape{most_rows, stride}),
      sums_(ElementType::f32, Shape{x.count(), most_rows, x.width()}) {}

void PairPanelProduct::multiply(const Matrix& matrix, std::int64_t first, std::int64_t last, float* y,
                                std::int64_t y_stride) {
  float* sums = sums_.as<float>().data();
  for (std::int64_t column = 0; column < x_.columns(); column += columns_of_piece) {
    const Piece piece = piece_of(first, last, column), next = piece_after(matrix, piece);
    take(matrix, piece);
    std::int64_t done = 0;
    const std::int64_t rows = last - first, tiles = (rows + pair_tile_rows - 1) / pair_tile_rows;
    for (std::int64_t p = 0; p < x_.count(); ++p)
      for (std::int64_t tile = 0; tile < tiles; ++tile, ++done) {
        ask_for(matrix, next, done, tiles * x_.count());
        const std::int64_t row = tile * pair_tile_rows;
        multiply_pair_tile({.rows = rows_.as<bf16>().data() + row * stride,
                            .stride = stride,
                            .tokens = x_.panel(p) + column * x_.width(),
                            .pairs = (piece.columns + 1) / 2,
                            .sums = sums + (p * most_rows + row) * x_.width(),
                            .added = column > 0},
                           std::min<std::int64_t>(pair_tile_rows, rows - row), x_.tokens_of(p));
      }
  }
  store_sums(x_, sums, most_rows, last - first, y + first, y_stride);
}

PairPanelProduct::Piece PairPanelProduct::piece_of(std::int64_t first, std::int64_t last,
                                                   std::int64_t column) const {
  return {first, last, column, std::min(columns_of_piece, x_.columns() - column)};
}

// Of the same rows, or of as many behind them, which are likely the next.
PairPanelProduct::Piece PairPanelProduct::piece_after(const Matrix& matrix, const Piece& piece) const {
  const std::int64_t column = piece.column + piece.columns, rows = piece.last - piece.first;
  if (column < x_.columns()) return piece_of(piece.first, piece.last, column);
  return piece_of(piece.last, std::min(matrix.rows, piece.last + rows), 0);
}

// Rows a page of memory apart, as a file often has them, would share few places of a cache.
void PairPanelProduct::take(const Matrix& matrix, const Piece& piece) {
  bf16* rows = rows_.as<bf16>().data();
  for (std::int64_t r = piece.first; r < piece.last; ++r)
    copy_to_pairs(reinterpret_cast<const bf16*>(matrix.row(r)) + piece.column, piece.columns,
                  rows + (r - piece.first) * stride);
}

// A share of a piece: memory brings it while others are multiplied.
void PairPanelProduct::ask_for(const Matrix& matrix, const Piece& piece, std::int64_t share,
                               std::int64_t shares) {
  const std::int64_t rows = piece.last - piece.first;
  for (std::int64_t r = share * rows / shares; r < (share + 1) * rows / shares; ++r)
    prefetch_part(matrix, piece.first + r, piece.column, piece.columns);
}

}  // namespace superstep::language
