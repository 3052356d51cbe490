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

// to[column * to_stride + row] = from[row * from_stride + column], bit by bit: the numbers may stand for
// others of 32 bits.
void turn_over(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_stride);

// Tokens of `columns` numbers in panels of `width` of them.
class PanelCut {
 public:
  PanelCut(std::int64_t tokens, std::int64_t columns, std::int64_t width)
      : tokens_(tokens), columns_(columns), width_(width) {}

  std::int64_t tokens() const { return tokens_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t width() const { return width_; }  // tokens of a panel
  std::int64_t count() const { return (tokens_ + width_ - 1) / width_; }
  std::int64_t tokens_of(std::int64_t panel) const { return std::min(width_, tokens_ - panel * width_); }

 private:
  std::int64_t tokens_, columns_, width_;
};

// Sums [panel][row, `most_rows` of them][token of the panel], `rows` in use, to y[token * y_stride + row].
void store_sums(const PanelCut& x, const float* sums, std::int64_t most_rows, std::int64_t rows, float* y,
                std::int64_t y_stride);

// Activations in f32: [panel][column][token of the panel], zeros behind the last token.
class TokenPanels : public PanelCut {
 public:
  TokenPanels(std::int64_t tokens, std::int64_t columns);

  // Tokens one after the other in memory, `columns` numbers each. Several threads may set panels of their
  // own.
  void set(std::int64_t panel, const float* tokens);

  const float* panel(std::int64_t number) const {
    return values_.as<float>().data() + number * columns() * width();
  }

 private:
  Tensor values_;
};

// Products of panels, by one thread: it holds rows in f32 and the sums of all panels.
class PanelProduct {
 public:
  explicit PanelProduct(const TokenPanels& x);

  static constexpr std::int64_t most_rows = 128;  // that share the columns of a panel while these are near

  // y[t * y_stride + r] = row r of the matrix times token t, for r in [first, last), `most_rows` at most.
  void multiply(const Matrix& matrix, std::int64_t first, std::int64_t last, float* y, std::int64_t y_stride);

 private:
  const TokenPanels& x_;
  Tensor rows_, sums_;
};

}  // namespace superstep::language
