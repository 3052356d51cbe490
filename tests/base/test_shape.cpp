// Shapes: what their extents give, and which fit each other.
#include <gtest/gtest.h>

#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/shape.h"
#include "tests/expect_error.h"

namespace superstep {
namespace {

TEST(Shape, CountsItsElementsAndSteps) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.element_count(), 24);
  EXPECT_EQ(shape.row_major_strides(), (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(to_string(shape), "[2,3,4]");
  EXPECT_EQ(Shape{}.element_count(), 1);
  EXPECT_TRUE(Shape{}.row_major_strides().empty());
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ((Shape{5, 0, 3}).element_count(), 0);
}

TEST(Shape, RefusesWhatIsNoExtent) {
  EXPECT_THROW(Shape({2, -1}), Error);
  constexpr std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THROW(Shape({large, large}), Error);
}

TEST(Shape, CountsAxesFromBothEnds) {
  EXPECT_EQ(normalize_axis(0, 3), 0);
  EXPECT_EQ(normalize_axis(2, 3), 2);
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(-3, 3), 0);
  for (const std::int64_t outside :
       {std::int64_t{3}, std::int64_t{-4}, std::numeric_limits<std::int64_t>::min()})
    EXPECT_THROW(normalize_axis(outside, 3), Error) << outside;
  EXPECT_THROW(normalize_axis(0, 0), Error);
}

TEST(Shape, BroadcastsAsNumPyDoes) {
  EXPECT_EQ(broadcast_shapes({4, 1, 3}, {2, 1}), (Shape{4, 2, 3}));
  EXPECT_EQ(broadcast_shapes({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes({3, 1}, {3, 5}), (Shape{3, 5}));
  EXPECT_THROW(broadcast_shapes({2, 3}, {2, 4}), Error);
  EXPECT_THROW(broadcast_shapes({2}, {0}), Error);
}

}  // namespace
}  // namespace superstep
