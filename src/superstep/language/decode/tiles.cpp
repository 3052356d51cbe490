#include "superstep/language/decode/tiles.h"

#include <algorithm>
#include <array>
#include <bit>

#include "superstep/base/system/instruction_set.h"

namespace superstep::language {
namespace {

constexpr std::int64_t side = TileActivations::side;
constexpr std::int64_t depth = 32;           // columns that one instruction sums, in bf16
constexpr std::int64_t register_bytes = 64;  // of a row
constexpr std::int64_t register_numbers = side * depth;

float widened(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace

TileActivations::TileActivations(std::int64_t tokens, std::int64_t columns)
    : tokens_(tokens), columns_(columns), values_(static_cast<std::size_t>(blocks() * columns * 2 * side)) {}

// Pairs of columns side by side, a pair of every token in a row of the register.
void TileActivations::set(std::int64_t token, const float* x) {
  std::uint16_t* own = values_.data() + token / side * columns_ * 2 * side + 2 * (token % side);
  for (std::int64_t first = 0; first < columns_; first += depth, own += 2 * register_numbers)
    for (std::int64_t c = 0; c < depth; ++c) {
      const float value = x[first + c];
      const std::uint16_t upper = bf16::round_from(value);
      std::uint16_t* at = own + c / 2 * 2 * side + c % 2;
      at[0] = upper;
      at[register_numbers] = bf16::round_from(value - widened(upper));
    }
}

#if defined(__x86_64__)

namespace {

// What LDTILECFG reads: eight registers of 16 rows of 64 bytes. Intel, Software Developer's Manual, volume 1,
// section 18.
struct alignas(64) Setting {
  std::uint8_t palette = 1, start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Setting) == 64);

// Instructions are written as such: compilers that know them move their loads past stores they cannot see.
template <int tile>
inline void load(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void store(float* to) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(register_bytes), "i"(tile) : "memory");
}
template <int tile>
inline void clear() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <int sum, int weights, int tokens>
inline void add_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(weights), "i"(tokens));
}

// Sums of 16 rows of weights (down) and 16 tokens (across).
using Sums = std::array<float, side * side>;

template <int tile>
void put(std::int64_t row, std::int64_t token, std::int64_t tokens, float* y, std::int64_t y_stride) {
  alignas(64) Sums sums;
  store<tile>(sums.data());
  for (std::int64_t t = 0; t < std::min(side, tokens - token); ++t)
    for (std::int64_t r = 0; r < side; ++r)
      y[(token + t) * y_stride + row + r] = sums[static_cast<std::size_t>(r * side + t)];
}

// Registers 0 to 3 hold sums (two of rows by two of tokens), 4 and 5 weights, 6 and 7 tokens.
template <bool two_rows, bool two_tokens>
void multiply_block(const Matrix& m, std::int64_t row, const TileActivations& x, std::int64_t block, float* y,
                    std::int64_t y_stride) {
  const auto stride = static_cast<std::int64_t>(m.row_bytes());
  const std::byte *a = m.row(row), *below = a + side * stride;
  const std::uint16_t *b = x.block(block), *right = two_tokens ? x.block(block + 1) : b;
  clear<0>(), clear<1>(), clear<2>(), clear<3>();
  for (std::int64_t c = 0; c < m.columns; c += depth) {
    load<4>(a, stride);
    if constexpr (two_rows) load<5>(below, stride);
    for (int part = 0; part < 2; ++part) {  // numbers, then what they leave
      load<6>(b, register_bytes);
      add_product<0, 4, 6>();
      if constexpr (two_rows) add_product<1, 5, 6>();
      if constexpr (two_tokens) {
        load<7>(right, register_bytes);
        add_product<2, 4, 7>();
        if constexpr (two_rows) add_product<3, 5, 7>();
      }
      b += register_numbers, right += register_numbers;
    }
    a += register_bytes, below += register_bytes;
  }
  const std::int64_t token = block * side;
  put<0>(row, token, x.tokens(), y, y_stride);
  if constexpr (two_rows) put<1>(row + side, token, x.tokens(), y, y_stride);
  if constexpr (two_tokens) put<2>(row, token + side, x.tokens(), y, y_stride);
  if constexpr (two_rows && two_tokens) put<3>(row + side, token + side, x.tokens(), y, y_stride);
}

}  // namespace

bool suits_tiles(const Matrix& m) {
  return m.packing == Packing::bf16 && m.rows % side == 0 && m.columns % depth == 0 &&
         instruction_set() >= InstructionSet::amx;
}

void multiply_tiles(const Matrix& m, const TileActivations& x, std::int64_t first, std::int64_t last,
                    float* y, std::int64_t y_stride) {
  static const Setting setting;
  asm volatile("ldtilecfg %0" : : "m"(setting));
  for (std::int64_t row = first; row < last; row += 2 * side) {
    const bool two_rows = row + side < last;
    for (std::int64_t block = 0; block < x.blocks(); block += 2) {
      const bool two_tokens = block + 1 < x.blocks();
      const auto multiply = two_rows ? two_tokens ? multiply_block<true, true> : multiply_block<true, false>
                            : two_tokens ? multiply_block<false, true>
                                         : multiply_block<false, false>;
      multiply(m, row, x, block, y, y_stride);
    }
  }
  asm volatile("tilerelease");
}

#else

bool suits_tiles(const Matrix&) { return false; }
void multiply_tiles(const Matrix&, const TileActivations&, std::int64_t, std::int64_t, float*, std::int64_t) {
}

#endif

}  // namespace superstep::language
