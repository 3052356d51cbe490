// Products of weights in blocks with many tokens, as integers: panels of tokens (panels.h) as bytes, a scale
// for each 32 numbers of a token, as one token has them (products.h).
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/language/decode/byte_tiles.h"
#include "superstep/language/decode/matrix.h"
#include "superstep/language/decode/panels.h"

namespace superstep::language {

// Whether the weights are in blocks, and this processor multiplies them so more quickly than as f32.
bool suits_byte_panels(Packing packing, const ByteTileWay& way);
bool suits_byte_panels(Packing packing);  // by the quickest way

class BytePanels : public PanelCut {
 public:
  // `columns`: a multiple of 32. By the quickest way, of which there must be one, or another.
  BytePanels(std::int64_t tokens, std::int64_t columns);
  BytePanels(std::int64_t tokens, std::int64_t columns, const ByteTileWay& way);

  // Tokens one after the other in memory, `columns` numbers each. Several threads may set panels of their
  // own.
  void set(std::int64_t panel, const float* tokens);

 private:
  friend class BytePanelProduct;

  ByteTileWay way_;
  std::vector<std::int8_t> bytes_;  // [panel][four columns][token][column], zeros behind the last token
  std::vector<float> scales_;       // [panel][block][token]
  std::vector<std::int32_t> sums_;  // [panel][half a block][token]
};

// Products of panels, by one thread: it holds rows of weights as bytes and the sums of all panels.
class BytePanelProduct {
 public:
  explicit BytePanelProduct(const BytePanels& x);

  static constexpr std::int64_t most_rows = 128;  // that share the columns of a panel while these are near

  // y[t * y_stride + r] = row r of the matrix times token t, for r in [first, last), `most_rows` at most.
  void multiply(const Matrix& matrix, std::int64_t first, std::int64_t last, float* y, std::int64_t y_stride);

 private:
  void unpack(const Matrix& matrix, std::int64_t first, std::int64_t last, std::int64_t column,
              std::int64_t columns);
  void add_products(const ByteForm& form, std::int64_t rows, std::int64_t column, std::int64_t columns);

  const BytePanels& x_;
  std::vector<std::uint8_t> weights_;     // [row][column]
  std::vector<float> scales_, smallest_;  // [row][group]
  std::vector<float> sums_;               // [panel][row][token]
};

}  // namespace superstep::language
