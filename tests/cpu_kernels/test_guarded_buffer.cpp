#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cpu_kernels/support/guarded_buffer.h"

namespace superstep::kernels {
namespace {

TEST(GuardedBuffer, has_nothing_behind_it) {
  GuardedBuffer buffer(ElementType::f32, 5);
  buffer.fill(1);
  EXPECT_DEATH(buffer.as<volatile float>()[5] = 1, "");
  EXPECT_DEATH((void)buffer.as<volatile float>()[5], "");
}

TEST(GuardedBuffer, notices_a_write_in_front_of_it) {
  if (memory_is_watched()) GTEST_SKIP() << "the write itself is reported";
  const auto write = [] {
    GuardedBuffer buffer(ElementType::u8, 5);
    buffer.as<std::uint8_t>()[-1] = 0;
  };
  EXPECT_NONFATAL_FAILURE(write(), "1 bytes were written in front of a buffer of 5 u8");
}

TEST(GuardedBuffer, notices_a_write_between_the_elements) {
  if (memory_is_watched()) GTEST_SKIP() << "the write itself is reported";
  const auto write = [] {
    GuardedBuffer buffer = strided_buffer(ElementType::f32, {3, 4}, {6, 1});
    buffer.fill(2);
    EXPECT_EQ(16, buffer.size());
    EXPECT_EQ(2, buffer.get(15));
    EXPECT_TRUE(std::isnan(buffer.get(4)));
    buffer.set(11, 2);
  };
  EXPECT_NONFATAL_FAILURE(write(), "4 bytes were written");
}

TEST(GuardedBuffer, has_no_gaps_where_strides_leave_none) {
  GuardedBuffer buffer = strided_buffer(ElementType::i32, {3, 0, 4}, {6, 6, 1});
  EXPECT_EQ(0, buffer.size());
  GuardedBuffer dense = strided_buffer(ElementType::i32, {2, 3}, {1, 2});
  dense.fill(3);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(3, dense.get(i));
}

}  // namespace
}  // namespace superstep::kernels
