// A run's folder as those who look on read it, and what is written of it for others' programs.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/file/records/crc32c.h"
#include "superstep/file/varint.h"
#include "superstep/run/trackers/tracker.h"
#include "superstep/run/train/train_settings.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Trackers : public testing::Test {
 protected:
  Trackers() : run_(folder_ / "run") {
    fs::create_directories(run_ / "checkpoints");
    write_file_atomically(run_ / "config.json",
                          to_json(TrainSettings{.workload = "mlp", .epochs = 4}).dump());
    write_file_atomically(run_ / "environment.json",
                          std::string_view(R"([{"date": "2026-11-29T18:19:17+00:00"}])"));
    add({{"epoch", 1},
         {"step", 25},
         {"seconds", 2.0},
         {"loss", 0.5},
         {"learning_rate", 0.01},
         {"rmse", 0.25},
         {"throughput", 100.0}});
    add({{"epoch", 2},
         {"step", 50},
         {"seconds", 4.5},
         {"loss", 0.125},
         {"learning_rate", 0.005},
         {"rmse", 0.2},
         {"throughput", 110.0}});
  }

  void add(const json& line) const { append_line(run_ / "metrics.jsonl", line.dump()); }

  ScratchFolder folder_;
  fs::path run_;
};

// A comma in a parameter's name does not make two columns, and no length of a gradient is taken for a metric.
TEST_F(Trackers, LengthsOfGradientsAreOfTheTraining) {
  add({{"epoch", 3}, {"step", 75}, {"gradient_norm", 0.5}, {"gradient_norm/a,\"b\"", 0.25}, {"rmse", 0.1}});
  const RunStory story = read_story(run_);
  EXPECT_EQ(story.metric, "rmse");
  EXPECT_TRUE(is_of_training("gradient_norm"));
  EXPECT_TRUE(is_of_parameter("gradient_norm/a,\"b\""));
  csv_tracker(folder_ / "run.csv")->write(story);
  const std::string table = read_text_file(folder_ / "run.csv");
  EXPECT_TRUE(contains(table, ",\"gradient_norm/a,\"\"b\"\"\"")) << table;
}

TEST_F(Trackers, AStoryIsWhatTheFolderTells) {
  const RunStory story = read_story(run_);
  EXPECT_EQ(name_of_folder(run_), "run");
  EXPECT_EQ(name_of_folder(run_ / ""), "run");
  EXPECT_EQ(story.status, RunStatus::stopped);
  EXPECT_EQ(story.began, 1795976357);  // 2026-11-29 18:19:17 UTC
  ASSERT_EQ(story.epochs.size(), 2U);
  EXPECT_EQ(story.epochs[1].step, 50);
  EXPECT_EQ(story.epochs[1].value("loss"), 0.125);
  EXPECT_TRUE(std::isnan(story.epochs[1].value("accuracy")));
  EXPECT_EQ(story.metric, "rmse");
  {
    const FolderLock lock(run_);
    EXPECT_EQ(read_story(run_).status, RunStatus::running);
  }
  add({{"event", "finished"}, {"step", 50}, {"loss", 0.125}});
  EXPECT_EQ(read_story(run_).status, RunStatus::finished);
  EXPECT_EQ(read_story(run_).epochs.size(), 2U) << "the end is no epoch";
  std::ofstream(run_ / "metrics.jsonl", std::ios::app) << "{\"epoch\": 3, \"lo";
  EXPECT_EQ(read_story(run_).epochs.size(), 2U) << "a line that is being written";
  expect_error(ErrorCode::not_found, {"nowhere"}, [&] { read_story(folder_ / "nowhere"); });
}

// Fields of a message by number; messages and texts as bytes.
std::multimap<std::uint64_t, std::string> fields_of(const std::string& message) {
  std::multimap<std::uint64_t, std::string> fields;
  std::size_t at = 0;
  const auto next = [&] { return static_cast<std::uint8_t>(message.at(at++)); };
  while (at < message.size()) {
    const std::uint64_t key = *data::read_varint(next);
    if ((key & 7) == 0) {
      fields.emplace(key >> 3, std::to_string(*data::read_varint(next)));
      continue;
    }
    const std::size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : *data::read_varint(next);
    fields.emplace(key >> 3, message.substr(at, size));
    at += size;
  }
  return fields;
}

template <class T>
T number_in(const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The records of a TFRecord file, whose sums are right.
std::vector<std::string> records_of(const fs::path& file) {
  const std::string bytes = read_text_file(file);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = number_in<std::uint64_t>(bytes.substr(at, 8));
    const auto sum = [&](std::size_t first, std::size_t count) {
      return data::masked_crc32c(std::as_bytes(std::span(bytes.data() + first, count)));
    };
    EXPECT_EQ(number_in<std::uint32_t>(bytes.substr(at + 8, 4)), sum(at, 8));
    EXPECT_EQ(number_in<std::uint32_t>(bytes.substr(at + 12 + size, 4)), sum(at + 12, size));
    records.push_back(bytes.substr(at + 12, size));
    at += 16 + size;
  }
  return records;
}

TEST_F(Trackers, TensorBoardGetsEventsThatGrow) {
  const auto tracker = tensorboard_tracker(folder_ / "logs");
  tracker->write(read_story(run_));
  const fs::path file = folder_ / "logs" / "events.out.tfevents.1795976357.superstep";
  ASSERT_EQ(records_of(file).size(), 3U);
  add({{"epoch", 3}, {"step", 75}, {"seconds", 6.0}, {"loss", 0.0625}, {"rmse", 0.1}});
  tracker->write(read_story(run_));
  const std::vector<std::string> events = records_of(file);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(fields_of(events[0]).find(3)->second, "brain.Event:2");
  const auto event = fields_of(events[2]);
  EXPECT_EQ(number_in<double>(event.find(1)->second), 1795976357 + 4.5);
  EXPECT_EQ(event.find(2)->second, "50");
  std::map<std::string, float> values;
  const auto summary = fields_of(event.find(5)->second);
  for (auto [each, end] = summary.equal_range(1); each != end; ++each) {
    const auto value = fields_of(each->second);
    values[value.find(1)->second] = number_in<float>(value.find(2)->second);
  }
  EXPECT_EQ(values.at("training/loss"), 0.125F);
  EXPECT_EQ(values.at("validation/rmse"), 0.2F);
  // The run went on from a checkpoint: what was logged past it is gone.
  write_file_atomically(run_ / "metrics.jsonl",
                        std::string_view(R"({"epoch":1,"step":25,"seconds":2.0,"loss":0.5})"
                                         "\n"));
  tracker->write(read_story(run_));
  EXPECT_EQ(records_of(file).size(), 2U);
}

TEST_F(Trackers, MlflowGetsARunOfItsWorkload) {
  mlflow_tracker(folder_ / "store")->write(read_story(run_));
  mlflow_tracker(folder_ / "store")->write(read_story(run_));
  std::vector<fs::path> experiments, runs;
  for (const auto& each : fs::directory_iterator(folder_ / "store")) experiments.push_back(each.path());
  ASSERT_EQ(experiments.size(), 1U);
  for (const auto& each : fs::directory_iterator(experiments[0]))
    if (each.is_directory()) runs.push_back(each.path());
  ASSERT_EQ(runs.size(), 1U) << "the same run again is the same run";
  EXPECT_TRUE(contains(read_text_file(experiments[0] / "meta.yaml"), "name: 'mlp'"));
  EXPECT_EQ(read_text_file(runs[0] / "metrics" / "loss"), "1795976359000 0.5 25\n1795976361500 0.125 50\n");
  EXPECT_EQ(read_text_file(runs[0] / "params" / "workload"), "mlp");
  const std::string meta = read_text_file(runs[0] / "meta.yaml");
  for (const char* line :
       {"status: 5", "start_time: 1795976357000", "end_time: 1795976361500", "run_name: 'run'"})
    EXPECT_TRUE(contains(meta, line)) << meta;
}

TEST_F(Trackers, ATableHasARowPerEpoch) {
  add({{"epoch", 2.5}, {"step", 60}, {"seconds", 5.0}, {"loss", 0.1}});
  csv_tracker(folder_ / "run.csv")->write(read_story(run_));
  EXPECT_EQ(read_text_file(folder_ / "run.csv"),
            "epoch,step,seconds,learning_rate,loss,rmse,throughput\n1,25,2,0.01,0.5,0.25,100\n"
            "2,50,4.5,0.005,0.125,0.2,110\n2.5,60,5,,0.1,,\n");
}

}  // namespace
}  // namespace superstep::run
