// superstep-result/1: what is written can be read again, and what is none is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/record/result_json.h"
#include "tests/contains.h"
#include "tests/sample_result.h"

namespace superstep::record {
namespace {

using nlohmann::json;

Result example() {
  Result result = sample_result();
  Quantity time{
      .name = "step_time", .unit = "s", .value = 0.1, .statistic = "median", .low = 0.1, .high = 1.0 / 7};
  for (int i = 0; i < 30; ++i) time.samples.push_back(0.1 + 0.001 * (i % 7));
  time.flags = {"drift +7 %, \"much\""};
  time.details = {{"warmup", 12}};
  result.quantities.push_back(std::move(time));
  result.add("compile_time", 0.25, "s");
  return result;
}

TEST(ResultJson, ReadsBackEveryBit) {
  const Result before = example();
  const Result after = read_results(write_results({before}), "x.json").front();
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_EQ(after.find("step_time")->samples, before.find("step_time")->samples);
  EXPECT_EQ(*after.flop_per_sample, 1.0 / 3);
  const auto two = read_results(write_results({before, before}), "x.json");
  EXPECT_EQ(two.size(), 2U);
}

TEST(ResultJson, HasWhatTheSchemaNames) {
  const json object = to_json(example());
  EXPECT_EQ(object["schema"], "superstep-result/1");
  const json& time = object["metrics"]["step_time"];
  for (const char* name :
       {"how", "unit", "value", "statistic", "samples", "mean", "stddev", "min", "max", "warmup", "flags"})
    EXPECT_TRUE(time.contains(name)) << name;
  EXPECT_EQ(time["how"], "measured");
}

// Also of a result that hardly anything is known of: what is not known is null, and nothing is left out.
TEST(ResultJson, OfLittleHasEveryMember) {
  Result little{.command = "validate"};
  little.add("rows", 3, "");
  const json object = to_json(little), whole = to_json(example());
  for (const auto& [member, value] : whole.items()) EXPECT_TRUE(object.contains(member)) << member;
  EXPECT_GT(whole.size(), 5u);
  EXPECT_EQ(object["id"], "validate");
  EXPECT_TRUE(object["workload"]["mode"].is_null());
  EXPECT_TRUE(object["workload"]["flop_per_sample"].is_null());
  EXPECT_EQ(object["machine"]["units"], 1);
  EXPECT_EQ(read_results(write_results({little}), "x").front().mode, "");
}

TEST(ResultJson, KeepsFurtherMembers) {
  Result result = example();
  result.details = {{"data_sets", {{{"name", "patch"}}}}, {"command", "not the command's"}};
  const Result after = read_results(write_results({result}), "x.json").front();
  EXPECT_EQ(after.command, "bench");
  EXPECT_EQ(after.details, (json{{"data_sets", {{{"name", "patch"}}}}}));
}

// A result from the records says which record it was, in files and in its name.
TEST(ResultJson, NamesTheRecordItCameFrom) {
  Result result{.command = "train", .workload = "mlp"};
  EXPECT_EQ(to_json(result)["id"], "mlp-train");
  EXPECT_FALSE(to_json(result)["config"].contains("record"));
  result.number = 12;
  EXPECT_EQ(to_json(result)["id"], "mlp-train-12");
  EXPECT_EQ(to_json(result)["config"]["record"], 12);
}

TEST(ResultJson, UnknownNumbersAreNull) {
  Result result = example();
  result.quantities = {{.name = "loss", .value = std::nan("")}};
  EXPECT_TRUE(to_json(result)["metrics"]["loss"]["value"].is_null());
  EXPECT_TRUE(std::isnan(read_results(write_results({result}), "x").front().find("loss")->value));
}

TEST(ResultJson, SaysThereAreNoFlagsWhereThereAreSamples) {
  Result result{.command = "bench"};
  result.quantities = {
      {.name = "sampled", .samples = {1, 2}}, {.name = "flagged", .flags = {"slow"}}, {.name = "plain"}};
  const json metrics = to_json(result)["metrics"];
  EXPECT_EQ(metrics["sampled"]["flags"], json::array());
  EXPECT_EQ(metrics["flagged"]["flags"], json::array({"slow"}));
  EXPECT_FALSE(metrics["plain"].contains("flags"));
}

// Brackets of text are no levels; a backslash before a quotation mark does not end one.
TEST(ResultJson, IsNestedSixtyFourLevelsAtMost) {
  const auto with = [](const std::string& value) {
    return R"({"schema":"superstep-result/1","command":"bench","metrics":{"a":{"value":1}},"more":)" + value +
           "}";
  };
  const auto nested = [&](std::size_t levels) {
    return with(std::string(levels, '[') + std::string(levels, ']'));
  };
  EXPECT_EQ(read_results(nested(63), "x").size(), 1U);
  EXPECT_THROW(read_results(nested(64), "x"), Error);
  EXPECT_EQ(
      read_results(with("\"" + std::string(100, '{') + "\\\"" + std::string(100, '[') + "\""), "x").size(),
      1U);
  std::string siblings;
  for (int i = 0; i < 200; ++i) siblings += i == 0 ? "[{}" : ",{}";
  EXPECT_EQ(read_results(with(siblings + "]"), "x").size(), 1U) << "what was closed does not count";
}

TEST(ResultJson, CountsUnitsWithinReason) {
  const auto units = [](const std::string& text) {
    return read_results(
               R"({"schema":"superstep-result/1","command":"bench","metrics":{"a":{"value":1}},"machine":{)" +
                   text + "}}",
               "x")
        .front()
        .units;
  };
  EXPECT_EQ(units(""), 1);
  EXPECT_EQ(units(R"("units":16)"), 16);
  EXPECT_EQ(units(R"("units":0)"), 1);
  EXPECT_EQ(units(R"("units":-3)"), 1);
  EXPECT_EQ(units(R"("units":1e300)"), 1'000'000'000);
}

struct BadFile {
  std::string text, message;
};

TEST(ResultJson, RefusesWhatIsNotOne) {
  const std::string head = R"({"schema": "superstep-result/1", "metrics": )";
  const std::vector<BadFile> files{
      {"", "is not JSON"},
      {"{", "is not JSON"},
      {"3", "is not an object"},
      {"[3]", "result 0"},
      {R"({"metrics": {}})", "schema"},
      {R"({"schema": "superstep-result/2", "metrics": {}})", "is of version superstep-result/2"},
      {R"({"schema": "other/1", "metrics": {}})", "is 'other/1'"},
      {R"({"schema": "superstep-result/1"})", "metrics: is missing"},
      {head + "[]}", "metrics: is missing"},
      {head + R"({"a": 1}})", "metrics/a: is not an object"},
      {head + R"({"a": {}}})", "metrics/a: has no value"},
      {head + R"({"a": {"value": "1"}}})", "has no value that is a number"},
      {head + R"({"a": {"value": 1, "samples": ["1"]}}})", "metrics/a/samples"},
      {head + R"({"a": {"value": 1, "samples": 3}}})", "is not a list"},
      {std::string(100000, '['), "nested more than 64 levels"},
      {std::string(100000, '{'), "nested more than 64 levels"}};
  for (const BadFile& file : files) try {
      read_results(file.text, "bad.json");
      ADD_FAILURE() << file.text.substr(0, 80);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      EXPECT_TRUE(contains(error.what(), file.message)) << error.what();
      EXPECT_TRUE(contains(error.what(), "bad.json"));
    }
}

}  // namespace
}  // namespace superstep::record
