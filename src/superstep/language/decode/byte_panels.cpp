#include "superstep/language/decode/byte_panels.h"

#include <cstring>

#include "superstep/language/decode/products.h"

namespace superstep::language {
namespace {

// Of rows that are unpacked together: a multiple of what blocks hold. The tokens of a panel take 24 kB.
constexpr std::int64_t columns_of_piece = 512;
// Rows a power of two apart would share few places of a cache.
constexpr std::int64_t stride = columns_of_piece + 64;
constexpr std::int64_t half_block = byte_block / 2;
constexpr std::int64_t most_groups = columns_of_piece / half_block;

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

bool suits_byte_panels(Packing packing, const ByteTileWay& way) {
  return is_in_blocks(packing) && byte_form(packing).largest <= way.largest_weight;
}

bool suits_byte_panels(Packing packing) {
  return !byte_tile_ways().empty() && suits_byte_panels(packing, byte_tile_ways().front());
}

BytePanels::BytePanels(std::int64_t tokens, std::int64_t columns)
    : BytePanels(tokens, columns, byte_tile_ways().front()) {}

BytePanels::BytePanels(std::int64_t tokens, std::int64_t columns, const ByteTileWay& way)
    : PanelCut(tokens, columns, way.width),
      way_(way),
      bytes_(size_of(count() * columns * width())),
      scales_(size_of(count() * columns / byte_block * width())),
      sums_(size_of(count() * columns / half_block * width())) {}

// Some columns at a time, which stay near while the tokens of the panel are put beside each other.
void BytePanels::set(std::int64_t panel, const float* tokens) {
  constexpr std::int64_t most = 256;
  std::int8_t bytes[most];
  float scales[most / byte_block];
  for (std::int64_t first = 0; first < columns(); first += most)
    for (std::int64_t t = 0; t < tokens_of(panel); ++t) {
      const std::int64_t taken = std::min(most, columns() - first);
      round_to_bytes(tokens + t * columns() + first, taken, bytes, scales);
      std::int8_t* to = bytes_.data() + (panel * columns() + first) * width() + 4 * t;
      for (std::int64_t c = 0; c < taken; c += 4) std::memcpy(to + c * width(), bytes + c, 4);
      float* scale = scales_.data() + (panel * columns() + first) / byte_block * width() + t;
      for (std::int64_t b = 0; b < taken / byte_block; ++b) scale[b * width()] = scales[b];
      std::int32_t* sum = sums_.data() + (panel * columns() + first) / half_block * width() + t;
      for (std::int64_t h = 0; h < taken / half_block; ++h) {
        int of_half = 0;
        for (std::int64_t i = 0; i < half_block; ++i) of_half += bytes[h * half_block + i];
        sum[h * width()] = of_half;
      }
    }
}

BytePanelProduct::BytePanelProduct(const BytePanels& x)
    : x_(x),
      weights_(size_of(most_rows * stride)),
      scales_(size_of(most_rows * most_groups)),
      smallest_(size_of(most_rows * most_groups)),
      sums_(size_of(x.count() * most_rows * x.width())) {}

void BytePanelProduct::multiply(const Matrix& matrix, std::int64_t first, std::int64_t last, float* y,
                                std::int64_t y_stride) {
  const ByteForm form = byte_form(matrix.packing);
  std::ranges::fill(sums_, 0.0f);
  for (std::int64_t column = 0; column < x_.columns(); column += columns_of_piece) {
    const std::int64_t columns = std::min(columns_of_piece, x_.columns() - column);
    unpack(matrix, first, last, column, columns);
    add_products(form, last - first, column, columns);
  }
  store_sums(x_, sums_.data(), most_rows, last - first, y + first, y_stride);
}

void BytePanelProduct::unpack(const Matrix& matrix, std::int64_t first, std::int64_t last,
                              std::int64_t column, std::int64_t columns) {
  const std::int64_t ahead = std::min(columns_of_piece, x_.columns() - column - columns);
  for (std::int64_t r = first; r < last; ++r) {
    const std::int64_t place = r - first;
    unpack_bytes(matrix, r, column, columns, weights_.data() + place * stride,
                 scales_.data() + place * most_groups, smallest_.data() + place * most_groups);
    if (ahead > 0) prefetch_part(matrix, r, column + columns, ahead);
  }
}

void BytePanelProduct::add_products(const ByteForm& form, std::int64_t rows, std::int64_t column,
                                    std::int64_t columns) {
  const std::int64_t width = x_.width();
  for (std::int64_t p = 0; p < x_.count(); ++p) {
    const std::int64_t place = p * x_.columns() + column;
    x_.way_.multiply({.weights = weights_.data(),
                      .stride = stride,
                      .scales = scales_.data(),
                      .smallest = smallest_.data(),
                      .scale_stride = most_groups,
                      .form = form,
                      .tokens = x_.bytes_.data() + place * width,
                      .token_scales = x_.scales_.data() + place / byte_block * width,
                      .token_sums = x_.sums_.data() + place / half_block * width,
                      .blocks = columns / byte_block,
                      .width = width,
                      .sums = sums_.data() + p * most_rows * width},
                     rows, x_.tokens_of(p));
  }
}

}  // namespace superstep::language
