// superstep watch: of a run that has ended, of one that goes on, and of several.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/system/folder_lock.h"
#include "tests/cli/page_commands.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

class Watching : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* run : {"runs/run", "other"})
      ASSERT_EQ(program(std::string("train mlp --samples 500 --epochs 3 --quiet --out ") + run).code, 0);
    fs::create_directory_symlink("runs/run", folder_ / "run");
  }
  Outcome program(const std::string& arguments) { return run_program(folder_ / "", arguments); }

  const ScratchFolder folder_;
};

TEST_F(Watching, TellsWhatARunHasReached) {
  const Outcome once = program("watch run --once");
  EXPECT_EQ(once.code, 0) << once.errors;
  for (const char* words : {"run: finished, epoch 3 of 3", "loss", "rmse", "learning rate"})
    EXPECT_TRUE(contains(once.output, words)) << words << '\n' << once.output;
  // Without a terminal a line for each epoch; the run has ended, and so does the looking.
  const Outcome followed = program("watch");
  EXPECT_EQ(followed.code, 0) << followed.errors;
  for (const char* words : {"epoch 1, step ", "epoch 3, step ", "rmse"})
    EXPECT_TRUE(contains(followed.output, words)) << words << '\n' << followed.output;
  const Outcome json = program("watch run other --once --quiet --json seen.json");
  ASSERT_EQ(json.code, 0) << json.errors;
  const auto seen = nlohmann::json::parse(std::ifstream(folder_ / "seen.json"));
  EXPECT_EQ(seen.at("config").at("runs").size(), 2U);
  EXPECT_EQ(seen.at("config").at("runs")[1].at("epochs").size(), 3U);
}

TEST_F(Watching, ShowsGradientsOfARunThatLogsThem) {
  ASSERT_EQ(program("train mlp --samples 500 --epochs 2 --quiet --gradient-norms --out slopes").code, 0);
  const Outcome once = program("watch slopes --once --page slopes.html --csv slopes.csv --tensorboard logs");
  ASSERT_EQ(once.code, 0) << once.errors;
  EXPECT_TRUE(contains(once.output, "gradient")) << once.output;
  EXPECT_TRUE(contains(read_text_file(folder_ / "slopes.html"), "Gradients of slopes"));
  const std::string table = read_text_file(folder_ / "slopes.csv");
  for (const char* column : {",gradient_norm,", ",gradient_norm/fc1.weight"})
    EXPECT_TRUE(contains(table, column)) << table;
  const Outcome lines = program("watch slopes");
  EXPECT_TRUE(contains(lines.output, ", gradient_norm ")) << lines.output;
  EXPECT_FALSE(contains(lines.output, "gradient_norm/")) << "one number a line, not one of each parameter";
  EXPECT_FALSE(contains(program("watch run --once").output, "gradient"));
  const Outcome later = program("train mlp --resume run --gradient-norms --epochs 4");
  EXPECT_EQ(later.code, 2);
  EXPECT_TRUE(contains(later.errors, "--gradient-norms")) << later.errors;
}

TEST_F(Watching, WhatGoesOnIsSaidToGoOn) {
  const FolderLock lock(folder_ / "other");
  const Outcome outcome = program("watch other --once --page other.html");
  EXPECT_TRUE(contains(outcome.output, "other: running")) << outcome.output;
  EXPECT_TRUE(contains(read_text_file(folder_ / "other.html"), "http-equiv=\"refresh\""));
  ASSERT_EQ(program("watch run --once --page run.html").code, 0);
  const std::string page = read_text_file(folder_ / "run.html");
  EXPECT_FALSE(contains(page, "http-equiv=\"refresh\"")) << "nothing more will come";
  for (const char* words : {"<svg", "Loss", "Throughput"}) EXPECT_TRUE(contains(page, words)) << words;
}

TEST_F(Watching, TheCommandsOfItsPageWork) {
  const auto commands = commands_of(read_text_file(SUPERSTEP_SOURCE "/docs/watch.md"));
  EXPECT_GE(commands.size(), 4U);
  for (const std::string& command : commands) {
    const Outcome outcome = program(command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.output << outcome.errors;
  }
  EXPECT_TRUE(contains(read_text_file(folder_ / "run.csv"), "epoch,step,seconds"));
  EXPECT_FALSE(fs::is_empty(folder_ / "logs" / "run"));
  EXPECT_FALSE(fs::is_empty(folder_ / "store"));
}

TEST_F(Watching, RunsOfOneNameStayApart) {
  fs::create_directories(folder_ / "again");
  fs::copy(folder_ / "other", folder_ / "again/other", fs::copy_options::recursive);
  const Outcome outcome = program("watch other again/other --once --tensorboard logs --page both.html");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "again/other: finished")) << outcome.output;
  EXPECT_FALSE(fs::is_empty(folder_ / "logs/again/other"));
  EXPECT_TRUE(contains(read_text_file(folder_ / "both.html"), "again/other"));
}

TEST_F(Watching, WhatIsWrongIsNamed) {
  const auto refused = [&](const std::string& arguments, int code, const char* why) {
    const Outcome outcome = program(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, why)) << arguments << outcome.errors;
  };
  refused("watch nowhere --once", 1, "nowhere");
  refused("watch run other --csv both.csv --once", 2, "--csv");
  refused("watch run --every 0 --once", 2, "--every");
  write_file_atomically(folder_ / "other/config.json", std::string_view("[]"));
  refused("watch other --once", 1, "config.json");
}

}  // namespace
}  // namespace superstep
