// Numbers as users write them.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/wildcard.h"
#include "tests/expect_error.h"

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

class GivenOptions : public ::testing::Test {
 protected:
  static Options given(std::vector<std::string> assignments) {
    static const std::vector<OptionSpec> specs{{"count", "3", "things"},
                                               {"fast", "no", "whether"},
                                               {"kind", "square", "of what"},
                                               {"width", "1..2", "in mm"}};
    return Options(specs, assignments);
  }
};

TEST_F(GivenOptions, AreDefaultsAndWhatIsSaidOnTop) {
  EXPECT_EQ(given({}).integer("count", 0, 9), 3);
  EXPECT_FALSE(given({}).flag("fast"));
  EXPECT_EQ(given({"count=7", "count=8"}).integer("count", 0, 9), 8) << "the last word counts";
  EXPECT_EQ(given({"kind=a=b"}).text("kind"), "a=b") << "a value may hold an equals sign";
  EXPECT_EQ(given({}).all().size(), 4U);
  expect_error(ErrorCode::invalid_argument, {"coutn", "count"}, [] { given({"coutn=1"}); });
  expect_error(ErrorCode::invalid_argument, {"count", "name=value"}, [] { given({"count"}); });
  expect_error(ErrorCode::internal, {"other"}, [] { given({}).text("other"); });
}

TEST_F(GivenOptions, HoldToTheirBoundsWithBothEndsInside) {
  for (const char* inside : {"count=2", "count=5"}) EXPECT_NO_THROW(given({inside}).integer("count", 2, 5));
  for (const char* outside : {"count=1", "count=6"})
    expect_error(ErrorCode::invalid_argument, {"[2, 5]", "option count"},
                 [&] { given({outside}).integer("count", 2, 5); });
  for (const char* other : {"count=2.5", "count=", "count=4x"})
    expect_error(ErrorCode::invalid_argument, {"whole number"},
                 [&] { given({other}).integer("count", 2, 5); });
}

TEST_F(GivenOptions, KnowEveryWayToSayYesAndNo) {
  for (const char* yes : {"true", "yes", "on", "1"})
    EXPECT_TRUE(given({std::string("fast=") + yes}).flag("fast"));
  for (const char* no : {"false", "no", "off", "0"})
    EXPECT_FALSE(given({std::string("fast=") + no}).flag("fast"));
  for (const char* neither : {"", "maybe", "2", "True"})
    expect_error(ErrorCode::invalid_argument, {"yes or no"},
                 [&] { given({std::string("fast=") + neither}).flag("fast"); });
}

TEST_F(GivenOptions, ChooseByPlace) {
  const std::vector<std::string> kinds{"round", "square", "flat"};
  EXPECT_EQ(given({}).choice("kind", kinds), 1);
  EXPECT_EQ(given({"kind=flat"}).choice("kind", kinds), 2);
  expect_error(ErrorCode::invalid_argument, {"'oval'", "round, square, flat"},
               [&] { given({"kind=oval"}).choice("kind", kinds); });
}

TEST_F(GivenOptions, RangesRiseAndStayInBounds) {
  const auto range = [](const char* text) {
    return range_option(given({std::string("width=") + text}), "width", 0, 10);
  };
  EXPECT_EQ(range("0..10").low, 0);
  EXPECT_EQ(range("0..10").high, 10);
  EXPECT_EQ(range("4").low, 4);
  EXPECT_EQ(range("4").high, 4);
  for (const char* wrong : {"5..4", "-1..4", "5..11"})
    expect_error(ErrorCode::invalid_argument, {"rising range in [0, 10]"}, [&] { range(wrong); });
  for (const char* wrong : {"a..4", "4..", "..4", "1..2..3", ""})
    expect_error(ErrorCode::invalid_argument, {"low..high"}, [&] { range(wrong); });
}

TEST(Wildcards, FitAnyLettersOrOne) {
  for (const auto& [pattern, name] : std::vector<std::pair<const char*, const char*>>{{"", ""},
                                                                                      {"*", ""},
                                                                                      {"*", "abc"},
                                                                                      {"a?c", "abc"},
                                                                                      {"a*c", "ac"},
                                                                                      {"a*c", "abbcbc"},
                                                                                      {"*.bias", "a.b.bias"},
                                                                                      {"a*b*c", "aXbYbZc"},
                                                                                      {"**", "x"},
                                                                                      {"*aab", "aaaab"},
                                                                                      {"abc", "abc"},
                                                                                      {"a*", "a"}})
    EXPECT_TRUE(fits(pattern, name)) << pattern << " " << name;
  for (const auto& [pattern, name] : std::vector<std::pair<const char*, const char*>>{{"", "a"},
                                                                                      {"?", ""},
                                                                                      {"a?c", "ac"},
                                                                                      {"a*c", "ab"},
                                                                                      {"abc", "ab"},
                                                                                      {"ab", "abc"},
                                                                                      {"*aab", "aaba"},
                                                                                      {"a*b", "b"}})
    EXPECT_FALSE(fits(pattern, name)) << pattern << " " << name;
}

}  // namespace
}  // namespace superstep
