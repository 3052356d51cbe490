// Checkpoints in a folder: which is the newest, what is tidied away, what is refused.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/base/error.h"
#include "superstep/run/train/checkpoint.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

Checkpoint at_step(std::int64_t step) {
  Checkpoint checkpoint{.workload = "mlp", .step = step};
  checkpoint.states = {{"w", Tensor::full(ElementType::f32, {2}, static_cast<double>(step % 100))}};
  checkpoint.signature = state_signature(checkpoint.states);
  return checkpoint;
}

std::size_t files_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// Names have eight digits; a hundred million steps of a small model are a matter of minutes.
TEST(Checkpoints, TheNewestIsTheOneOfMostSteps) {
  const ScratchFolder folder;
  for (const std::int64_t step : {99'999'998, 99'999'999, 100'000'000, 100'000'001})
    write_checkpoint(folder / "", at_step(step));
  EXPECT_EQ(read_newest_checkpoint(folder / "")->step, 100'000'001);
  EXPECT_EQ(files_in(folder / ""), 2u);
}

TEST(Checkpoints, AveragesAreServedInThePlaceOfParameters) {
  const auto number = [](double value) { return Tensor::scalar(static_cast<float>(value)); };
  const auto found =
      served({{"w", number(1)}, {"average/w", number(2)}, {"b", number(3)}, {"step", number(4)}});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.at("w").at(0), 2);
  EXPECT_EQ(found.at("b").at(0), 3);
  EXPECT_EQ(served({{"w", number(1)}}).at("w").at(0), 1);
}

TEST(Checkpoints, ADamagedOneIsPassedOver) {
  const ScratchFolder folder;
  write_checkpoint(folder / "", at_step(1));
  std::ofstream(folder / "step-00000002.safetensors") << "damaged";
  EXPECT_EQ(read_newest_checkpoint(folder / "")->step, 1);
}

TEST(Checkpoints, NotesThatAreNoNumbersAreRefused) {
  Checkpoint checkpoint = at_step(1);
  checkpoint.notes = {{"best", "0.25"}, {"epoch_loss", "much"}};
  EXPECT_EQ(number_in_notes(checkpoint, "best", "here"), 0.25);
  EXPECT_EQ(number_in_notes(checkpoint, "absent", "here"), std::nullopt);
  EXPECT_THROW(number_in_notes(checkpoint, "epoch_loss", "here"), Error);
}

}  // namespace
}  // namespace superstep::run
