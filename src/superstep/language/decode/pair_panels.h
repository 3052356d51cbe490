// Products of weights in bf16 with many tokens, in pairs: panels of tokens (panels.h) in bf16, sums in f32.
//
// An activation x is rounded to bf16, by 2^-8 |x| at most, so that a product with weights w is off by no more
// than 2^-8 of the sum of all |w x|, and the rounding of sums.
#pragma once

#include <cstdint>

#include "superstep/base/tensor.h"
#include "superstep/language/decode/matrix.h"
#include "superstep/language/decode/pair_tiles.h"
#include "superstep/language/decode/panels.h"

namespace superstep::language {

// Whether the weights are in bf16, and this processor multiplies pairs of them more quickly than f32.
bool suits_pair_panels(Packing packing);

// Where there are products of pairs (base/system/pair_rate.h).
class PairPanels : public PanelCut {
 public:
  PairPanels(std::int64_t tokens, std::int64_t columns);

  // Tokens one after the other in memory, `columns` numbers each. Several threads may set panels of their
  // own.
  void set(std::int64_t panel, const float* tokens);

  std::int64_t pairs() const { return (columns() + 1) / 2; }
  // [pair][token of the panel][column of the pair], zeros behind the last token and the last column.
  const bf16* panel(std::int64_t number) const {
    return values_.as<bf16>().data() + number * 2 * pairs() * width();
  }

 private:
  Tensor values_;
};

// Products of panels, by one thread: it holds a part of some rows and the sums of all panels.
class PairPanelProduct {
 public:
  explicit PairPanelProduct(const PairPanels& x);

  static constexpr std::int64_t most_rows = 128;  // that share the columns of a panel while these are near

  // y[t * y_stride + r] = row r of the matrix times token t, for r in [first, last), `most_rows` at most.
  void multiply(const Matrix& matrix, std::int64_t first, std::int64_t last, float* y, std::int64_t y_stride);

 private:
  struct Piece {               // of a matrix
    std::int64_t first, last;  // rows
    std::int64_t column, columns;
  };
  Piece piece_of(std::int64_t first, std::int64_t last, std::int64_t column) const;
  Piece piece_after(const Matrix& matrix, const Piece& piece) const;
  void take(const Matrix& matrix, const Piece& piece);
  static void ask_for(const Matrix& matrix, const Piece& piece, std::int64_t share, std::int64_t shares);

  const PairPanels& x_;
  Tensor rows_;  // [row][column]
  Tensor sums_;  // [panel][row][token]
};

}  // namespace superstep::language
