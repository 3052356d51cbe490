#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/cpu/kernels/elementwise/random_mask.h"
#include "superstep/target/cpu/kernels/sequence/attention.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

using Matrix = std::vector<double>;

// What strides reach: the elements that a matrix of each attention needs.
std::int64_t reach(const MatrixStrides& s, const Attention& a, std::int64_t rows, std::int64_t columns) {
  return (a.batch[0] - 1) * s.batch[0] + (a.batch[1] - 1) * s.batch[1] + (rows - 1) * s.row +
         (columns - 1) * s.column + 1;
}

std::int64_t place(const MatrixStrides& s, std::int64_t i, std::int64_t j, std::int64_t row,
                   std::int64_t column) {
  return i * s.batch[0] + j * s.batch[1] + row * s.row + column * s.column;
}

// As many as k and v have.
Attention heads_of_keys(Attention a) {
  a.batch[1] /= a.sharing;
  return a;
}

constexpr const char* orders[] = {"heads inside", "dense", "turned round"};

// [batch][row][head][column] with gaps, [batch][head][row][column], or that with rows contiguous.
MatrixStrides strides_of(int order, const Attention& a, std::int64_t rows, std::int64_t columns,
                         ElementType type) {
  if (order == 0) {
    const std::int64_t row = a.batch[1] * columns + 3;
    return {{rows * row, columns}, row, 1, type};
  }
  const std::int64_t matrix = rows * columns;
  if (order == 1) return {{a.batch[1] * matrix, matrix}, columns, 1, type};
  return {{a.batch[1] * matrix, matrix}, 1, rows, type};
}

struct Case {
  Attention a;
  MatrixStrides dy, dq, dk, dv;
};

Case random_case(std::uint64_t seed) {
  RandomStream random(seed);
  const auto pick = [&](std::initializer_list<std::int64_t> list) {
    return list.begin()[random.below(list.size())];
  };
  Case c;
  Attention& a = c.a;
  a.batch = {pick({1, 2, 3}), pick({1, 2, 4})};
  a.rows = pick({1, 2, 5, 16, 33, 64, 70, 130});
  a.keys = pick({1, 3, 15, 16, 17, 64, 100, 256});
  if (random.below(8) == 0) a.keys = pick({513, 600, 1030});
  a.depth = pick({1, 4, 8, 17, 32, 64});
  a.width = pick({1, 5, 16, 32, 48});
  a.scale = random.below(2) ? 1.0f : 0.25f;
  const auto strides = [&](std::int64_t rows, std::int64_t columns) {
    const ElementType type = random.below(4) == 0 ? ElementType::bf16 : ElementType::f32;
    return strides_of(static_cast<int>(random.below(std::size(orders))), a, rows, columns, type);
  };
  a.q = strides(a.rows, a.depth);
  a.k = strides(a.keys, a.depth);
  a.v = strides(a.keys, a.width);
  a.y = strides(a.rows, a.width);
  c.dy = strides(a.rows, a.width);
  c.dq = strides(a.rows, a.depth);
  c.dk = strides(a.keys, a.depth);
  c.dv = strides(a.keys, a.width);
  const auto mask = [&](ElementType type) -> MatrixStrides {
    switch (random.below(3)) {
      case 0: return {{a.keys, 0}, 0, 1, type};                     // of each sample and key: padding
      case 1: return {{0, 0}, a.keys, 1, type};                     // of each row and key: causal
      default: return {{a.batch[1] * a.rows, a.rows}, 1, 0, type};  // of each row
    }
  };
  a.has_bias = random.below(2) == 0;
  a.bias = mask(ElementType::f32);
  a.bias_scale = random.below(2) ? 1.0f : 0.5f;
  a.has_condition = random.below(3) == 0;
  a.condition = mask(ElementType::u8);
  a.hidden_if = random.below(2) == 0;
  a.hidden = -30;
  a.keep = random.below(3) == 0 ? 0.75f : 1.0f;
  return c;
}

// The numbers of an attention, and what comes of them by the definition in f64.
class Example {
 public:
  Example(const Case& c, std::uint64_t seed)
      : c_(c),
        q(c.a.q.type, reach(c.a.q, c.a, c.a.rows, c.a.depth)),
        k(c.a.k.type, reach(c.a.k, heads_of_keys(c.a), c.a.keys, c.a.depth)),
        v(c.a.v.type, reach(c.a.v, heads_of_keys(c.a), c.a.keys, c.a.width)),
        y(c.a.y.type, reach(c.a.y, c.a, c.a.rows, c.a.width)),
        bias(ElementType::f32, reach(c.a.bias, c.a, c.a.rows, c.a.keys)),
        condition(ElementType::u8, reach(c.a.condition, c.a, c.a.rows, c.a.keys)),
        statistics(ElementType::f32, static_cast<std::int64_t>(statistics_bytes(c.a) / sizeof(float))),
        dy(c.dy.type, reach(c.dy, c.a, c.a.rows, c.a.width)),
        dq(c.dq.type, reach(c.dq, c.a, c.a.rows, c.a.depth)),
        dk(c.dk.type, reach(c.dk, c.a, c.a.keys, c.a.depth)),
        dv(c.dv.type, reach(c.dv, c.a, c.a.keys, c.a.width)),
        address{seed + 7, 5, 3} {
    GuardedBuffer* random[] = {&q, &k, &v, &bias, &dy};
    for (std::size_t i = 0; i < std::size(random); ++i) random[i]->fill_random(seed * 16 + i, -2, 2);
    RandomStream bits(seed, 99);
    for (std::int64_t i = 0; i < condition.size(); ++i) condition.set(i, bits.below(3) == 0 ? 1.0 : 0.0);
  }

  std::vector<const void*> inputs() {
    std::vector<const void*> in{q.data(), k.data(), v.data()};
    if (c_.a.has_bias) in.push_back(bias.data());
    if (c_.a.has_condition) in.push_back(condition.data());
    if (c_.a.keep < 1) in.push_back(&address);
    return in;
  }
  std::vector<const void*> gradient_inputs() {
    std::vector<const void*> in = inputs();
    in.insert(in.end(), {y.data(), statistics.data(), dy.data()});
    return in;
  }

  // The definition for one attention: y, dq, dk and dv, row-major.
  struct Exact {
    Matrix y, dq, dk, dv;
  };
  Exact exact(std::int64_t i, std::int64_t j) const;

 private:
  double score(std::int64_t i, std::int64_t j, std::int64_t row, std::int64_t key) const;
  bool hides(std::int64_t i, std::int64_t j, std::int64_t row, std::int64_t key) const {
    return c_.a.has_condition &&
           (condition.get(place(c_.a.condition, i, j, row, key)) != 0) == c_.a.hidden_if;
  }
  Case c_;

 public:
  GuardedBuffer q, k, v, y, bias, condition, statistics, dy, dq, dk, dv;
  RandomAddress address;
};

double Example::score(std::int64_t i, std::int64_t j, std::int64_t row, std::int64_t key) const {
  const Attention& a = c_.a;
  if (hides(i, j, row, key)) return a.hidden;
  double sum = 0;
  for (std::int64_t d = 0; d < a.depth; ++d)
    sum += q.get(place(a.q, i, j, row, d)) * k.get(place(a.k, i, j / a.sharing, key, d));
  sum *= a.scale;
  if (a.has_bias) sum += bias.get(place(a.bias, i, j, row, key)) * a.bias_scale;
  return sum;
}

Example::Exact Example::exact(std::int64_t i, std::int64_t j) const {
  const Attention& a = c_.a;
  const auto size = [](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns);
  };
  Exact e{Matrix(size(a.rows, a.width)), Matrix(size(a.rows, a.depth)), Matrix(size(a.keys, a.depth)),
          Matrix(size(a.keys, a.width))};
  RandomStream drops(address.seed, address.first_sample + static_cast<std::uint64_t>(i), address.purpose);
  for (std::int64_t skipped = 0; a.keep < 1 && skipped < j * a.rows * a.keys; ++skipped) drops.next_u32();
  const auto at = [](Matrix& m, std::int64_t row, std::int64_t columns, std::int64_t column) -> double& {
    return m[static_cast<std::size_t>(row * columns + column)];
  };
  for (std::int64_t row = 0; row < a.rows; ++row) {
    std::vector<double> weight, drop, d_weight;
    double most = -std::numeric_limits<double>::infinity(), sum = 0, dot = 0;
    for (std::int64_t key = 0; key < a.keys; ++key) weight.push_back(score(i, j, row, key));
    for (double w : weight) most = std::max(most, w);
    for (double& w : weight) sum += w = std::exp(w - most);
    for (std::int64_t key = 0; key < a.keys; ++key) {
      weight[static_cast<std::size_t>(key)] /= sum;
      const bool kept = a.keep >= 1 || drops.next_u32() < static_cast<double>(a.keep) * 0x1p32;
      drop.push_back(kept ? 1 / static_cast<double>(a.keep) : 0);
      double d = 0;
      for (std::int64_t w = 0; w < a.width; ++w) {
        const double used = weight.at(static_cast<std::size_t>(key)) * drop.back();
        const double value = v.get(place(a.v, i, j / a.sharing, key, w)),
                     dy_value = dy.get(place(c_.dy, i, j, row, w));
        at(e.y, row, a.width, w) += used * value;
        at(e.dv, key, a.width, w) += used * dy_value;
        d += value * dy_value;
      }
      d_weight.push_back(d * drop.back());
      dot += weight.at(static_cast<std::size_t>(key)) * d_weight.back();
    }
    // The gradient takes the rows' dots from y as it was stored.
    if (a.y.type == ElementType::bf16) {
      dot = 0;
      for (std::int64_t w = 0; w < a.width; ++w)
        dot += y.get(place(a.y, i, j, row, w)) * dy.get(place(c_.dy, i, j, row, w));
    }
    for (std::int64_t key = 0; key < a.keys; ++key) {
      const auto n = static_cast<std::size_t>(key);
      if (hides(i, j, row, key)) continue;
      const double d_score = a.scale * weight[n] * (d_weight[n] - dot);
      for (std::int64_t d = 0; d < a.depth; ++d) {
        at(e.dq, row, a.depth, d) += d_score * k.get(place(a.k, i, j / a.sharing, key, d));
        at(e.dk, key, a.depth, d) += d_score * q.get(place(a.q, i, j, row, d));
      }
    }
  }
  return e;
}

// The largest difference, in units of the largest element.
double difference(const GuardedBuffer& actual, const MatrixStrides& s, std::int64_t i, std::int64_t j,
                  const Matrix& exact, std::int64_t columns) {
  double worst = 0, largest = 0.5;  // of numbers of the order of 1
  for (std::size_t n = 0; n < exact.size(); ++n) {
    const auto row = static_cast<std::int64_t>(n) / columns, column = static_cast<std::int64_t>(n) % columns;
    const double found = actual.get(place(s, i, j, row, column));
    if (!std::isfinite(found)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(found - exact[n]));
    largest = std::max(largest, std::abs(exact[n]));
  }
  return worst / largest;
}

double tolerance(const MatrixStrides& s) { return s.type == ElementType::bf16 ? 0x1p-8 : 4e-5; }

void check(std::uint64_t seed) {
  SCOPED_TRACE(seed);
  const Case c = random_case(seed);
  const Attention& a = c.a;
  Example e(c, seed);
  run_kernel(*require_kernel(prepare_attention(a)), e.inputs(), {e.y.data(), e.statistics.data()});
  run_kernel(*require_kernel(prepare_attention_gradient({a, c.dy, c.dq, c.dk, c.dv})), e.gradient_inputs(),
             {e.dq.data(), e.dk.data(), e.dv.data()});
  for (std::int64_t i = 0; i < a.batch[0]; ++i)
    for (std::int64_t j = 0; j < a.batch[1]; ++j) {
      const Example::Exact exact = e.exact(i, j);
      ASSERT_LE(difference(e.y, a.y, i, j, exact.y, a.width), tolerance(a.y));
      ASSERT_LE(difference(e.dv, c.dv, i, j, exact.dv, a.width), tolerance(c.dv));
      ASSERT_LE(difference(e.dq, c.dq, i, j, exact.dq, a.depth), tolerance(c.dq));
      ASSERT_LE(difference(e.dk, c.dk, i, j, exact.dk, a.depth), tolerance(c.dk));
    }
}

TEST(Attention, AgreesWithTheDefinition) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 25 && !testing::Test::HasFatalFailure(); ++seed) check(seed);
  });
}

// Guards lie behind the last head of k and v.
double difference_where_shared(std::uint64_t seed, std::int64_t sharing, ElementType type) {
  Case c = random_case(seed);
  Attention& a = c.a;
  a.keep = 1;
  a.has_bias = a.has_condition = false;
  a.batch[1] = 2 * sharing;
  a.sharing = sharing;
  const int order = static_cast<int>(seed % std::size(orders));
  a.q = strides_of(order, a, a.rows, a.depth, type);
  a.k = strides_of(order, heads_of_keys(a), a.keys, a.depth, type);
  a.v = strides_of(order, heads_of_keys(a), a.keys, a.width, type);
  a.y = strides_of(order, a, a.rows, a.width, ElementType::f32);
  Example e(c, seed);
  run_kernel(*require_kernel(prepare_attention(c.a)), e.inputs(), {e.y.data(), e.statistics.data()});
  double worst = 0;
  for (std::int64_t i = 0; i < c.a.batch[0]; ++i)
    for (std::int64_t j = 0; j < c.a.batch[1]; ++j)
      worst = std::max(worst, difference(e.y, c.a.y, i, j, e.exact(i, j).y, c.a.width));
  return worst;
}

TEST(Attention, HeadsOfKeysAreShared) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 12; ++seed)
      for (const std::int64_t sharing : {2, 3}) {
        EXPECT_LE(difference_where_shared(seed, sharing, ElementType::f32), 4e-5) << seed;
        EXPECT_LE(difference_where_shared(seed, sharing, ElementType::bf16), 0x1p-7) << seed;
      }
  });
}

// q, k and v of bf16: weights are rounded to 2^-9 before they meet v, whose elements go up to 2; the result
// is f32, so that its own rounding does not hide theirs.
double difference_in_pairs(std::uint64_t seed) {
  Case c = random_case(seed);
  for (MatrixStrides* s : {&c.a.q, &c.a.k, &c.a.v}) s->type = ElementType::bf16;
  c.a.y.type = ElementType::f32;
  Example e(c, seed);
  run_kernel(*require_kernel(prepare_attention(c.a)), e.inputs(), {e.y.data(), e.statistics.data()});
  double worst = 0;
  for (std::int64_t i = 0; i < c.a.batch[0]; ++i)
    for (std::int64_t j = 0; j < c.a.batch[1]; ++j)
      worst = std::max(worst, difference(e.y, c.a.y, i, j, e.exact(i, j).y, c.a.width));
  return worst;
}

TEST(Attention, MultipliesPairsOfBf16) {
  for_each_instruction_set([] {
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) worst = std::max(worst, difference_in_pairs(seed));
    EXPECT_LE(worst, 0x1p-7);
    const bool pairs = multiplies_pairs_fast();
    EXPECT_EQ(worst > 4e-5, pairs) << "where weights are rounded it is seen";
  });
}

// One row of scores that no key block may spoil: hidden in the first block, and huge in the second.
TEST(Attention, SurvivesExtremeScores) {
  for_each_instruction_set([] {
    Case c;
    c.a.rows = 2;
    c.a.keys = 1030;
    c.a.depth = c.a.width = 1;
    c.a.q = c.a.k = c.a.v = c.a.y = c.dy = c.dq = c.dk = c.dv = strides_of(1, c.a, 2, 1, ElementType::f32);
    c.a.has_bias = true;
    c.a.bias = {{0, 0}, 0, 1, ElementType::f32};
    Example e(c, 1);
    for (std::int64_t key = 0; key < 1030; ++key)
      e.bias.set(key, key < 1029 ? -std::numeric_limits<double>::infinity() : 1e30);
    run_kernel(*require_kernel(prepare_attention(c.a)), e.inputs(), {e.y.data(), e.statistics.data()});
    for (std::int64_t row = 0; row < 2; ++row) EXPECT_EQ(e.y.get(row), e.v.get(1029));
    e.bias.set(1029, -std::numeric_limits<double>::infinity());
    run_kernel(*require_kernel(prepare_attention(c.a)), e.inputs(), {e.y.data(), e.statistics.data()});
    EXPECT_TRUE(std::isnan(e.y.get(0))) << "softmax of minus infinities is NaN";
    c.a.nan_to_zero = true;
    run_kernel(*require_kernel(prepare_attention(c.a)), e.inputs(), {e.y.data(), e.statistics.data()});
    EXPECT_EQ(e.y.get(0), 0);
    e.bias.set(7, 0.0);
    run_kernel(*require_kernel(prepare_attention(c.a)), e.inputs(), {e.y.data(), e.statistics.data()});
    EXPECT_EQ(e.y.get(1), e.v.get(7)) << "a row with a weight stays as it is";
  });
}

TEST(Attention, RefusesWhatItCannotDo) {
  Attention a;
  a.scale = -1;
  EXPECT_FALSE(prepare_attention(a));
  a.scale = 1;
  a.keep = 0;
  EXPECT_FALSE(prepare_attention(a));
  a.keep = 1;
  a.q.type = ElementType::i32;
  EXPECT_FALSE(prepare_attention(a));
  a.q.type = ElementType::f32;
  EXPECT_TRUE(prepare_attention(a));
  a.batch[1] = 4;
  a.sharing = 3;
  EXPECT_FALSE(prepare_attention(a)) << "three of four";
  a.sharing = 2;
  EXPECT_TRUE(prepare_attention(a));
  EXPECT_FALSE(prepare_attention_gradient({a, a.y, a.q, a.k, a.v}));
}

// Neither direction keeps scores: scratch of one thread grows with the length, not with its square.
TEST(Attention, ScratchIsLinearInTheLength) {
  const auto bytes = [](std::int64_t length) {
    Attention a;
    a.rows = a.keys = length;
    a.depth = a.width = 64;
    a.q = a.k = a.v = a.y = {{0, 0}, 64, 1, ElementType::f32};
    const AttentionGradient g{a, a.q, a.q, a.q, a.q};
    return require_kernel(prepare_attention(a))->info().scratch_bytes +
           require_kernel(prepare_attention_gradient(g))->info().scratch_bytes;
  };
  EXPECT_LT(bytes(8192), 2 * bytes(4096));
  EXPECT_LT(bytes(8192), std::size_t{8192} * 8192 * sizeof(float) / 20);
}

}  // namespace
}  // namespace superstep::kernels
