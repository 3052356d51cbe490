// The records: every sample kept, other versions and unwritable files refused with a word that helps.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/record/named_results.h"
#include "superstep/record/records.h"
#include "superstep/record/result_json.h"
#include "tests/contains.h"

namespace superstep::record {
namespace {

namespace fs = std::filesystem;

class RecordsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("superstep_records_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    path_ = folder_ / "records.sqlite";
    setenv("SUPERSTEP_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    fs::remove_all(folder_);
    unsetenv("SUPERSTEP_HOME");
  }
  void sql(const std::string& text) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_close(database);
  }
  template <class F>
  void expect_error(F&& action, ErrorCode code, const std::string& message) {
    try {
      action();
      ADD_FAILURE() << "no error: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_TRUE(contains(error.what(), message)) << error.what();
      EXPECT_TRUE(contains(error.what(), path_.string())) << error.what();
    }
  }
  fs::path folder_, path_;
};

Result example(const std::string& workload = "mlp") {
  Result result{.command = "bench", .created = "2026-01-31T12:00:00+00:00", .workload = workload};
  result.mode = "train";
  result.config = {{"batch", 64}};
  result.environment = {{"host", {{"load", {{"busy", true}}}}}};
  result.quantities = {{.name = "step_time",
                        .unit = "s",
                        .value = 0.1,
                        .samples = {0.1, 0.3, 1.0 / 3},
                        .low = 0.05,
                        .high = 0.4},
                       {.name = "loss", .value = 2.5, .how = How::predicted}};
  result.folder = "run/";
  return result;
}

TEST_F(RecordsFile, KeepEverySample) {
  Records records(path_);
  const auto numbers = records.add_all({example(), example("braggnn")});
  const Result found = *Records(path_).find(numbers[0]);
  EXPECT_EQ(found.number, numbers[0]);
  EXPECT_EQ(found.quantities[0].samples, example().quantities[0].samples);
  EXPECT_EQ(*found.quantities[0].low, 0.05);
  EXPECT_EQ(*found.quantities[0].high, 0.4);
  EXPECT_EQ(found.quantities[0].name, "step_time");
  EXPECT_EQ(found.quantities[0].unit, "s");
  EXPECT_EQ(found.quantities[0].value, 0.1);
  EXPECT_EQ(found.quantities[0].how, How::measured);
  EXPECT_EQ(found.quantities[1].value, 2.5);
  EXPECT_FALSE(found.quantities[1].high);
  EXPECT_FALSE(found.quantities[1].low);
  EXPECT_EQ(found.quantities[1].how, How::predicted);
  EXPECT_EQ(found.config, example().config);
  EXPECT_EQ(found.environment, example().environment);
  EXPECT_EQ(found.mode, "train");
  EXPECT_EQ(found.folder, "run/");
  EXPECT_FALSE(records.find(99));
}

TEST_F(RecordsFile, KeepWhatIsNoNumberAsUnknown) {
  Result result = example();
  result.quantities = {{.name = "loss", .value = std::nan("")}};
  const std::int64_t number = Records(path_).add(result);
  EXPECT_TRUE(std::isnan(Records(path_).find(number)->quantities[0].value));
}

TEST_F(RecordsFile, AreListedNewestFirstAndFiltered) {
  Records records(path_);
  records.add_all({example(), example("braggnn"), example()});
  EXPECT_EQ(records.list().size(), 3U);
  EXPECT_EQ(records.list()[0].number, 3);
  EXPECT_EQ(records.list({.workload = "braggnn"}).size(), 1U);
  EXPECT_EQ(records.list({.command = "train"}).size(), 0U);
  EXPECT_EQ(records.list({.most = 2}).size(), 2U);
}

TEST_F(RecordsFile, OfVersion1AreBroughtUp) {
  sql(R"sql(
create table runs (id integer primary key, created text not null, command text not null, workload text not null,
  machine text not null, folder text not null, config text not null, environment text not null);
create table metrics (run integer not null references runs(id), name text not null, value real, unit text not null,
  how text not null, samples text);
create index metrics_by_run on metrics(run);
create index runs_by_workload on runs(workload, id);
insert into runs values (7, '2025-01-01', 'train', 'mlp', 'cpu', 'run/', '{"batch": 8}', '{"a": 1}');
insert into runs values (8, '2025-01-02', 'train', 'mlp', 'cpu', 'run/', '{"batch": 8}', '{"a": 1}');
insert into metrics values (7, 'throughput', 12.5, 'samples/s', 'measured', '[12.0,13.0]');
insert into metrics values (8, 'loss', 0.5, '', 'measured', '[]');
pragma user_version = 1;)sql");
  Records records(path_);
  const Result found = *records.find(7);
  EXPECT_EQ(found.config["batch"], 8);
  EXPECT_EQ(found.folder, "run/");
  EXPECT_EQ(found.quantities[0].samples, (std::vector<double>{12, 13}));
  EXPECT_EQ(records.find(8)->quantities[0].value, 0.5);
  EXPECT_EQ(records.add(example()), 9);
}

TEST_F(RecordsFile, OfALaterVersionAreRefused) {
  sql("pragma user_version = 9;");
  expect_error([&] { Records records(path_); }, ErrorCode::bad_file,
               "are of version 9, this program knows up to 2");
}

TEST_F(RecordsFile, ThatAreSomethingElseAreRefused) {
  std::ofstream(path_) << "this is not a database, however long it is made: " << std::string(2000, 'x');
  expect_error([&] { Records records(path_); }, ErrorCode::bad_file, "file is not a database");
}

// What is written is there to be found, or the file is refused: an index that leads nowhere loses nothing.
TEST_F(RecordsFile, ThatLoseWhatIsWrittenAreRefused) {
  Records(path_).add(example());
  sql("drop table runs; create table runs (id integer, created text, command text, workload text, machine "
      "text, "
      "folder text, configuration integer, environment integer, details text);");
  expect_error([&] { Records(path_).add(example()); }, ErrorCode::bad_file, "they are damaged");
}

// Details may be of any kind: a result is made of what is there.
TEST_F(RecordsFile, WithOddDetailsAreStillResults) {
  const std::int64_t id = Records(path_).add(example());
  for (const char* details :
       {"7", "[1]", "{\"id\": 3, \"units\": \"x\", \"metrics\": [2], \"mode\": null}",
        "{\"metrics\": {\"step_time\": {\"flags\": 1, \"statistic\": {}}}}", "broken"}) {
    sql(std::string("update runs set details = '") + details + "'");
    const Result result = *Records(path_).find(id);
    EXPECT_EQ(result.workload, "mlp") << details;
    EXPECT_NE(result.find("step_time"), nullptr) << details;
  }
}

TEST_F(RecordsFile, InAFolderThatIsNotThereAreRefused) {
  path_ = folder_ / "none" / "records.sqlite";
  expect_error([&] { Records records(path_); }, ErrorCode::io, "unable to open");
}

TEST_F(RecordsFile, ThatAnotherProgramHoldsAreRefusedAfterAWhile) {
  Records(path_).add(example());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "begin exclusive", nullptr, nullptr, nullptr), SQLITE_OK);
  expect_error([&] { Records(path_).add(example()); }, ErrorCode::io, "another program holds it");
  sqlite3_close(other);
  EXPECT_EQ(Records(path_).list().size(), 1U);
}

TEST_F(RecordsFile, ThatMayOnlyBeReadAreReadAndNotWritten) {
  Records(path_).add(example());
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may write everything";
  fs::permissions(path_, fs::perms::owner_read);
  EXPECT_EQ(Records(path_).list().size(), 1U);
  expect_error([&] { Records(path_).add(example()); }, ErrorCode::io, "readonly");
}

// --- results and records

TEST_F(RecordsFile, HoldWhatAResultSays) {
  Result result{.command = "bench",
                .id = "a-b",
                .created = "2026-01-31T12:00:00+00:00",
                .workload = "a",
                .mode = "infer"};
  result.flop_per_sample = 12;
  result.units = 3;
  result.parameters = {{"m", 5}};
  result.program = {{"version", "0.1.0"}};
  result.details = {{"file", "a.h5"}};
  result.environment = {{"host", nullptr}};
  Quantity quantity{
      .name = "step_time", .unit = "s", .value = 2, .statistic = "median", .samples = {1, 2, 3}};
  quantity.flags = {"drift"};
  quantity.details = {{"warmup", 4}};
  result.quantities = {quantity};
  const std::int64_t id = Records(path_).add(result);
  const Result found = load_results("record:" + std::to_string(id)).front();
  nlohmann::json expected = to_json(result), actual = to_json(found);
  actual["config"].erase("record");
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(load_results("last").front().id, "a-b");
  EXPECT_EQ(load_results("last:a").front().id, "a-b");
}

TEST_F(RecordsFile, AreNamedByNumberOrFile) {
  Records(path_).add(example());
  const auto message_of = [](const std::string& name) {
    try {
      load_results(name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(contains(message_of("12"), "there is no such record"));
  EXPECT_TRUE(contains(message_of("nothing.json"), "there is no such file"));
  EXPECT_TRUE(contains(message_of("-1"), "there is no such file"));
  EXPECT_TRUE(contains(message_of("last:none"), "no record is of that workload"));
  EXPECT_EQ(message_of("1"), "");
}

}  // namespace
}  // namespace superstep::record
