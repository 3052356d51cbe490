// Sets of element numbers against sets that hold every number.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "superstep/bsp/graph/interval.h"

using namespace superstep::bsp;

namespace {

using Numbers = std::set<std::int64_t>;

struct Both {
  IntervalSet intervals;
  Numbers numbers;
};

// So many intervals of up to `longest` elements in [0, range).
Both draw(std::mt19937& random, int count, std::int64_t longest, std::int64_t range) {
  std::vector<Interval> list;
  Both both;
  for (int i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int64_t>(random()) % range;
    const std::int64_t end = begin + 1 + static_cast<std::int64_t>(random()) % longest;
    list.push_back({begin, end});
    for (std::int64_t n = begin; n < end; ++n) both.numbers.insert(n);
  }
  both.intervals = IntervalSet(std::move(list));
  return both;
}

IntervalSet set_of(const Numbers& numbers) {
  std::vector<Interval> list;
  for (const std::int64_t n : numbers) list.push_back({n, n + 1});
  return IntervalSet(std::move(list));
}

}  // namespace

// Few beside many, which are spliced, and many beside many, which are merged.
TEST(Intervals, AreTheSetsThatTheyStandFor) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 400; ++turn) {
    const Both many = draw(random, 300, 3, 1500);
    const Both other = draw(random, 1 + turn % 12 * (turn % 3), 1 + turn % 60, 1600);
    Numbers sum = many.numbers, rest = many.numbers, missing = other.numbers;
    sum.insert(other.numbers.begin(), other.numbers.end());
    for (const std::int64_t n : other.numbers) rest.erase(n);
    for (const std::int64_t n : many.numbers) missing.erase(n);
    IntervalSet added = many.intervals, removed = many.intervals;
    added.add(other.intervals);
    removed.remove(other.intervals);
    EXPECT_EQ(added, set_of(sum)) << turn;
    EXPECT_EQ(removed, set_of(rest)) << turn;
    EXPECT_EQ(many.intervals.difference(other.intervals), set_of(rest)) << turn;
    EXPECT_EQ(other.intervals.difference(many.intervals), set_of(missing)) << turn;
    EXPECT_EQ(many.intervals.covers(other.intervals), missing.empty()) << turn;
  }
}
