// Where a run stands, as a checkpoint keeps it: every number comes back as the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/run/model.h"
#include "superstep/run/train/train_state.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

std::unique_ptr<target::Executable> small_training() {
  const target::Target& target = target::find_target("cpu");
  return target.compile(Model({.workload = "mlp", .batch = 8}).training_step(&target), {.batch = 8});
}

TrainState through_a_file(const TrainState& state, const target::Executable& executable) {
  const ScratchFolder folder;
  write_checkpoint_file(folder / "c.safetensors", checkpoint_of(state, "mlp", 12.5, executable));
  return state_of(read_checkpoint(folder / "c.safetensors"), "here");
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST(TrainStates, ComeBackToTheBit) {
  const auto executable = small_training();
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 6.02214076e23}) {
    const TrainState state{
        .step = 123456789012,
        .seconds = 0,
        .loss = value,
        .epoch_loss = value * 0.7,
        .epoch_steps = 17,
        .best = -value,
        .reached = true,
        .plateau = {.reduced = value * 0.3, .best = value, .waited = 4, .without_gain = 9}};
    const TrainState found = through_a_file(state, *executable);
    EXPECT_EQ(found.step, state.step);
    EXPECT_EQ(found.seconds, 12.5) << "those that are given, of the whole run";
    EXPECT_TRUE(same_bits(found.loss, value)) << value;
    EXPECT_TRUE(same_bits(found.epoch_loss, value * 0.7)) << value;
    EXPECT_TRUE(same_bits(*found.best, -value)) << value;
    EXPECT_EQ(found.epoch_steps, 17);
    EXPECT_TRUE(found.reached);
    EXPECT_TRUE(same_bits(found.plateau.reduced, value * 0.3)) << value;
    EXPECT_TRUE(same_bits(*found.plateau.best, value)) << value;
    EXPECT_EQ(found.plateau.waited, 4);
    EXPECT_EQ(found.plateau.without_gain, 9);
  }
}

TEST(TrainStates, WhatThereIsNotStaysAway) {
  const auto executable = small_training();
  const TrainState found = through_a_file({.step = 3}, *executable);
  EXPECT_FALSE(found.best);
  EXPECT_FALSE(found.reached);
  EXPECT_FALSE(found.plateau.best);
  EXPECT_EQ(found.plateau.reduced, 1);
  const TrainState nan = through_a_file({.step = 3, .best = std::nan("")}, *executable);
  EXPECT_TRUE(nan.best && std::isnan(*nan.best))
      << "a quality that was no number is better than none: any beats it";
}

TEST(TrainStates, HoldTheStatesOfThePlan) {
  const auto executable = small_training();
  const Checkpoint checkpoint = checkpoint_of({.step = 2}, "mlp", 1, *executable);
  EXPECT_EQ(checkpoint.workload, "mlp");
  EXPECT_EQ(checkpoint.signature, state_signature(checkpoint.states));
  ASSERT_EQ(checkpoint.states.size(), executable->state_names().size());
  for (const auto& [name, tensor] : checkpoint.states) {
    const Tensor own = executable->state(name);
    EXPECT_EQ(std::memcmp(tensor.bytes(), own.bytes(), own.byte_count()), 0) << name;
  }
}

TEST(TrainStates, NotesThatAreNoNumbersAreRefused) {
  Checkpoint checkpoint{.workload = "mlp", .step = 1};
  for (const char* note :
       {"loss", "epoch_loss", "epoch_steps", "best", "plateau.reduced", "plateau.waited"}) {
    checkpoint.notes = {{note, "much"}};
    expect_error(ErrorCode::bad_file, {"'much' is not a number", "that.safetensors"},
                 [&] { state_of(checkpoint, "that.safetensors"); });
  }
  checkpoint.notes.clear();
  EXPECT_EQ(state_of(checkpoint, "here").loss, 0) << "of an older version, which kept none";
}

TEST(TrainStates, HaveAMeanLoss) {
  EXPECT_EQ((TrainState{.epoch_loss = 6, .epoch_steps = 4}.mean_loss()), 1.5);
  EXPECT_EQ(TrainState{}.mean_loss(), 0) << "before the first step";
}

}  // namespace
}  // namespace superstep::run
