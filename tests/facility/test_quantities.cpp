// Quantities as people write them.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/facility/quantities.h"

namespace superstep::facility {
namespace {

double value(const char* text, Dimension dimension) {
  const auto found = amount_from(text, dimension);
  return found ? found->value : -1;
}

TEST(Quantities, HaveUnits) {
  EXPECT_DOUBLE_EQ(value("12 ms", Dimension::time), 0.012);
  EXPECT_DOUBLE_EQ(value("  1.5h ", Dimension::time), 5400);
  EXPECT_DOUBLE_EQ(value("3 d", Dimension::time), 259200);
  EXPECT_DOUBLE_EQ(value("8 MB", Dimension::data), 8e6);
  EXPECT_DOUBLE_EQ(value("1 GiB", Dimension::data), 1073741824);
  EXPECT_DOUBLE_EQ(value("10 Gbit/s", Dimension::data_rate), 1.25e9);
  EXPECT_DOUBLE_EQ(value("90 /min", Dimension::rate), 1.5);
  EXPECT_DOUBLE_EQ(value("2 kHz", Dimension::rate), 2000);
  EXPECT_DOUBLE_EQ(value("1.5 kW", Dimension::power), 1500);
  EXPECT_DOUBLE_EQ(value("2 kWh", Dimension::energy), 7.2e6);
}

TEST(Quantities, HaveIntervals) {
  const auto found = amount_from("10..40 ms", Dimension::time);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->low, 0.01);
  EXPECT_DOUBLE_EQ(found->high, 0.04);
  EXPECT_DOUBLE_EQ(found->value, 0.02);
  EXPECT_FALSE(found->exact());
  EXPECT_TRUE(amount_from("10 ms", Dimension::time)->exact());
  EXPECT_DOUBLE_EQ(amount_from("1.5..6 GB/s", Dimension::data_rate)->value, 3e9);
}

TEST(Quantities, AreRefusedInWords) {
  EXPECT_NE(amount_from("12", Dimension::time).error().find("has no unit of time"), std::string::npos);
  EXPECT_NE(amount_from("12 MB", Dimension::time).error().find("'MB' is no unit of time"), std::string::npos);
  for (const char* text : {"", "ms", "-1 ms", "0 ms", "nan ms", "inf s", "1..", "..2 s", "2..1 s",
                           "1 ms..2 ms", "1e999 s", "1 2 s"})
    EXPECT_FALSE(amount_from(text, Dimension::time)) << text;
}

}  // namespace
}  // namespace superstep::facility
