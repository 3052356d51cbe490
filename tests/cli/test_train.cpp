// superstep train, infer, report: as a user runs them, stops them and gets them wrong.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/safetensors.h"
#include "tests/cli/program.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

void expect_refused(const ScratchFolder& folder, const std::string& arguments, int code,
                    std::initializer_list<std::string> parts) {
  const Outcome outcome = run_program(folder / "", arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  for (const std::string& part : parts) expect_says(outcome.errors, part);
}

// The newest checkpoint of a run's folder.
fs::path last_checkpoint(const fs::path& run) {
  fs::path newest;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", absent))
    if (entry.path().extension() == ".safetensors" && (newest.empty() || entry.path() > newest))
      newest = entry.path();
  return newest;
}

void expect_same_states(const fs::path& a, const fs::path& b) {
  const auto first = data::read_safetensors(last_checkpoint(a)),
             second = data::read_safetensors(last_checkpoint(b));
  ASSERT_EQ(first.metadata.at("step"), second.metadata.at("step"));
  ASSERT_EQ(first.tensors.size(), second.tensors.size());
  for (const auto& [name, tensor] : first.tensors)
    EXPECT_EQ(std::memcmp(tensor.bytes(), second.tensors.at(name).bytes(), tensor.byte_count()), 0) << name;
}

constexpr const char* short_training = "--batch 64 --epochs 3 --threads 2";

class Train : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome made =
        run_program(folder_ / "", "generate braggnn --samples 1200 --set margin=1 --out peaks.h5");
    ASSERT_EQ(made.code, 0) << made.errors;
  }
  Outcome run(const std::string& arguments) { return run_program(folder_ / "", arguments); }
  Outcome train(const std::string& more) {
    return run(std::string("train braggnn --data peaks.h5 ") + short_training + " " + more);
  }
  ScratchFolder folder_;
};

TEST_F(Train, WritesARunThatServes) {
  const Outcome trained = train("--out run --json train.json");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  expect_says(trained.output, "error_px_mean");
  for (const char* name :
       {"config.json", "environment.json", "metrics.jsonl", "best.safetensors", "model.onnx"})
    EXPECT_TRUE(fs::exists(folder_ / "run" / name)) << name;
  const auto json = nlohmann::json::parse(content_of(folder_ / "train.json"));
  EXPECT_EQ(json["command"], "train");
  EXPECT_GT(json["metrics"]["throughput"]["value"], 0);
  EXPECT_EQ(json["metrics"]["step_time"]["unit"], "s");
  EXPECT_GT(json["metrics"]["error_px_mean"]["value"], 0);
  const Outcome served =
      run("infer braggnn --weights run --input peaks.h5 --output positions.h5 --batch 100");
  ASSERT_EQ(served.code, 0) << served.errors;
  expect_says(served.output, "latency_p50");
  EXPECT_EQ(data::Hdf5File(folder_ / "positions.h5").info("ploc").shape, (Shape{1200, 2}));
  const Outcome reported = run("report --run run --out report --samples 300");
  ASSERT_EQ(reported.code, 0) << reported.errors;
  expect_says(reported.output, "centroid");
  expect_says(content_of(folder_ / "report" / "index.html"), "<svg");
}

TEST_F(Train, SameSeedSameBits) {
  ASSERT_EQ(train("--out a").code, 0);
  ASSERT_EQ(train("--out b").code, 0);
  expect_same_states(folder_ / "a", folder_ / "b");
  ASSERT_EQ(train("--out c --seed 2").code, 0);
  const auto a = data::read_safetensors(last_checkpoint(folder_ / "a")),
             c = data::read_safetensors(last_checkpoint(folder_ / "c"));
  const Tensor &weight = a.tensors.at("conv1.weight"), &other = c.tensors.at("conv1.weight");
  EXPECT_NE(std::memcmp(weight.bytes(), other.bytes(), weight.byte_count()), 0);
}

// On f16 it learns what it learns in f32, the scale is kept, and a run that goes on has the same bits.
TEST_F(Train, OnHalvesWithAScaledLoss) {
  const Outcome half = train("--precision f16 --out half --json half.json");
  ASSERT_EQ(half.code, 0) << half.errors;
  ASSERT_EQ(train("--out whole --json whole.json").code, 0);
  const auto loss_of = [&](const char* file) {
    return nlohmann::json::parse(content_of(folder_ / file))
        .at("metrics")
        .at("loss")
        .at("value")
        .get<double>();
  };
  EXPECT_NE(loss_of("half.json"), loss_of("whole.json"));
  EXPECT_NEAR(loss_of("half.json"), loss_of("whole.json"), 0.05 * loss_of("whole.json"));
  expect_says(content_of(folder_ / "half" / "metrics.jsonl"), "\"loss_scale\":65536.0");
  expect_says(content_of(folder_ / "half" / "metrics.jsonl"), "\"skipped_steps\":0.0");
  ASSERT_EQ(train("--precision f16 --steps 20 --out again").code, 0);
  ASSERT_EQ(run("train braggnn --resume again --epochs 3").code, 0);
  expect_same_states(folder_ / "half", folder_ / "again");
  ASSERT_EQ(run("infer braggnn --weights half --input peaks.h5 --output positions.h5").code, 0);
  expect_refused(folder_, "train mlp --loss-scale 1024 --no-out", 2, {"--loss-scale 1024", "is of f16"});
  expect_refused(folder_, "train mlp --precision f16 --loss-scale 0 --no-out", 2,
                 {"--loss-scale 0", "dynamic:1024"});
}

pid_t start_program(const fs::path& folder, const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (chdir(folder.c_str()) != 0 || setenv("SUPERSTEP_HOME", folder.c_str(), 1) != 0) _exit(99);
  (void)!freopen("/dev/null", "w", stdout);
  (void)!freopen("/dev/null", "w", stderr);
  std::vector<char*> argv{const_cast<char*>(SUPERSTEP_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(SUPERSTEP_PROGRAM, argv.data());
  _exit(98);
}

// Starts the program, waits until `ready` says so, sends the signal, and gives how it ended.
template <class Ready>
int stop_program(const fs::path& folder, const std::vector<std::string>& arguments, int signal, Ready ready) {
  const pid_t child = start_program(folder, arguments);
  for (int i = 0; i < 6000 && !ready(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// By this signal, with the samples in memory or read as they are trained on.
class Stopped : public Train, public ::testing::WithParamInterface<std::tuple<int, bool>> {};

TEST_P(Stopped, ResumesToTheSameWeights) {
  ASSERT_EQ(train("--out whole").code, 0);
  const auto [signal, reads] = GetParam();
  const fs::path checkpoints = folder_ / "cut" / "checkpoints";
  std::vector<std::string> arguments{"train",
                                     "braggnn",
                                     "--data",
                                     "peaks.h5",
                                     "--batch",
                                     "64",
                                     "--epochs",
                                     "3",
                                     "--threads",
                                     "2",
                                     "--out",
                                     "cut",
                                     "--checkpoint-seconds",
                                     "0"};
  if (reads) arguments.insert(arguments.end(), {"--data-memory", "1K", "--data-threads", "3"});
  const int status = stop_program(folder_ / "", arguments, signal, [&] {
    return fs::exists(checkpoints) && !fs::is_empty(checkpoints) && !last_checkpoint(folder_ / "cut").empty();
  });
  const bool failed = WIFEXITED(status) && WEXITSTATUS(status) != 0;
  if (signal == SIGINT && failed) {
    EXPECT_EQ(WEXITSTATUS(status), 130);
  }
  const Outcome resumed =
      run(std::string("train braggnn --resume cut") + (reads ? " --data-memory 100K --data-threads 5" : ""));
  ASSERT_EQ(resumed.code, 0) << resumed.errors;
  expect_same_states(folder_ / "whole", folder_ / "cut");
  // Every epoch is in the log once, whatever was logged before the stop.
  std::ifstream log(folder_ / "cut" / "metrics.jsonl");
  std::vector<int> epochs;
  for (std::string line; std::getline(log, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("epoch")) epochs.push_back(json["epoch"]);
  }
  EXPECT_EQ(epochs, (std::vector<int>{1, 2, 3}));
}

INSTANTIATE_TEST_SUITE_P(Signals, Stopped,
                         ::testing::Combine(::testing::Values(SIGINT, SIGKILL), ::testing::Bool()));

TEST_F(Train, ReachesATargetAndSaysSo) {
  const Outcome outcome = train("--until error_px_mean=5");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  expect_says(outcome.output, "reached");
}

TEST_F(Train, WrongCallsSayWhatToDo) {
  expect_refused(folder_, "train bragnn", 2, {"there is no such workload", "did you mean 'braggnn'?"});
  expect_refused(folder_, "train braggnn --on cpuu", 2, {"cpuu", "did you mean 'cpu'?"});
  expect_refused(folder_, "train braggnn --data peaks.h5 --precision f31 --epochs 1", 2,
                 {"f31", "--precision"});
  expect_refused(folder_, "train braggnn --data peaks.h5 --optimizer adm --epochs 1", 2, {"adm"});
  expect_refused(folder_, "train braggnn --data peaks.h5 --until error", 2, {"METRIC=VALUE"});
  expect_refused(folder_, "train braggnn --data peaks.h5 --epochs 1 --until eror_px_mean=1", 2,
                 {"did you mean 'error_px_mean'?"});
  expect_refused(folder_, "train braggnn --set pach=11", 2, {"pach", "did you mean 'patch'?"});
  expect_refused(folder_, "train braggnn --data peaks.h5 --batch 100000", 2, {"do not fill one batch"});
  expect_refused(folder_, "train braggnn --data peaks.h5 --batch 64 --micro-batch 7", 2, {"micro-batch"});
  expect_refused(folder_, "train braggnn --batch 0", 2, {"--batch"});
  expect_refused(folder_, "list machnes", 2, {"did you mean 'machines'?"});
}

TEST_F(Train, GoalsMeanWhatTheySay) {
  for (const char* value : {"0,5", "nan", "inf", "", "1x"})
    expect_refused(folder_, std::string("train braggnn --data peaks.h5 --until error_px_mean=") + value, 2,
                   {"--until", "is not a number"});
  expect_refused(folder_, "train mlp --until rms=0.1", 2,
                 {"--until rms", "did you mean 'rmse'?", "its metrics are rmse"});
  const Outcome low = run("train uno --set width=16 --samples 120 --batch 32 --epochs 1 --until r2=0.99");
  ASSERT_EQ(low.code, 0) << low.errors;
  expect_says(low.output, "target r2 >= 0.99: not reached");
  const Outcome lower = run("train uno --set width=16 --samples 120 --batch 32 --epochs 2 --until r2=-1e6");
  expect_says(lower.output, "target r2 >= -1000000: reached");
}

TEST_F(Train, AResumedRunGoesFurtherAndStaysWhatItIs) {
  ASSERT_EQ(train("--out run --steps 20").code, 0);
  expect_refused(folder_, "train braggnn --resume run --batch 128", 2,
                 {"--batch", "was begun with 64, not 128", "--epochs, --steps, --stop-after, --until"});
  expect_refused(folder_, "train braggnn --resume run --precision bf16", 2,
                 {"--precision", "'f32', not 'bf16'"});
  expect_refused(folder_, "train braggnn --resume run --seed 9", 2, {"--seed"});
  expect_refused(folder_, "train braggnn --resume run --learning-rate 0.5", 2, {"--learning-rate"});
  expect_refused(folder_, "train braggnn --resume run --no-augment", 2, {"--no-augment"});
  expect_refused(folder_, "train braggnn --resume run --tune", 2, {"--tune"});
  expect_refused(folder_, "train braggnn --resume run --out other", 2, {"--out"});
  expect_refused(folder_, "train braggnn --resume run --steps 10", 2, {"has done 20 steps", "end after 10"});
  const Outcome further = run("train braggnn --resume run --steps 25 --batch 64");
  ASSERT_EQ(further.code, 0) << further.errors;
  expect_says(further.output, "25 steps");
  // Begun with a limit of steps, it ends with the bits of a run that never had one.
  ASSERT_EQ(run("train braggnn --resume run --epochs 3").code, 0);
  ASSERT_EQ(train("--out whole").code, 0);
  expect_same_states(folder_ / "whole", folder_ / "run");
}

// What a run keeps of its call repeats it; the command line overrides the file.
TEST_F(Train, AFileOfOptionsRepeatsARun) {
  const auto run = [&](const std::string& arguments) {
    const Outcome outcome = run_program(folder_ / "", arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
    return outcome;
  };
  run("train unet-64 --samples 8 --batch 2 --steps 3 --seed 3 --set size=32 --set width=4 --no-augment --out "
      "first");
  run("train --config first/run.toml --out second");
  expect_same_states(folder_ / "first", folder_ / "second");
  run("train --config=first/run.toml --out third --seed 4 unet-64");
  EXPECT_NE(content_of(folder_ / "first/config.json"), content_of(folder_ / "third/config.json"));
  const std::string again = content_of(folder_ / "second/run.toml");
  for (const char* line : {"workload = \"unet-64\"\n", "seed = 3\n", "no-augment = true\n",
                           "set = [\"size=32\", \"width=4\"]\n", "threads = "})
    expect_says(again, line);
}

TEST_F(Train, AFileOfOptionsIsReadStrictly) {
  const auto refused = [&](const std::string& text, int code, std::initializer_list<std::string> parts) {
    std::ofstream(folder_ / "o.toml") << text;
    expect_refused(folder_, "train mlp --no-out --config o.toml", code, parts);
  };
  refused("seed = 1\nepoch = 3\n", 2, {"o.toml:2", "'epoch' is no option of train", "epochs"});
  refused("no-augment = 1\n", 2, {"o.toml:1", "'no-augment' is a switch"});
  refused("seed = true\n", 2, {"'seed' takes a value"});
  refused("seed = 1979-05-27\n", 2, {"'seed' is a text, a number"});
  refused("[seed]\na = 1\n", 2, {"'seed' is a text, a number"});
  refused("resume = \"run\"\n", 2, {"'resume' is of the command line alone"});
  refused("epochs = \"many\"\n", 2, {"--epochs"});
  refused("seed = \n", 1, {"o.toml:1"});
  expect_refused(folder_, "train mlp --no-out --config nowhere.toml", 1, {"nowhere.toml"});
  std::ofstream(folder_ / "o.toml") << "seed = 1\n";
  expect_refused(folder_, "train --no-out --config o.toml", 2, {"workload"});
}

TEST_F(Train, ADryRunSaysWhatItWouldTakeAndKeepsNothing) {
  const Outcome outcome =
      run_program(folder_ / "", "train mlp --samples 640 --batch 64 --epochs 200 --dry-run --json dry.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  for (const char* word :
       {"training", "1,600 steps", "validation", "memory of the plan", "energy", "nothing was kept"})
    expect_says(outcome.output, word);
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  const auto metrics = nlohmann::json::parse(content_of(folder_ / "dry.json")).at("metrics");
  std::map<std::string, double> values;
  for (const auto& [name, metric] : metrics.items()) {
    values[name] = metric.at("value");
    const bool measured = name == "step_time" || name == "compile_time";
    EXPECT_EQ(metric.at("how"), measured ? "measured" : "predicted") << name;
  }
  EXPECT_GT(values.at("step_time"), 0);
  EXPECT_NEAR(values.at("expected_training_time"), 1600 * values.at("step_time"), 1e-9);
  EXPECT_NEAR(values.at("expected_time"),
              values.at("expected_training_time") + values.at("expected_validation_time"), 1e-9);
  const auto& whole = metrics.at("expected_time");
  EXPECT_LE(whole.at("low"), whole.at("value"));
  EXPECT_GE(whole.at("high"), whole.at("value"));
  expect_refused(folder_, "train mlp --dry-run --out run", 2, {"--dry-run", "--out"});
}

TEST_F(Train, AFolderHasOneWriter) {
  const pid_t first = start_program(
      folder_ / "", {"train", "mlp", "--epochs", "100000", "--out", "run", "--checkpoint-seconds", "0"});
  for (int i = 0; i < 2000 && last_checkpoint(folder_ / "run").empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  expect_refused(folder_, "train mlp --resume run", 1,
                 {"run", "is being written to by process " + std::to_string(first) + " on "});
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
  EXPECT_EQ(run("train mlp --resume run --epochs 100000 --steps 1000000000 --until rmse=1e9").code, 0)
      << "its lock went with it";
}

// The value is of those that were looked at, and so is what is said of them.
TEST_F(Train, TheVerdictIsOfTheSamplesThatWereLookedAt) {
  const Outcome few = train("--validate 20");
  ASSERT_EQ(few.code, 0) << few.errors;
  expect_says(few.output, "on 20 samples that the training did not see");
  expect_says(few.errors, "validated on 20 samples of");
}

TEST_F(Train, WithoutATerminalALineAnEpoch) {
  const Outcome lines = train("");
  for (const char* line :
       {"braggnn: ", "epoch 1 of 3, loss ", "epoch 2 of 3", "epoch 3 of 3", "error_px_mean"})
    expect_says(lines.errors, line);
  EXPECT_EQ(train("--progress none").errors, "");
  EXPECT_EQ(train("--quiet").errors, "");
  expect_says(train("--progress bar").errors, "\r");
  expect_refused(folder_, "train mlp --progress much", 2, {"--progress"});
}

TEST_F(Train, DamagedDataAreNamed) {
  expect_refused(folder_, "train braggnn --data missing.h5", 1, {"missing.h5"});
  const std::string whole = content_of(folder_ / "peaks.h5");
  std::ofstream(folder_ / "cut.h5", std::ios::binary) << whole.substr(0, whole.size() / 2);
  expect_refused(folder_, "train braggnn --data cut.h5", 1, {"cut.h5"});
  {
    data::Hdf5Writer file(folder_ / "nan.h5");
    Tensor patches = Tensor::full(ElementType::f32, {100, 11, 11}, 1);
    patches.set(500, std::numeric_limits<double>::quiet_NaN());
    file.write("patch", patches);
    file.write("ploc", Tensor::full(ElementType::f32, {100, 2}, 0.5));
    file.close();
  }
  expect_refused(folder_, "train braggnn --data nan.h5", 1, {"nan.h5", "patch"});
  {
    data::Hdf5Writer file(folder_ / "shape.h5");
    file.write("patch", Tensor::full(ElementType::f32, {100, 11, 12}, 1));
    file.write("ploc", Tensor::full(ElementType::f32, {100, 2}, 0.5));
    file.close();
  }
  expect_refused(folder_, "train braggnn --data shape.h5", 1, {"shape.h5", "patch"});
}

TEST_F(Train, ALossThatDivergesStops) {
  const Outcome outcome = train("--optimizer sgd --learning-rate 1e20 --out run");
  EXPECT_EQ(outcome.code, 1);
  expect_says(outcome.errors, "the loss is");
  expect_says(outcome.errors, "smaller --learning-rate");
}

TEST_F(Train, FoldersAndCheckpointsAreGuarded) {
  ASSERT_EQ(train("--out run --steps 5").code, 0);
  expect_refused(folder_, "train braggnn --data peaks.h5 --out run", 2,
                 {"holds a training run already", "--resume run"});
  expect_refused(folder_, "train mlp --resume run", 2, {"is a run of 'braggnn', not of 'mlp'"});
  expect_refused(folder_, "train braggnn --resume nowhere", 1, {"nowhere", "config.json"});
  std::filesystem::create_directory(folder_ / "elsewhere");
  const Outcome outcome = run_program(folder_ / "elsewhere", "train braggnn --resume ../run");
  EXPECT_EQ(outcome.code, 1);
  expect_says(outcome.errors, "peaks.h5: the data of the run in ../run are not there");
  expect_says(outcome.errors, "go on from the folder in which the run was begun");
  // The checkpoint of another model: same workload, other widths.
  ASSERT_EQ(train("--out wide --steps 5 --set hidden=32-16-8-4").code, 0);
  fs::remove(folder_ / "run" / "best.safetensors");
  fs::copy_file(last_checkpoint(folder_ / "wide"), folder_ / "run" / "best.safetensors");
  expect_refused(folder_, "infer braggnn --weights run --input peaks.h5", 1, {"another model"});
  // A damaged checkpoint.
  std::ofstream(folder_ / "run" / "best.safetensors", std::ios::binary) << "not a checkpoint";
  expect_refused(folder_, "infer braggnn --weights run --input peaks.h5", 1, {"best.safetensors"});
}

TEST_F(Train, AFullDiskLosesNothing) {
  ASSERT_EQ(train("--out run").code, 0);
  const std::string before = content_of(folder_ / "run" / "config.json");
  // A file-size limit stands in for a full disk: writing past it fails in the same place.
  const Outcome outcome = run_program(folder_ / "", "train braggnn --resume run", "ulimit -f 128;");
  EXPECT_EQ(outcome.code, 1);
  expect_says(outcome.errors, "cannot");
  EXPECT_EQ(content_of(folder_ / "run" / "config.json"), before);
  EXPECT_FALSE(data::read_safetensors(last_checkpoint(folder_ / "run")).tensors.empty());
}

TEST(TrainOthers, TheSmallWorkloadsLearn) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "train mlp --epochs 6 --json mlp.json --threads 2");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_LT(nlohmann::json::parse(content_of(folder / "mlp.json"))["metrics"]["rmse"]["value"], 0.3);
}

}  // namespace
}  // namespace superstep
