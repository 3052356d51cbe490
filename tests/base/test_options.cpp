// Numbers as users write them.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"

namespace superstep {
namespace {

TEST(Numbers, AreNumbersAsAWholeAndFinite) {
  EXPECT_EQ(finite_number("0.5"), 0.5);
  EXPECT_EQ(finite_number("-1e-3"), -1e-3);
  for (const char* text :
       {"", " 1", "1 ", "0,5", "1x", "nan", "inf", "-inf", "infinity", "1e999", "0x10", "--1"})
    EXPECT_EQ(finite_number(text), std::nullopt) << text;
  EXPECT_EQ(whole_number("-12"), -12);
  for (const char* text : {"", "1.5", "1e3", "9223372036854775808", "0x1", "nan", "1 "})
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
}

TEST(Numbers, BytesHaveUnits) {
  EXPECT_EQ(number_of_bytes("4096"), 4096);
  EXPECT_EQ(number_of_bytes("200M"), 200'000'000);
  EXPECT_EQ(number_of_bytes("2GB"), 2'000'000'000);
  EXPECT_EQ(number_of_bytes("1.5 k"), 1500);
  EXPECT_EQ(number_of_bytes("4KiB"), 4096);
  EXPECT_EQ(number_of_bytes("1Gi"), 1 << 30);
  for (const char* text : {"", "-5", "0", "M", "1Q", "1KK", "nan", "inf", "1e3", "1.2.3", "99999999999T"})
    EXPECT_EQ(number_of_bytes(text), std::nullopt) << text;
}

TEST(Numbers, SayWhatTheyMustBe) {
  EXPECT_EQ(why_not("3", {.low = 1, .whole = true}), "");
  EXPECT_EQ(why_not("0", {.low = 1, .whole = true}), "must be a whole number, 1 or more, not '0'");
  EXPECT_EQ(why_not("inf", {.low = 0, .open_low = true}), "must be a number above 0, not 'inf'");
  EXPECT_EQ(why_not("0", {.low = 0, .open_low = true}), "must be a number above 0, not '0'");
  EXPECT_EQ(why_not("nan", {.low = 0, .high = 1}), "must be a number from 0 to 1, not 'nan'");
  EXPECT_EQ(why_not("0.5", {.low = 0, .high = 1}), "");
  EXPECT_EQ(why_not("1.5", {.low = 0, .whole = true}), "must be a whole number, 0 or more, not '1.5'");
}

TEST(Numbers, OptionsTakeFiniteOnes) {
  const std::vector<OptionSpec> specs{{"x", "1", "a number"}};
  const auto value = [&](const char* text) {
    return Options(specs, std::vector<std::string>{std::string("x=") + text}).number("x", -1e300, HUGE_VAL);
  };
  EXPECT_EQ(value("2.5"), 2.5);
  for (const char* text : {"inf", "nan", "0,5", ""}) EXPECT_THROW(value(text), Error) << text;
}

}  // namespace
}  // namespace superstep
