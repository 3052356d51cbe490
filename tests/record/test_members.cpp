// Members of JSON that others have written: of the kind that is asked for, or what stands for a missing one.
#include <gtest/gtest.h>

#include "superstep/record/member.h"
#include "superstep/record/result.h"

namespace superstep::record {
namespace {

using nlohmann::json;

const json& mixed() {
  static const json object{{"count", 7},  {"share", 0.5},       {"word", "x"},    {"yes", true},
                           {"no", false}, {"nothing", nullptr}, {"list", {1, 2}}, {"object", {{"a", 1}}}};
  return object;
}

// What each function makes of every member but those of its own kind.
template <class F>
void expect_otherwise(F&& function, std::initializer_list<std::string_view> own) {
  for (const auto& [name, value] : mixed().items())
    if (std::ranges::find(own, name) == own.end()) EXPECT_TRUE(function(mixed(), name.c_str())) << name;
  EXPECT_TRUE(function(mixed(), "missing"));
  for (const json& other : {json(nullptr), json(3), json("text"), json::array({1})})
    EXPECT_TRUE(function(other, "count")) << other;
}

TEST(Members, OfAnotherKindAreMissing) {
  expect_otherwise([](const json& j, const char* name) { return integer_member(j, name, -5) == -5; },
                   {"count", "share"});
  expect_otherwise([](const json& j, const char* name) { return number_member(j, name, -5) == -5; },
                   {"count", "share"});
  expect_otherwise([](const json& j, const char* name) { return text_member(j, name, "?") == "?"; },
                   {"word"});
  expect_otherwise([](const json& j, const char* name) { return flag_member(j, name, true); }, {"yes", "no"});
  expect_otherwise([](const json& j, const char* name) { return !flag_member(j, name, false); },
                   {"yes", "no"});
  expect_otherwise([](const json& j, const char* name) { return object_member(j, name).empty(); },
                   {"object"});
}

TEST(Members, AreTakenWhereTheyAreOfTheirKind) {
  EXPECT_EQ(integer_member(mixed(), "count", -5), 7);
  EXPECT_EQ(number_member(mixed(), "count", -5), 7.0);
  EXPECT_EQ(number_member(mixed(), "share", -5), 0.5);
  EXPECT_EQ(text_member(mixed(), "word", "?"), "x");
  EXPECT_TRUE(flag_member(mixed(), "yes", false));
  EXPECT_FALSE(flag_member(mixed(), "no", true));
  EXPECT_EQ(object_member(mixed(), "object"), (json{{"a", 1}}));
}

TEST(Results, HoldWhatIsAdded) {
  Result result;
  EXPECT_EQ(result.find("step_time"), nullptr);
  result.add("step_time", 0.25, "s");
  ASSERT_NE(result.find("step_time"), nullptr);
  EXPECT_EQ(result.find("step_time")->value, 0.25);
  EXPECT_EQ(result.find("step_time")->unit, "s");
}

TEST(Results, AreNamedByWhatTheyAreOf) {
  EXPECT_EQ(usual_id({.command = "bench"}), "bench");
  EXPECT_EQ(usual_id({.command = "bench", .workload = "mlp"}), "mlp-bench");
  EXPECT_EQ(usual_id({.command = "bench", .workload = "mlp", .number = 1}), "mlp-bench-1");
}

}  // namespace
}  // namespace superstep::record
