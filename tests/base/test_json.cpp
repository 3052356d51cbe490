// One reader of JSON for all: what is nested too deep is no value, and says where.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/json.h"
#include "tests/contains.h"

namespace superstep {
namespace {

using nlohmann::json;

std::string nested(int levels, const std::string& inner = "1") {
  std::string text;
  for (int i = 0; i < levels; ++i) text += i % 2 == 0 ? "[" : R"({"a":)";
  text += inner;
  for (int i = levels; i-- > 0;) text += i % 2 == 0 ? "]" : "}";
  return text;
}

TEST(Json, IsReadAsDeepAsItsLimit) {
  EXPECT_EQ(parse_json(R"({"a": [1, {"b": null}]})")["a"][1]["b"], json());
  EXPECT_TRUE(parse_json(nested(deepest_json)).is_array());
  EXPECT_TRUE(parse_json(nested(deepest_json + 1)).is_discarded());
  EXPECT_TRUE(parse_json(nested(1'000'000)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(1'000'000, '[')).is_discarded());
  EXPECT_TRUE(parse_json("").is_discarded());
  EXPECT_TRUE(parse_json("{").is_discarded());
}

TEST(Json, BracketsInStringsAreNoLevels) {
  const std::string brackets(1000, '['), quoted = "\"" + brackets + R"(\"[\\")";
  EXPECT_EQ(parse_json(quoted), brackets + "\"[\\");
  EXPECT_EQ(depth_of_json(quoted), 0);
  EXPECT_EQ(depth_of_json("{" + quoted + ":[[]]}"), 3);
  EXPECT_EQ(depth_of_json("[[],[],[[]]]"), 3);
}

TEST(Json, SaysWhereItIsWrong) {
  try {
    parse_json_or_throw(nested(100));
    ADD_FAILURE() << "was read";
  } catch (const json::parse_error& error) {
    EXPECT_TRUE(contains(error.what(), "deeper than 64")) << error.what();
    EXPECT_GT(error.byte, 64U);
  }
  EXPECT_THROW(parse_json_or_throw("{"), json::parse_error);
  EXPECT_EQ(parse_json_or_throw("[2]")[0], 2);
}

}  // namespace
}  // namespace superstep
