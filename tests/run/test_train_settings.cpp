// The configuration of a run through its file, and what a run that goes on may be told anew.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/run/train/train_resume.h"
#include "tests/expect_error.h"

namespace superstep::run {
namespace {

using nlohmann::json;

// Nothing as it is by default.
const TrainSettings unusual{.workload = "model.onnx",
                            .target = "reference",
                            .precision = "f16",
                            .loss_scale = "dynamic:512",
                            .recipe = "published",
                            .model_options = {"size=32", "width=4"},
                            .shapes = {"x=-1,3"},
                            .keep = {"relu*"},
                            .bounds = {"kept=100"},
                            .train = {"gain*"},
                            .freeze = {"stem.?"},
                            .loss = "mse:y",
                            .metrics = "r2",
                            .weights = "an/other",
                            .data = "a/b.h5",
                            .validation = "c/d.h5",
                            .allow_nan = true,
                            .skip_broken = true,
                            .crop = true,
                            .scale = {"x=0.1,0.2"},
                            .offset = {"y=-3"},
                            .augmentation = {"x=noise:0.5"},
                            .tokenizer = "vocab.txt",
                            .samples = 1234567890123,
                            .folds = 7,
                            .fold = 3,
                            .batch = 7,
                            .micro_batch = 3,
                            .replicas = 9,
                            .devices = 5,
                            .divide_parameters = true,
                            .memory_limit = 1LL << 40,
                            .epochs = 0.1,
                            .steps = 11,
                            .stop_after = 1.5,
                            .until = Until{"r2", 1.0 / 3},
                            .optimizer = "adamw",
                            .learning_rate = 1e-5,
                            .schedule = "cosine:warm_up=2",
                            .patience = 4,
                            .monitor = "rmse",
                            .average = 0.99,
                            .gradient = "mixed:2:fc1",
                            .gradient_norms = true,
                            .augment = false,
                            .seed = 0xfedcba9876543210U,
                            .batch_norm_span = 4};

TEST(TrainSettingsFile, EveryMemberComesBack) {
  const json written = to_json(unusual), defaults = to_json(TrainSettings{.workload = "mlp"});
  const TrainSettings found = train_settings_from_json(json::parse(written.dump()));
  EXPECT_EQ(to_json(found), written);
  for (const auto& [name, value] : written.items())
    EXPECT_TRUE(name == "schema" || value != defaults.at(name)) << name << " would not be missed";
  EXPECT_EQ(found.seed, unusual.seed);
  EXPECT_EQ(found.until->value, 1.0 / 3);
  EXPECT_FALSE(train_settings_from_json(defaults).until);
}

TEST(TrainSettingsFile, OlderFilesAreRead) {
  json older = to_json(unusual);
  for (const char* later :
       {"shapes",       "train",           "freeze",  "loss",     "metrics",     "loss_scale",
        "memory_limit", "batch_norm_span", "recipe",  "gradient", "weights",     "schedule",
        "patience",     "monitor",         "average", "devices",  "shard",       "folds",
        "fold",         "stop_after",      "scale",   "offset",   "augmentation"})
    older.erase(later);
  const TrainSettings found = train_settings_from_json(older);
  EXPECT_TRUE(found.shapes.empty() && found.train.empty() && found.freeze.empty() && found.loss.empty());
  EXPECT_EQ(found.memory_limit, 0);
  EXPECT_EQ(found.recipe, "quick");
  EXPECT_EQ(found.batch_norm_span, 1);
  EXPECT_EQ(found.devices, 1);
  EXPECT_EQ(found.folds + found.fold, 0);
  EXPECT_EQ(found.stop_after, 0);
  EXPECT_TRUE(found.scale.empty() && found.offset.empty() && found.augmentation.empty());
  EXPECT_FALSE(found.divide_parameters);
  EXPECT_EQ(found.gradient, "reverse");
}

TEST(TrainSettingsFile, WhatIsMissingOrOfAnotherKindIsRefused) {
  const json whole = to_json(unusual);
  for (const auto& [name, value] : whole.items()) {
    if (name == "schema") continue;
    json damaged = whole;
    damaged[name] = json::object();
    expect_error(ErrorCode::bad_file, {"is not the configuration of a run"},
                 [&] { train_settings_from_json(damaged); });
  }
  // A value that makes no sense is the file's fault, and no option's that nobody gave.
  for (const auto& [name, value] : {std::pair<const char*, json>{"patience", -3},
                                    {"average", 1.5},
                                    {"schedule", "cosinus"},
                                    {"gradient", "reverso"},
                                    {"optimizer", "adan"},
                                    {"precision", "f23"},
                                    {"workload", "bragnn"},
                                    {"loss", "mze:y"},
                                    {"metrics", "r3"},
                                    {"scale", json::array({"x=ten"})},
                                    {"augmentation", json::array({"x=flop"})},
                                    {"loss_scale", "-1"}}) {
    json damaged = whole;
    damaged[name] = value;
    expect_error(ErrorCode::bad_file, {"is not the configuration of a run", "config.json"},
                 [&] { train_settings_from_json(damaged); });
  }
  json without = to_json(unusual);
  without.erase("seed");
  expect_error(ErrorCode::bad_file, {"seed"}, [&] { train_settings_from_json(without); });
  for (const json& other : {json(3), json::array(), json(nullptr)})
    expect_error(ErrorCode::bad_file, {"is not the configuration"}, [&] { train_settings_from_json(other); });
}

TEST(Extensions, ChangeWhatTheySayAndNothingElse) {
  TrainSettings whole = unusual;  // who goes on goes to the end, unless a stop is given anew
  whole.stop_after = 0;
  EXPECT_EQ(to_json(extended(unusual, {})), to_json(whole));
  EXPECT_EQ(extended(unusual, {.stop_after = 2.5}).stop_after, 2.5);
  const TrainSettings longer = extended(unusual, {.epochs = 5, .steps = {}, .until = {}, .replicas = {}});
  EXPECT_EQ(longer.epochs, 5);
  EXPECT_EQ(longer.steps, 0) << "epochs lift a limit of steps";
  const TrainSettings both =
      extended(unusual, {.epochs = 5, .steps = 99, .until = Until{"mse", 2}, .replicas = 2});
  EXPECT_EQ(both.steps, 99);
  EXPECT_EQ(both.until, (Until{"mse", 2}));
  json expected = to_json(whole);
  expected.update(
      json{{"epochs", 5.0}, {"steps", 99}, {"replicas", 2}, {"until", to_json(both).at("until")}});
  EXPECT_EQ(to_json(both), expected);
}

// Each option that a run cannot change, told something else than it was begun with.
TEST(Extensions, WhatARunIsIsRefusedByName) {
  const TrainSettings kept{.workload = "model.onnx"};
  for (const char* option : {"--weights",     "--data",         "--samples",  "--batch",
                             "--micro-batch", "--memory-limit", "--on",       "--precision",
                             "--optimizer",   "--loss",         "--shape",    "--learning-rate",
                             "--schedule",    "--patience",     "--monitor",  "--ema",
                             "--seed",        "--set",          "--gradient", "--batch-norm-span",
                             "--no-augment",  "--folds"}) {
    const std::vector<std::string> given{option};
    expect_error(ErrorCode::invalid_argument, {option, "that cannot change", "what can change is"},
                 [&] { refuse_changes(kept, unusual, given, "run"); });
    EXPECT_NO_THROW(refuse_changes(kept, kept, given, "run")) << option;
    EXPECT_NO_THROW(refuse_changes(unusual, unusual, given, "run")) << option;
  }
  const std::vector<std::string> free{"--epochs", "--steps",   "--stop-after",
                                      "--until",  "--threads", "--checkpoint-seconds"};
  EXPECT_NO_THROW(refuse_changes(kept, unusual, free, "run"));
}

}  // namespace
}  // namespace superstep::run
