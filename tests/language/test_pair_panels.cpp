// Products of weights in bf16 with many tokens in pairs, against sums in f64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/base/system/pair_rate.h"
#include "superstep/language/decode/pair_panels.h"

namespace superstep::language {
namespace {

constexpr float untouched = -7;
constexpr double of_sums = 1e-6;               // of the sum of magnitudes, for the rounding of sums
const double of_rounding = std::ldexp(1, -8);  // the same, for activations of 8 bits

struct Case {
  std::int64_t rows, columns, tokens;
  std::vector<bf16> weights;
  std::vector<float> x;

  Matrix matrix() const {
    return {rows, columns, Packing::bf16, reinterpret_cast<const std::byte*>(weights.data()), nullptr};
  }
};

std::vector<float> drawn(std::int64_t count, RandomStream& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

Case random_case(std::int64_t rows, std::int64_t columns, std::int64_t tokens, RandomStream& random) {
  Case made{rows, columns, tokens, {}, drawn(tokens * columns, random)};
  for (const float weight : drawn(rows * columns, random)) made.weights.emplace_back(weight);
  return made;
}

// y [token], `stride` apart: what lies behind the rows is untouched.
std::vector<float> products(const Case& of, std::int64_t stride) {
  std::vector<float> y(static_cast<std::size_t>(of.tokens * stride), untouched);
  PairPanels panels(of.tokens, of.columns);
  for (std::int64_t p = 0; p < panels.count(); ++p)
    panels.set(p, of.x.data() + p * panels.width() * of.columns);
  PairPanelProduct product(panels);
  constexpr std::int64_t most = PairPanelProduct::most_rows;
  for (std::int64_t first = 0; first < of.rows; first += most)
    product.multiply(of.matrix(), first, std::min(of.rows, first + most), y.data(), stride);
  return y;
}

// The largest error, as a share of the sum of magnitudes.
double worst_error(const Case& of) {
  const std::int64_t stride = of.rows + 3;
  const std::vector<float> y = products(of, stride);
  double worst = 0;
  for (std::int64_t t = 0; t < of.tokens; ++t) {
    for (std::int64_t r = 0; r < of.rows; ++r) {
      double sum = 0, magnitude = 0;
      for (std::int64_t c = 0; c < of.columns; ++c) {
        const double part = static_cast<double>(static_cast<float>(
                                of.weights[static_cast<std::size_t>(r * of.columns + c)])) *
                            static_cast<double>(of.x[static_cast<std::size_t>(t * of.columns + c)]);
        sum += part, magnitude += std::abs(part);
      }
      const double error = std::abs(y[static_cast<std::size_t>(t * stride + r)] - sum);
      worst =
          std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error / magnitude);
    }
    for (std::int64_t r = of.rows; r < stride; ++r)
      EXPECT_EQ(y[static_cast<std::size_t>(t * stride + r)], untouched) << "written beyond the rows";
  }
  return worst;
}

class PairPanelProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_pair_products()) GTEST_SKIP() << "this processor does not multiply pairs of bf16";
  }
};

// Whole tiles of rows and parts of one, whole vectors of tokens and parts of one, columns that are no pair's,
// several pieces of columns and several calls of rows.
TEST_F(PairPanelProducts, AreTheSumsOfAllSizes) {
  RandomStream random(21);
  for (const std::int64_t tokens : {1, 15, 16, 17, 32, 33, 47, 48, 49, 100})
    for (const std::int64_t columns : {1, 2, 3, 31, 127, 128, 130, 511, 512, 513, 1025})
      for (const std::int64_t rows : {1, 7, 8, 9, 15, 16, 17, 130}) {
        SCOPED_TRACE(fmt::format("{} rows of {} columns, {} tokens", rows, columns, tokens));
        Case drawn = random_case(rows, columns, tokens, random);
        EXPECT_LT(worst_error(drawn), of_rounding + of_sums);
        for (float& value : drawn.x) value = static_cast<float>(bf16(value));
        EXPECT_LT(worst_error(drawn), of_sums) << "activations that are bf16 need no rounding";
      }
}

// Half of the last bit of 8 is left of numbers just above a power of two: the bound is reached, and no more.
TEST_F(PairPanelProducts, AreOffByTheRoundingOfActivations) {
  RandomStream random(22);
  Case drawn = random_case(9, 64, 20, random);
  for (float& value : drawn.x) value = 1 + std::ldexp(1.0f, -8);
  for (bf16& weight : drawn.weights) weight = bf16(std::abs(static_cast<float>(weight)));
  const double error = worst_error(drawn);
  EXPECT_LT(error, of_rounding + of_sums);
  EXPECT_GT(error, 0.99 * of_rounding) << "nothing was rounded";
}

// Rows of odd length: the number behind a row is the next one's first.
TEST_F(PairPanelProducts, LookAtNoOtherRow) {
  RandomStream random(23);
  for (const std::int64_t columns : {1, 5, 513}) {
    Case drawn = random_case(3, columns, 17, random);
    for (std::int64_t c = 0; c < 2 * columns; ++c)
      drawn.weights[static_cast<std::size_t>(columns + c)] = bf16(std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> y = products(drawn, 3);
    for (std::size_t t = 0; t < 17; ++t) {
      EXPECT_FALSE(std::isnan(y[3 * t])) << columns;
      EXPECT_TRUE(std::isnan(y[3 * t + 1])) << columns;
    }
  }
}

// Infinities and what is no number stay what they are.
TEST_F(PairPanelProducts, KeepWhatIsNoNumber) {
  RandomStream random(24);
  Case drawn = random_case(8, 32, 18, random);
  for (bf16& weight : drawn.weights) weight = bf16(1);
  drawn.x[5 * 32 + 3] = std::numeric_limits<float>::quiet_NaN();
  drawn.x[6 * 32 + 3] = std::numeric_limits<float>::infinity();
  const std::vector<float> y = products(drawn, 8);
  for (std::size_t t = 0; t < 18; ++t) {
    EXPECT_EQ(std::isnan(y[8 * t]), t == 5);
    EXPECT_EQ(std::isinf(y[8 * t]), t == 6);
  }
}

TEST(PairPanels, SuitWeightsInBf16WherePairsAreFast) {
  EXPECT_EQ(suits_pair_panels(Packing::bf16), pair_products_are_fast());
  EXPECT_TRUE(has_pair_products() || !pair_products_are_fast());
  EXPECT_TRUE(has_pair_products() || !begins_two_pair_products());
  for (const Packing other : {Packing::f32, Packing::f16, Packing::q8_0, Packing::q4_k})
    EXPECT_FALSE(suits_pair_panels(other));
}

// Every number at its place, whatever remains of rows and columns.
TEST(Panels, AreTurnedOver) {
  for (const std::int64_t rows : {1, 3, 4, 15, 16, 17, 48, 50})
    for (const std::int64_t columns : {1, 4, 7, 8, 15, 16, 17, 33, 128}) {
      SCOPED_TRACE(fmt::format("{} by {}", rows, columns));
      const std::int64_t from_stride = columns + 3, to_stride = rows + 5;
      std::vector<float> from(static_cast<std::size_t>(rows * from_stride)),
          to(static_cast<std::size_t>(columns * to_stride), untouched);
      std::iota(from.begin(), from.end(), 1.0f);
      turn_over(from.data(), from_stride, rows, columns, to.data(), to_stride);
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t r = 0; r < to_stride; ++r)
          ASSERT_EQ(to[static_cast<std::size_t>(c * to_stride + r)],
                    r < rows ? from[static_cast<std::size_t>(r * from_stride + c)] : untouched);
    }
}

}  // namespace
}  // namespace superstep::language
