// Products of weights with many tokens.
//
// Lanes are tokens: a weight is read once for vectors of them, and no sum is folded at its end. Rows are
// unpacked to f32 once for all tokens.
#pragma once

#include <algorithm>
#include <cstdint>

#include "superstep/base/tensor.h"
#include "superstep/language/decode/matrix.h"

namespace superstep::language {

// Below so many tokens most lanes would be empty: multiply_panel (products.h).
inline constexpr std::int64_t fewest_by_panels = 16;
// Rows that share the columns of a panel while these are near; what one call of multiply_panels takes at
// most.
inline constexpr std::int64_t most_rows_by_panels = 128;

// Tokens of a panel: three vectors of the processor's.
std::int64_t panel_width();

// Rows of f32 times the tokens of a panel: sums[row][token], or added to them.
struct PanelTile {
  const float* rows;
  std::int64_t stride, step = 1;  // between rows and between columns
  const float* tokens;            // [column][token]
  std::int64_t columns, width;
  float* sums;
  bool added = false;
};
// `tokens`: how many there are; sums of a vector without any are left alone.
void multiply_tile(const PanelTile& tile, std::int64_t rows, std::int64_t tokens);

// Sums [row][token] of a panel, `width` tokens apart, to y[token * y_stride + row].
void store_across(const float* sums, std::int64_t width, std::int64_t rows, std::int64_t tokens, float* y,
                  std::int64_t y_stride);

// Activations: [panel][column][token of the panel], zeros behind the last token.
class TokenPanels {
 public:
  TokenPanels(std::int64_t tokens, std::int64_t columns);

  // Tokens one after the other in memory, `columns` numbers each. Several threads may set panels of their
  // own.
  void set(std::int64_t panel, const float* tokens);

  std::int64_t tokens() const { return tokens_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t width() const { return width_; }  // tokens of a panel
  std::int64_t count() const { return (tokens_ + width_ - 1) / width_; }
  std::int64_t tokens_of(std::int64_t panel) const { return std::min(width_, tokens_ - panel * width_); }
  const float* panel(std::int64_t number) const {
    return values_.as<float>().data() + number * columns_ * width_;
  }

 private:
  std::int64_t tokens_, columns_, width_;
  Tensor values_;
};

// What a thread needs beside: rows in f32, and their sums.
class PanelScratch {
 public:
  explicit PanelScratch(const TokenPanels& panels);

 private:
  friend void multiply_panels(const Matrix& matrix, const TokenPanels& x, std::int64_t first,
                              std::int64_t last, float* y, std::int64_t y_stride, PanelScratch& scratch);
  Tensor rows_, sums_;
};

// y[t * y_stride + r] = row r of the matrix times token t, for r in [first, last).
void multiply_panels(const Matrix& matrix, const TokenPanels& x, std::int64_t first, std::int64_t last,
                     float* y, std::int64_t y_stride, PanelScratch& scratch);

}  // namespace superstep::language
