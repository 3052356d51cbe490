#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "superstep/target/cpu/kernels/rows/lines.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"
#include "tests/cpu_kernels/support/random_strides.h"

namespace superstep::kernels {
namespace {

struct Problem {
  Lines lines;
  std::int64_t results = 1;  // places of y and z along a line
  std::int64_t x_size = 1, y_size = 1, z_size = 1;
};

Problem random_problem(std::uint64_t seed, bool whole_lines) {
  RandomStream random(seed);
  Problem p;
  const std::int64_t length = draw(random, 1, seed % 3 == 0 ? 70 : 9);
  p.results = whole_lines ? length : draw(random, 1, length);
  std::vector<std::int64_t> others;
  for (std::int64_t i = draw(random, 0, 3); i > 0; --i)
    others.push_back(draw(random, seed % 11 == 0 ? 0 : 1, seed % 5 == 0 ? 70 : 5));
  const auto full = [&](std::int64_t count) {
    std::vector<std::int64_t> extents{count};
    extents.insert(extents.end(), others.begin(), others.end());
    return extents;
  };
  const auto x = scattered_strides(random, full(length), p.x_size),
             y = scattered_strides(random, full(p.results), p.y_size),
             z = scattered_strides(random, full(p.results), p.z_size);
  p.lines = {.axes = {}, .length = length, .x_step = x[0], .y_step = y[0], .z_step = z[0]};
  for (std::size_t i = 0; i < others.size(); ++i)
    p.lines.axes.push_back({others[i], x[i + 1], y[i + 1], z[i + 1]});
  constexpr ElementType types[] = {ElementType::f32, ElementType::bf16, ElementType::i64,
                                   ElementType::f64, ElementType::i32,  ElementType::f16};
  p.lines.type = types[seed % 6];
  return p;
}

// visit(x, y, z): where each line begins.
template <class Visit>
void for_each_line(const Lines& l, const Visit& visit, std::size_t depth = 0, Lines::Axis at = {}) {
  if (depth == l.axes.size()) return visit(at.x, at.y, at.z);
  for (std::int64_t i = 0; i < l.axes[depth].extent; ++i) {
    const Lines::Axis& axis = l.axes[depth];
    for_each_line(l, visit, depth + 1, {1, at.x + i * axis.x, at.y + i * axis.y, at.z + i * axis.z});
  }
}

// Few values, so that there are equals; whole numbers where the type has no others.
GuardedBuffer numbers(const Problem& p, std::uint64_t seed) {
  RandomStream random(seed + 77);
  GuardedBuffer x(p.lines.type, p.x_size);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(draw(random, -6, 6)));
  return x;
}

std::vector<double> values_of(const GuardedBuffer& buffer) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < buffer.size(); ++i) values.push_back(buffer.get(i));
  return values;
}

std::int64_t differences(const GuardedBuffer& buffer, const std::vector<double>& expected) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < buffer.size(); ++i)
    wrong += buffer.get(i) != expected[static_cast<std::size_t>(i)];
  return wrong;
}

TEST(Lines, RunningSumsAgreeWithNaiveLoops) {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    const Problem p = random_problem(seed, true);
    const RunningSum sum{p.lines, seed / 6 % 2 == 0, seed / 12 % 2 == 0};
    const GuardedBuffer x = numbers(p, seed);
    GuardedBuffer y(p.lines.type, p.y_size);
    y.fill(9);
    std::vector<double> expected = values_of(y);
    GuardedBuffer rounded(p.lines.type, 1);
    for_each_line(p.lines, [&](std::int64_t from, std::int64_t to, std::int64_t) {
      double total = 0;
      for (std::int64_t i = 0; i < p.lines.length; ++i) {
        const std::int64_t at = sum.reverse ? p.lines.length - 1 - i : i;
        const double before = total;
        total += x.get(from + at * p.lines.x_step);
        rounded.set(0, sum.exclusive ? before : total);
        expected[static_cast<std::size_t>(to + at * p.lines.y_step)] = rounded.get(0);
      }
    });
    run_kernel(*require_kernel(prepare(sum)), {x.data()}, {y.data()});
    EXPECT_EQ(differences(y, expected), 0) << seed;
  }
}

// Contiguous lines run side by side, eight at a time, and some are left.
TEST(Lines, RunningSumsOfContiguousLines) {
  for (const std::int64_t count : {7, 8, 21, 64})
    for (const bool reverse : {false, true}) {
      constexpr std::int64_t length = 300;
      const RunningSum sum{
          {.axes = {{count, length + 3, length + 1, 0}}, .length = length}, reverse, reverse};
      const KernelPointer kernel = require_kernel(prepare(sum));
      GuardedBuffer x(ElementType::f32, count * (length + 3)), y(ElementType::f32, count * (length + 1));
      x.fill_random(3), y.fill(9);
      run_kernel(*kernel, {x.data()}, {y.data()});
      std::int64_t wrong = 0;
      for (std::int64_t line = 0; line < count; ++line) {
        double total = 0;
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t at = reverse ? length - 1 - i : i;
          const double before = total;
          total += x.get(line * (length + 3) + at);
          wrong += y.get(line * (length + 1) + at) !=
                   static_cast<double>(static_cast<float>(reverse ? before : total));
        }
        wrong += y.get(line * (length + 1) + length) != 9 && line + 1 < count;
      }
      EXPECT_EQ(wrong, 0) << count;
    }
}

// A part holds as many lines as run side by side.
TEST(Lines, DividesManyLinesIntoWholeGroups) {
  const auto parts = [](std::int64_t count) {
    const Lines lines{.axes = {{count, 4096, 4096, 0}}, .length = 4096};
    return require_kernel(prepare(RunningSum{lines}))->info().parts;
  };
  EXPECT_EQ(parts(64), 8);
  EXPECT_EQ(parts(4), 4);
  EXPECT_EQ(parts(1), 1);
}

// NaN is the largest number and the smallest (docs/onnx.md).
bool takes_the_place(const ExtremePlace& place, double a, double of) {
  if (std::isnan(a) || std::isnan(of)) return std::isnan(a) && (!std::isnan(of) || place.last);
  return (place.largest ? a > of : a < of) || (place.last && a == of);
}

TEST(Lines, PlacesOfExtremesAgreeWithNaiveLoops) {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Problem p = random_problem(seed, true);
    const ExtremePlace place{p.lines, seed / 6 % 2 == 0, seed / 12 % 2 == 0};
    GuardedBuffer x = numbers(p, seed);
    if (is_floating(p.lines.type) && seed % 4 == 0)
      x.set(static_cast<std::int64_t>(seed) % x.size(), std::nan(""));
    GuardedBuffer y(ElementType::i64, p.y_size);
    y.fill(-5);
    std::vector<double> expected = values_of(y);
    for_each_line(p.lines, [&](std::int64_t from, std::int64_t to, std::int64_t) {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < p.lines.length; ++i) {
        const double a = x.get(from + i * p.lines.x_step), b = x.get(from + best * p.lines.x_step);
        if (takes_the_place(place, a, b)) best = i;
      }
      expected[static_cast<std::size_t>(to)] = static_cast<double>(best);
    });
    run_kernel(*require_kernel(prepare(place)), {x.data()}, {y.data()});
    EXPECT_EQ(differences(y, expected), 0) << seed;
  }
}

TEST(Lines, TheLargestFewAgreeWithASortOfAll) {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    const Problem p = random_problem(seed, false);
    const ExtremeElements extremes{p.lines, p.results, seed / 6 % 2 == 0};
    const GuardedBuffer x = numbers(p, seed);
    GuardedBuffer y(p.lines.type, p.y_size), z(ElementType::i64, p.z_size);
    y.fill(9);
    z.fill(-5);
    std::vector<double> values = values_of(y), places = values_of(z);
    for_each_line(p.lines, [&](std::int64_t from, std::int64_t to, std::int64_t place) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(p.lines.length));
      std::iota(order.begin(), order.end(), 0);
      const auto at = [&](std::int64_t i) { return x.get(from + i * p.lines.x_step); };
      std::ranges::stable_sort(order, [&](std::int64_t i, std::int64_t j) {
        return extremes.largest ? at(i) > at(j) : at(i) < at(j);
      });
      for (std::int64_t i = 0; i < p.results; ++i) {
        values[static_cast<std::size_t>(to + i * p.lines.y_step)] = at(order[static_cast<std::size_t>(i)]);
        places[static_cast<std::size_t>(place + i * p.lines.z_step)] =
            static_cast<double>(order[static_cast<std::size_t>(i)]);
      }
    });
    run_kernel(*require_kernel(prepare(extremes)), {x.data()}, {y.data(), z.data()});
    EXPECT_EQ(differences(y, values), 0) << seed;
    EXPECT_EQ(differences(z, places), 0) << seed;
    places[0] += 1;
    EXPECT_EQ(differences(z, places), 1) << seed;
  }
}

// Lines in order, in reverse order, of few different numbers and of random ones; few and many elements of
// them.
TEST(Lines, TheLargestFewOfContiguousLines) {
  for_each_instruction_set([] {
    for (const std::int64_t length : {1, 7, 16, 33, 96, 1000})
      for (const std::int64_t count : {1, 2, 8, 31, 32, 33, 96}) {
        if (count > length) continue;
        for (const bool largest : {true, false}) {
          GuardedBuffer x(ElementType::f32, 4 * length), y(ElementType::f32, 4 * count),
              z(ElementType::i64, 4 * count);
          x.fill_random(static_cast<std::uint64_t>(length + count));
          for (std::int64_t i = 0; i < length; ++i) {
            x.set(i, static_cast<double>(i));
            x.set(length + i, static_cast<double>(length - i));
            x.set(2 * length + i, static_cast<double>(i * 7 % 5));
          }
          const Lines lines{.axes = {{4, length, count, count}}, .length = length};
          run_kernel(*require_kernel(prepare(ExtremeElements{lines, count, largest})), {x.data()},
                     {y.data(), z.data()});
          int wrong = 0;
          for (std::int64_t line = 0; line < 4; ++line) {
            std::vector<std::int64_t> order(static_cast<std::size_t>(length));
            std::iota(order.begin(), order.end(), 0);
            const auto at = [&](std::int64_t i) { return x.get(line * length + i); };
            std::ranges::stable_sort(order, [&](std::int64_t i, std::int64_t j) {
              return largest ? at(i) > at(j) : at(i) < at(j);
            });
            for (std::int64_t i = 0; i < count; ++i) {
              const std::int64_t place = order[static_cast<std::size_t>(i)];
              wrong += y.get(line * count + i) != at(place);
              wrong += z.get(line * count + i) != static_cast<double>(place);
            }
          }
          EXPECT_EQ(wrong, 0) << count << " of " << length;
        }
      }
  });
}

TEST(Lines, SaysWhatItDoesNotTake) {
  EXPECT_EQ(prepare(RunningSum{.lines = {.type = ElementType::u8}}).error().reason, "elements of u8");
  EXPECT_EQ(prepare(ExtremePlace{.lines = {.length = 0}}).error().reason, "lines are empty");
  EXPECT_EQ(prepare(ExtremeElements{.lines = {.length = 3}, .count = 4}).error().reason,
            "more than a line has");
  const RunningSum large{.lines = {.axes = {{64, 1000, 1000}}, .length = 1000}};
  EXPECT_EQ(require_kernel(prepare(large))->info().parts, 8);  // eight lines side by side in each
  const RunningSum few{.lines = {.axes = {{12, 1000, 1000}}, .length = 1000}};
  EXPECT_EQ(require_kernel(prepare(few))->info().parts, 12);
}

}  // namespace
}  // namespace superstep::kernels
