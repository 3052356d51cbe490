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
#include "superstep/run/trackers/run_names.h"
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
  EXPECT_EQ(story.name, "run");
  EXPECT_EQ(read_story(run_ / "").name, "run");
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

TEST(RunNames, AreTheShortestTailsThatTellRunsApart) {
  const auto names = [](std::vector<fs::path> folders) { return names_of(folders); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({"runs/mlp-1"}), Names{"mlp-1"});
  EXPECT_EQ(names({"a/0000/run/", "a/0001/run"}), (Names{"0000/run", "0001/run"}));
  EXPECT_EQ(names({"a/x/run", "b/x/run", "b/other"}), (Names{"a/x/run", "b/x/run", "other"}));
  EXPECT_EQ(names({"/run", "/a/run"}).at(1), "a/run") << "one path ends as the other whole one does";
  EXPECT_NE(names({"/run", "/a/run"}).at(0), names({"/run", "/a/run"}).at(1));
  EXPECT_FALSE(names({""}).at(0).empty()) << "the folder that the program is in";
}

TEST(RunNames, OneFolderIsOneRun) {
  const ScratchFolder folder;
  fs::create_directories(folder / "run");
  fs::create_directory_symlink("run", folder / "link");
  const std::vector<fs::path> folders{folder / "run", folder / "run" / "", folder / "link", folder / "other"};
  EXPECT_EQ(each_once(folders), (std::vector<fs::path>{folder / "run", folder / "other"}));
}

// Progress of a run of mlp with these settings, which has logged the two epochs of the fixture.
class Progress : public Trackers {
 protected:
  RunProgress of(const json& settings) const {
    json config = to_json(TrainSettings{.workload = "mlp", .epochs = 4});
    if (!settings.is_null()) config.update(settings);
    write_file_atomically(run_ / "config.json", config.dump());
    const FolderLock lock(run_);
    return progress_of(read_story(run_));
  }
  double left(const json& settings) const {
    of(settings);
    const FolderLock lock(run_);
    return seconds_left(read_story(run_));
  }
};

TEST_F(Progress, EndsWhereTheTrainingEnds) {
  EXPECT_EQ(of({}).end, 4);
  EXPECT_EQ(of({}).done, 2);
  EXPECT_NEAR(left({}), 4.5, 1e-12);
  EXPECT_EQ(of({{"stop_after", 3}}).end, 3);
  EXPECT_NEAR(left({{"stop_after", 3}}), 2.25, 1e-12);
  EXPECT_EQ(of({{"stop_after", 9}}).end, 4) << "the schedule ends before";
  const RunProgress steps = of({{"steps", 200}});
  EXPECT_TRUE(steps.in_steps);
  EXPECT_EQ(steps.done, 50);
  EXPECT_EQ(steps.end, 200);
  EXPECT_NEAR(left({{"steps", 200}}), 13.5, 1e-12);
  EXPECT_EQ(of({{"steps", 200}, {"stop_after", 3}}).end, 75) << "25 steps an epoch";
  EXPECT_TRUE(std::isnan(seconds_left(read_story(run_)))) << "nothing goes on";
}

TEST_F(Trackers, ADamagedFileIsNamed) {
  const auto refused = [&](const char* file, std::string_view content) {
    const std::string before = fs::exists(run_ / file) ? read_text_file(run_ / file) : "";
    write_file_atomically(run_ / file, content);
    expect_error(ErrorCode::bad_file, {file}, [&] { read_story(run_); });
    before.empty() ? void(fs::remove(run_ / file)) : write_file_atomically(run_ / file, before);
  };
  for (const char* content : {"[]", "{}", "7", R"({"workload": 7})", R"({"workload": "mlp"} x)"})
    refused("config.json", content);
  for (const char* content : {"{}", "[7]", "[", R"("date")"}) refused("environment.json", content);
  for (const char* content : {"[]", "7", "{"}) refused("quality.json", content);
  read_story(run_);
}

// What is of another type than the log writes is no value, and never an internal error.
TEST_F(Trackers, OddLinesOfALogAreNoValues) {
  add({{"epoch", 3}, {"step", "many"}, {"seconds", json::array()}, {"loss", "low"}, {"rmse", 0.1}});
  add({{"event", 7}});
  try {
    const RunStory story = read_story(run_);
    EXPECT_TRUE(std::isnan(story.epochs.back().value("loss")));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
  }
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
