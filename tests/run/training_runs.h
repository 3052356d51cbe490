// Small training runs in folders of their own, and whether two of them ended the same.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/train.h"

namespace superstep::test {

using run::Checkpoint;
using run::TrainSettings;

// 8 batches an epoch, 128 validation samples, two threads: 24 steps, some 30 ms.
inline TrainSettings small_run() {
  return {.workload = "mlp", .samples = 640, .batch = 64, .replicas = 2, .epochs = 3, .seed = 5};
}

// With batch normalisation, whose running means are states that no optimiser moves: 4 batches an epoch.
inline TrainSettings normalised_run() {
  return {.workload = "unet-64",
          .model_options = {"size=32", "width=4", "levels=2"},
          .samples = 80,
          .batch = 16,
          .micro_batch = 4,
          .replicas = 2,
          .epochs = 4};
}

// With dropout, whose masks follow from the step.
inline TrainSettings dropping_run() {
  return {.workload = "uno",
          .model_options = {"width=64", "dropout=0.1"},
          .samples = 200,
          .batch = 32,
          .replicas = 2,
          .epochs = 3};
}

// Along two random directions a step, which follow from it, with masks beside them.
inline TrainSettings estimated_run() {
  return {.workload = "wallmodel",
          .model_options = {"dropout=0.1"},
          .samples = 400,
          .batch = 32,
          .replicas = 2,
          .epochs = 4,
          .gradient = "forward:2"};
}

// By a published recipe whose rate is halved where a metric stays. A high rate keeps it from becoming better:
// 44 epochs of two steps.
inline TrainSettings plateau_run() {
  return {.workload = "mlp",
          .recipe = "published",
          .samples = 160,
          .replicas = 2,
          .epochs = 44,
          .learning_rate = 0.3,
          .seed = 5};
}

inline Checkpoint newest_checkpoint(const std::filesystem::path& folder) {
  return *run::read_newest_checkpoint(folder / "checkpoints");
}

inline void expect_same_states(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.states.size(), b.states.size());
  for (const auto& [name, tensor] : a.states) {
    ASSERT_TRUE(b.states.contains(name)) << name;
    ASSERT_EQ(tensor.byte_count(), b.states.at(name).byte_count()) << name;
    EXPECT_EQ(std::memcmp(tensor.bytes(), b.states.at(name).bytes(), tensor.byte_count()), 0) << name;
  }
}

// What a log says that does not depend on the clock.
inline std::vector<std::string> untimed_log(const std::filesystem::path& folder) {
  std::vector<std::string> lines;
  for (nlohmann::json line : run::RunDirectory::open(folder).read_log()) {
    for (const char* timed : {"seconds", "throughput", "throughput_with_data", "step_time", "flops_rate",
                              "data_wait", "time_to_solution", "compile_time"})
      line.erase(timed);
    lines.push_back(line.dump());
  }
  return lines;
}

// The same last checkpoint, log and best checkpoint, to the bit.
inline void expect_same_run(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Checkpoint first = newest_checkpoint(a), second = newest_checkpoint(b);
  EXPECT_EQ(first.step, second.step);
  expect_same_states(first, second);
  for (const char* note : {"loss", "epoch_loss", "epoch_steps", "best"})
    EXPECT_EQ(first.notes.at(note), second.notes.at(note)) << note;
  for (const char* note : {"plateau.reduced", "plateau.best", "plateau.waited", "plateau.without_gain"})
    EXPECT_EQ(first.notes.contains(note) ? first.notes.at(note) : "",
              second.notes.contains(note) ? second.notes.at(note) : "")
        << note;
  EXPECT_EQ(untimed_log(a), untimed_log(b));
  const Checkpoint best = run::read_checkpoint(a / "best.safetensors"),
                   other = run::read_checkpoint(b / "best.safetensors");
  EXPECT_EQ(best.step, other.step);
  expect_same_states(best, other);
}

}  // namespace superstep::test
