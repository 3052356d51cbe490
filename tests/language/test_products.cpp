// Products of packed weights against sums in f64 of the unpacked ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/base/random.h"
#include "superstep/base/system/instruction_set.h"
#include "superstep/language/decode/byte_dots.h"
#include "superstep/language/decode/byte_panels.h"
#include "superstep/language/decode/pair_panels.h"
#include "superstep/language/decode/panels.h"
#include "superstep/language/decode/products.h"
#include "superstep/language/decode/tiles.h"

namespace superstep::language {
namespace {

// As they are chosen, and as they are where no instruction suits a packing alone.
constexpr auto ways = {multiply_rows, multiply_rows_by_vectors};

struct Kind {
  Packing packing;
  std::int64_t multiple;  // of columns
  double tolerance;       // share of the sum of magnitudes
};
constexpr Kind kinds[] = {{Packing::f32, 1, 1e-6},   {Packing::f16, 1, 1e-6},   {Packing::bf16, 1, 1e-6},
                          {Packing::q8_0, 32, 8e-3}, {Packing::q4_0, 32, 8e-3}, {Packing::q4_k, 256, 8e-3},
                          {Packing::q6_k, 256, 8e-3}};

std::uint16_t half_of(float value, Packing packing) {
  return packing == Packing::bf16 ? bf16::round_from(value) : f16::round_from(value);
}

// Random bits are good weights but for the scales, which must be numbers of a usual size.
void set_scales(Packing packing, std::byte* row, std::size_t bytes, RandomStream& random) {
  const auto set = [&](std::size_t at) {
    const std::uint16_t bits = f16::round_from(static_cast<float>(random.uniform(0.001, 0.01)));
    std::memcpy(row + at, &bits, sizeof bits);
  };
  const std::size_t block = packing == Packing::q8_0   ? 34
                            : packing == Packing::q4_0 ? 18
                            : packing == Packing::q4_k ? 144
                                                       : 210;
  for (std::size_t at = 0; at < bytes; at += block) {
    if (packing == Packing::q6_k) {
      set(at + 208);
    } else {
      set(at);
      if (packing == Packing::q4_k) set(at + 2);
    }
  }
}

struct Weights {
  Matrix matrix;
  std::vector<std::byte> bytes;
};

Weights random_weights(const Kind& kind, std::int64_t rows, std::int64_t columns, RandomStream& random) {
  Weights w{{rows, columns, kind.packing, nullptr, nullptr}, {}};
  w.bytes.resize(w.matrix.bytes());
  w.matrix.data = w.bytes.data();
  const std::size_t row_bytes = w.matrix.row_bytes();
  if (is_in_blocks(kind.packing)) {
    for (std::byte& byte : w.bytes) byte = static_cast<std::byte>(random.next_u32());
    for (std::int64_t r = 0; r < rows; ++r)
      set_scales(kind.packing, w.bytes.data() + static_cast<std::size_t>(r) * row_bytes, row_bytes, random);
    return w;
  }
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const auto value = static_cast<float>(random.uniform(-1, 1));
    if (kind.packing == Packing::f32) {
      std::memcpy(w.bytes.data() + 4 * i, &value, 4);
    } else {
      const std::uint16_t bits = half_of(value, kind.packing);
      std::memcpy(w.bytes.data() + 2 * i, &bits, 2);
    }
  }
  return w;
}

// `tolerance`: of the sum of magnitudes.
void expect_products(const Matrix& matrix, const std::vector<float>& x, const std::vector<float>& y,
                     double tolerance) {
  std::vector<float> row(x.size());
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    unpack_row(matrix, r, row.data());
    double sum = 0, magnitude = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      sum += static_cast<double>(row[i]) * x[i];
      magnitude += std::abs(static_cast<double>(row[i]) * x[i]);
    }
    EXPECT_NEAR(y[static_cast<std::size_t>(r)], sum, tolerance * magnitude)
        << static_cast<int>(matrix.packing) << " of " << matrix.columns << " columns, row " << r;
  }
}

TEST(Products, AreThoseOfTheUnpackedWeights) {
  RandomStream random(5);
  for (const Kind& kind : kinds)
    for (const std::int64_t factor : {1, 2, 3, 37}) {
      const std::int64_t columns = kind.multiple * factor, rows = 5;
      const Weights w = random_weights(kind, rows, columns, random);
      std::vector<float> x(static_cast<std::size_t>(columns)), y(static_cast<std::size_t>(rows), NAN);
      for (float& value : x) value = static_cast<float>(random.uniform(-1, 1));
      Activations activations;
      activations.set(x, is_in_blocks(kind.packing));
      for (const auto multiply : ways) {
        multiply(w.matrix, activations, 0, rows, y.data());
        expect_products(w.matrix, x, y, kind.tolerance);
      }
    }
}

// Rows are multiplied side by side with others: which others makes no difference, bit by bit, since threads
// share them out as they come.
TEST(Products, AreTheSameWhicheverRowsAreBeside) {
  RandomStream random(14);
  for (const Kind& kind : kinds)
    for (const std::int64_t factor : {1, 3, 37, 77}) {
      const std::int64_t columns = kind.multiple * factor, rows = 23;
      const Weights w = random_weights(kind, rows, columns, random);
      std::vector<float> x(static_cast<std::size_t>(columns)), alone(static_cast<std::size_t>(rows));
      for (float& value : x) value = static_cast<float>(random.uniform(-1, 1));
      Activations activations;
      activations.set(x, is_in_blocks(kind.packing));
      for (std::int64_t r = 0; r < rows; ++r) multiply_rows(w.matrix, activations, r, r + 1, alone.data());
      for (const std::int64_t cut : {0, 1, 4, 11, 20}) {
        std::vector<float> y(static_cast<std::size_t>(rows), NAN);
        multiply_rows(w.matrix, activations, 0, cut, y.data());
        multiply_rows(w.matrix, activations, cut, rows, y.data());
        EXPECT_EQ(y, alone) << static_cast<int>(kind.packing) << " of " << columns << " columns, cut at "
                            << cut;
      }
    }
}

// Whole numbers up to 127, which is in every block: their bytes are exact.
float whole_activation(std::size_t i, RandomStream& random) {
  return i % 32 == 3 ? 127 : static_cast<float>(static_cast<int>(random.below(255)) - 127);
}

// Bytes of activations are exact where these are whole numbers up to 127 with a 127 in every block: then the
// products of blocks are, too, but for the rounding of sums.
TEST(Products, OfBlocksWithWholeActivationsAreExact) {
  RandomStream random(6);
  for (const Kind& kind : kinds) {
    if (!is_in_blocks(kind.packing)) continue;
    const std::int64_t columns = 512, rows = 4;
    const Weights w = random_weights(kind, rows, columns, random);
    std::vector<float> x(static_cast<std::size_t>(columns)), y(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = whole_activation(i, random);
    Activations activations;
    activations.set(x, true);
    for (const auto multiply : ways) {
      multiply(w.matrix, activations, 0, rows, y.data());
      expect_products(w.matrix, x, y, 2e-6);
    }
  }
}

TEST(Products, PartsOfRowsAreThoseOfTheWhole) {
  RandomStream random(8);
  for (const Kind& kind : kinds) {
    const std::int64_t columns = 1280;
    const Weights w = random_weights(kind, 3, columns, random);
    std::vector<float> whole(static_cast<std::size_t>(columns)), part(whole.size());
    for (std::int64_t r = 0; r < 3; ++r) {
      unpack_row(w.matrix, r, whole.data());
      for (const auto& [first, count] :
           {std::pair<std::int64_t, std::int64_t>{0, 512}, {512, 768}, {1024, 256}}) {
        unpack_part(w.matrix, r, first, count, part.data());
        EXPECT_TRUE(std::equal(part.begin(), part.begin() + count, whole.begin() + first))
            << static_cast<int>(kind.packing);
      }
    }
  }
}

TEST(Products, OfPanelsAreThoseOfRows) {
  RandomStream random(7);
  for (const std::int64_t columns : {1, 7, 8, 33, 130})
    for (const std::int64_t count : {1, 3, 4})
      for (const std::int64_t tokens : {1, 2, 3, 5, 8}) {
        std::vector<float> rows(static_cast<std::size_t>(count * columns)),
            x(static_cast<std::size_t>(tokens * columns)), y(static_cast<std::size_t>(tokens * 6), -7);
        for (float& value : rows) value = static_cast<float>(random.uniform(-1, 1));
        for (float& value : x) value = static_cast<float>(random.uniform(-1, 1));
        const std::int64_t before = columns / 3;  // in two parts, the second of which is added
        if (before > 0)
          multiply_panel({rows.data(), count, before, columns}, x.data(), columns, tokens, y.data(), 6);
        multiply_panel({rows.data() + before, count, columns - before, columns, before > 0},
                       x.data() + before, columns, tokens, y.data(), 6);
        for (std::int64_t t = 0; t < tokens; ++t)
          for (std::int64_t r = 0; r < 6; ++r) {
            double sum = 0;
            for (std::int64_t k = 0; r < count && k < columns; ++k)
              sum += static_cast<double>(rows[static_cast<std::size_t>(r * columns + k)]) *
                     x[static_cast<std::size_t>(t * columns + k)];
            const float found = y[static_cast<std::size_t>(t * 6 + r)];
            if (r < count)
              EXPECT_NEAR(found, sum, 1e-5);
            else
              EXPECT_EQ(found, -7) << "written beyond the panel";
          }
      }
}

// Of any number of tokens, rows and columns: whole panels, parts of one, rows that fill no tile.
TEST(Products, ByPanelsOfTokens) {
  RandomStream random(9);
  for (const Kind& kind : kinds)
    for (const std::int64_t tokens : {16, 17, 47, 48, 49, 100})
      for (const auto& [rows, columns] :
           {std::pair<std::int64_t, std::int64_t>{64, 256}, {13, 768}, {70, 512}, {9, 300}}) {
        if (columns % 256 != 0 && is_in_blocks(kind.packing)) continue;
        const Weights w = random_weights(kind, rows, columns, random);
        std::vector<float> x(static_cast<std::size_t>(tokens * columns));
        for (float& value : x) value = static_cast<float>(random.uniform(-1, 1));
        const std::int64_t stride = rows + 3;
        std::vector<float> y(static_cast<std::size_t>(tokens * stride), -7);
        TokenPanels panels(tokens, columns);
        for (std::int64_t p = 0; p < panels.count(); ++p)
          panels.set(p, x.data() + p * panels.width() * columns);
        PanelProduct product(panels);
        for (std::int64_t first = 0; first < rows; first += PanelProduct::most_rows)
          product.multiply(w.matrix, first, std::min(rows, first + PanelProduct::most_rows), y.data(),
                           stride);
        for (std::int64_t t = 0; t < tokens; ++t) {
          const auto own = [&](const std::vector<float>& all, std::int64_t width) {
            return std::span(all).subspan(static_cast<std::size_t>(t * width),
                                          static_cast<std::size_t>(width));
          };
          const auto found = own(y, stride), token = own(x, columns);
          expect_products(w.matrix, {token.begin(), token.end()}, {found.begin(), found.begin() + rows},
                          1e-6);
          for (std::int64_t r = rows; r < stride; ++r)
            EXPECT_EQ(found[static_cast<std::size_t>(r)], -7) << "written beyond the rows";
        }
      }
}

// y [token], `stride` apart, by panels of bytes; what is behind the rows is -7.
std::vector<float> by_byte_panels(const Matrix& matrix, const std::vector<float>& x, std::int64_t stride,
                                  const ByteTileWay& way) {
  const auto tokens = static_cast<std::int64_t>(x.size()) / matrix.columns;
  std::vector<float> y(static_cast<std::size_t>(tokens * stride), -7);
  BytePanels panels(tokens, matrix.columns, way);
  for (std::int64_t p = 0; p < panels.count(); ++p)
    panels.set(p, x.data() + p * panels.width() * matrix.columns);
  BytePanelProduct product(panels);
  constexpr std::int64_t most = BytePanelProduct::most_rows;
  for (std::int64_t first = 0; first < matrix.rows; first += most)
    product.multiply(matrix, first, std::min(matrix.rows, first + most), y.data(), stride);
  return y;
}

// Of any number of tokens, rows and columns, by every way of this processor. With bytes that are exact the
// products are, too; with others they are those of one token, whose bytes are the same.
TEST(Products, ByPanelsOfBytes) {
  RandomStream random(12);
  for (const ByteTileWay& way : byte_tile_ways())
    for (const Kind& kind : kinds)
      for (const std::int64_t tokens : {1, 2, 16, 17, 33, 47, 48, 49, 100})
        for (const auto& [rows, factor] :
             {std::pair<std::int64_t, std::int64_t>{64, 1}, {13, 3}, {130, 2}, {9, 5}}) {
          if (!suits_byte_panels(kind.packing, way)) continue;
          const std::int64_t columns = kind.multiple * factor, stride = rows + 3;
          const Weights w = random_weights(kind, rows, columns, random);
          std::vector<float> whole(static_cast<std::size_t>(tokens * columns)), x(whole.size());
          for (std::size_t i = 0; i < x.size(); ++i) {
            whole[i] = whole_activation(i, random);
            x[i] = static_cast<float>(random.uniform(-1, 1));
          }
          const std::vector<float> of_whole = by_byte_panels(w.matrix, whole, stride, way),
                                   found = by_byte_panels(w.matrix, x, stride, way);
          for (std::int64_t t = 0; t < tokens; ++t) {
            SCOPED_TRACE(fmt::format("{}: token {} of {}", way.name, t, tokens));
            const auto own = [&](const std::vector<float>& all, std::int64_t width, std::int64_t count) {
              const auto begin = all.begin() + t * width;
              return std::vector<float>(begin, begin + count);
            };
            expect_products(w.matrix, own(whole, columns, columns), own(of_whole, stride, rows), 2e-6);
            const std::vector<float> token = own(x, columns, columns);
            Activations alone;
            alone.set(token, true);
            std::vector<float> y(static_cast<std::size_t>(rows));
            multiply_rows(w.matrix, alone, 0, rows, y.data());
            float largest = 0;
            for (const float value : y) largest = std::max(largest, std::abs(value));
            for (std::int64_t r = 0; r < rows; ++r)
              EXPECT_NEAR(found[static_cast<std::size_t>(t * stride + r)], y[static_cast<std::size_t>(r)],
                          1e-5 * largest)
                  << static_cast<int>(kind.packing) << " row " << r;
            for (std::int64_t r = rows; r < stride; ++r)
              EXPECT_EQ(found[static_cast<std::size_t>(t * stride + r)], -7) << "written beyond the rows";
          }
        }
}

// The largest of all factors, with one sign and the other: no sum on the way leaves its bits.
TEST(Products, ByPanelsOfTheLargestBytes) {
  RandomStream random(13);
  for (const ByteTileWay& way : byte_tile_ways())
    for (const Kind& kind : kinds)
      for (const int bits : {0, 255, 128, 127})
        for (const float size : {127.0f, -127.0f}) {
          if (!suits_byte_panels(kind.packing, way)) continue;
          Weights w = random_weights(kind, 9, kind.multiple, random);
          std::ranges::fill(w.bytes, static_cast<std::byte>(bits));
          const std::size_t row_bytes = w.matrix.row_bytes();
          for (std::size_t r = 0; r < 9; ++r)
            set_scales(kind.packing, w.bytes.data() + r * row_bytes, row_bytes, random);
          const std::vector<float> x(static_cast<std::size_t>(kind.multiple), size);
          SCOPED_TRACE(way.name);
          expect_products(w.matrix, x, by_byte_panels(w.matrix, x, 9, way), 2e-6);
        }
}

// A narrower processor's loops are taken where SUPERSTEP_ISA or set_instruction_set() asks for them, and are
// right.
TEST(Products, FollowTheInstructionSetInForce) {
  const InstructionSet before = instruction_set();
  std::vector<std::string> names;
  for (const InstructionSet set : available_instruction_sets()) {
    set_instruction_set(set);
    SCOPED_TRACE(name_of(set));
    if (names.empty() || names.back() != vectors_in_use()) names.emplace_back(vectors_in_use());
    EXPECT_EQ(suits_byte_dots(Packing::q8_0), has_byte_dot_products());
    if (set < InstructionSet::avx2) EXPECT_TRUE(byte_tile_ways().empty());
    if (set < InstructionSet::avx512_bf16) EXPECT_FALSE(suits_pair_panels(Packing::bf16));
    if (set < InstructionSet::avx512) EXPECT_FALSE(has_byte_dot_products());
    RandomStream random(31);
    for (const Kind& kind : kinds) {
      const std::int64_t columns = 2 * kind.multiple;
      const Weights w = random_weights(kind, 21, columns, random);
      std::vector<float> x(static_cast<std::size_t>(columns)), y(21);
      for (float& value : x) value = static_cast<float>(random.uniform(-1, 1));
      Activations activations;
      activations.set(x, true);
      for (const auto& way : ways) {
        way(w.matrix, activations, 0, 21, y.data());
        expect_products(w.matrix, x, y, kind.tolerance);
      }
    }
  }
  set_instruction_set(before);
  const auto widths = std::ranges::count_if(available_instruction_sets(),
                                            [](InstructionSet set) { return set <= InstructionSet::avx512; });
  EXPECT_EQ(static_cast<std::ptrdiff_t>(names.size()), widths) << "each width has loops of its own";
}

// By matrix registers, of any number of tokens: within 16 bits of each activation.
TEST(Products, ByMatrixRegisters) {
  RandomStream random(7);
  const std::int64_t rows = 48, columns = 96;
  const Weights w = random_weights({Packing::bf16, 1, 0}, rows, columns, random);
  if (!suits_tiles(w.matrix)) GTEST_SKIP() << "this processor has no matrix registers";
  Matrix narrow = w.matrix;
  narrow.columns = 80;
  EXPECT_FALSE(suits_tiles(narrow));
  for (const std::int64_t tokens : {1, 15, 16, 17, 33, 50}) {
    std::vector<float> x(static_cast<std::size_t>(tokens * columns));
    for (float& value : x) value = static_cast<float>(random.uniform(-1, 1));
    TileActivations activations(tokens, columns);
    for (std::int64_t t = 0; t < tokens; ++t) activations.set(t, x.data() + t * columns);
    const std::int64_t stride = rows + 3;
    std::vector<float> y(static_cast<std::size_t>(tokens * stride), NAN),
        row(static_cast<std::size_t>(columns));
    multiply_tiles(w.matrix, activations, 0, 16, y.data(), stride);
    multiply_tiles(w.matrix, activations, 16, rows, y.data(), stride);
    for (std::int64_t r = 0; r < rows; ++r) {
      unpack_row(w.matrix, r, row.data());
      for (std::int64_t t = 0; t < tokens; ++t) {
        double sum = 0, size = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
          const double part = static_cast<double>(row[static_cast<std::size_t>(c)]) *
                              static_cast<double>(x[static_cast<std::size_t>(t * columns + c)]);
          sum += part, size += std::abs(part);
        }
        EXPECT_NEAR(y[static_cast<std::size_t>(t * stride + r)], sum, 1e-5 * size) << r << ' ' << t;
      }
    }
    for (std::int64_t t = 0; t < tokens; ++t)
      EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(t * stride + rows)])) << "written beside its rows";
  }
}

}  // namespace
}  // namespace superstep::language
