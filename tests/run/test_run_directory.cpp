// The folder of a run: what is made, kept, rewound and refused, and what damage in it does.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/run/train/run_directory.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Directory : public ::testing::Test {
 protected:
  RunDirectory made() { return RunDirectory::create(folder_ / "run", {{"workload", "mlp"}, {"seed", 3}}); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / ("run/" + name)) << text;
  }
  ScratchFolder folder_;
};

TEST_F(Directory, KeepsItsConfiguration) {
  made();
  EXPECT_TRUE(fs::is_directory(folder_ / "run/checkpoints"));
  EXPECT_EQ(RunDirectory::open(folder_ / "run").config(), (json{{"workload", "mlp"}, {"seed", 3}}));
}

// A line that nobody could have written is none; a file of settings that is nested so is damaged.
TEST_F(Directory, WhatIsNestedDeepIsPassedOverOrRefused) {
  const RunDirectory directory = made();
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += R"({"a":)";
  deep += "1" + std::string(50'000, '}');
  write("metrics.jsonl", "{\"step\":1}\n" + deep + "\n{\"step\":2}\n");
  EXPECT_EQ(directory.read_log().size(), 2U);
  directory.rewind_log(1);
  EXPECT_EQ(directory.read_log().size(), 1U);
  write("config.json", deep);
  expect_error(ErrorCode::bad_file, {"config.json"}, [&] { RunDirectory::open(folder_ / "run"); });
}

TEST_F(Directory, IsMadeOnce) {
  made();
  expect_error(ErrorCode::invalid_argument,
               {"holds a training run already", "--resume", (folder_ / "run").string()}, [&] { made(); });
}

// A run that was killed before it had a configuration has left a folder, and nothing to go on with.
TEST_F(Directory, AFolderWithoutAConfigurationIsNoRun) {
  fs::create_directories(folder_ / "run/checkpoints");
  expect_error(ErrorCode::not_found, {"is not the folder of a training run"},
               [&] { RunDirectory::open(folder_ / "run"); });
  EXPECT_NO_THROW(made());
}

TEST_F(Directory, ADamagedConfigurationIsNamed) {
  made();
  for (const char* text : {"", "{\"workload\": ", "\xff\xfe"}) {
    write("config.json", text);
    expect_error(ErrorCode::bad_file, {"is not JSON", "config.json"},
                 [&] { RunDirectory::open(folder_ / "run"); });
  }
}

TEST_F(Directory, ItsConfigurationIsWrittenWhereItIsAnotherOne) {
  RunDirectory directory = made();
  const auto before = fs::last_write_time(folder_ / "run/config.json") - std::chrono::hours(1);
  fs::last_write_time(folder_ / "run/config.json", before);
  directory.change_config(directory.config());
  EXPECT_EQ(fs::last_write_time(folder_ / "run/config.json"), before) << "it was not touched";
  json other = directory.config();
  other["steps"] = 7;
  directory.change_config(other);
  EXPECT_EQ(RunDirectory::open(folder_ / "run").config(), other);
  EXPECT_EQ(directory.config(), other);
}

// Names of files are bytes; what cannot be kept is refused before a folder is made for it.
TEST_F(Directory, RefusesWhatJsonCannotHold) {
  expect_error(ErrorCode::invalid_argument, {"is not UTF-8", "config.json"}, [&] {
    RunDirectory::create(folder_ / "run", {{"data", "\xff.h5"}});
  });
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  RunDirectory directory = made();
  expect_error(ErrorCode::invalid_argument, {"is not UTF-8"}, [&] {
    directory.change_config({{"data", "\xff.h5"}});
  });
  EXPECT_EQ(RunDirectory::open(folder_ / "run").config().at("seed"), 3) << "the old one is there";
}

TEST_F(Directory, HasARecordOfEverySitting) {
  const RunDirectory directory = made();
  directory.add_environment({{"host", "a"}});
  directory.add_environment({{"host", "b\xff"}});
  const json records = json::parse(read_text_file(folder_ / "run/environment.json"));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].at("host"), "a");
  for (const char* text : {"{}", "3", "{\"host\": \"a\"}", "[{]"}) {
    write("environment.json", text);
    expect_error(ErrorCode::bad_file, {"environment.json"}, [&] {
      directory.add_environment({{"host", "c"}});
    });
  }
}

TEST_F(Directory, LogsALineAnEvent) {
  const RunDirectory directory = made();
  EXPECT_TRUE(directory.read_log().empty());
  for (int step = 1; step <= 3; ++step) directory.log({{"step", step}, {"loss", 1.0 / step}});
  const auto log = directory.read_log();
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[2].at("loss").get<double>(), 1.0 / 3) << "to the bit";
}

// What a killed run had logged past its last checkpoint goes, and so does its last half line.
TEST_F(Directory, RewindsItsLog) {
  const RunDirectory directory = made();
  for (int step = 1; step <= 4; ++step) directory.log({{"step", step}});
  std::ofstream(folder_ / "run/metrics.jsonl", std::ios::app) << "{\"step\": 5, \"lo";
  directory.rewind_log(2);
  const auto log = directory.read_log();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log.back().at("step"), 2);
  directory.log({{"step", 3}});
  EXPECT_EQ(directory.read_log().size(), 3U) << "the next line is a line of its own";
}

TEST_F(Directory, RewindsALogOfAnybodys) {
  const RunDirectory directory = made();
  write("metrics.jsonl",
        "{\"step\": \"nine\"}\n[1, 2]\n\n{\"step\": null}\n{\"note\": \"mine\"}\n{\"step\": 9}\nwords\n");
  directory.rewind_log(2);
  const auto log = directory.read_log();
  ASSERT_EQ(log.size(), 3U) << "lines without a step are nobody's to drop; what is no object is no line";
  EXPECT_EQ(log[2].at("note"), "mine");
}

}  // namespace
}  // namespace superstep::run
