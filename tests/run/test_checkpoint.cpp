// Checkpoints in a folder: which is the newest, what is tidied away, what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/safetensors.h"
#include "superstep/run/serve/sound.h"
#include "superstep/run/train/checkpoint.h"
#include "tests/expect_error.h"
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

// Every byte of it counts: one that is another, or two tensors that have changed places, are seen.
TEST(Checkpoints, AreWhatWasWritten) {
  const ScratchFolder folder;
  const auto file = folder / "c.safetensors";
  Checkpoint checkpoint = at_step(1);
  checkpoint.states = {{"a", Tensor::full(ElementType::f32, {3}, 1)},
                       {"b", Tensor::full(ElementType::f32, {3}, 2)}};
  checkpoint.signature = state_signature(checkpoint.states);
  checkpoint.notes = {{"best", "0.25"}};
  write_checkpoint_file(file, checkpoint);
  const Checkpoint back = read_checkpoint(file);
  EXPECT_TRUE(back.has_digest);
  EXPECT_FALSE(back.notes.contains("sha256"));
  const std::string whole = read_text_file(file);
  for (std::size_t at = whole.size() - 24; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file_atomically(file, damaged);
    expect_error(ErrorCode::bad_file, {"c.safetensors", "SHA-256"}, [&] { read_checkpoint(file); });
  }
  std::string exchanged = whole;
  std::swap_ranges(exchanged.end() - 24, exchanged.end() - 12, exchanged.end() - 12);
  write_file_atomically(file, exchanged);
  expect_error(ErrorCode::bad_file, {"SHA-256"}, [&] { read_checkpoint(file); });
  std::string other_note = whole;
  other_note.replace(other_note.find("0.25"), 4, "0.24");
  write_file_atomically(file, other_note);
  expect_error(ErrorCode::bad_file, {"SHA-256"}, [&] { read_checkpoint(file); });
}

TEST(Checkpoints, WithoutADigestAreReadAndSaySo) {
  const ScratchFolder folder;
  const auto file = folder / "c.safetensors";
  write_checkpoint_file(file, at_step(1));
  data::SafetensorsFile content = data::read_safetensors(file);
  content.metadata.erase(data::digest_entry);
  data::write_safetensors(file, content);
  EXPECT_FALSE(read_checkpoint(file).has_digest);
}

TEST(Sound, WeightsAreFiniteAndNotAllZero) {
  const auto full = [](double value) { return Tensor::full(ElementType::f32, {2, 2}, value); };
  EXPECT_NO_THROW(require_sound({{"w", full(0)}, {"b", full(1)}}, "here"));
  EXPECT_NO_THROW(require_sound({{"rate", Tensor::scalar(0.0F)}}, "here"));
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()})
    for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16}) {
      Tensor one = Tensor::full(type, {3, 2}, 1);
      EXPECT_EQ(rows_not_finite(one), 0);
      one.set(3, bad);
      EXPECT_EQ(count_not_finite(one), 1) << superstep::name_of(type);
      EXPECT_EQ(rows_not_finite(one), 1);
      EXPECT_EQ(rows_not_finite(one, 1, 1), 1);
      EXPECT_EQ(rows_not_finite(one, 2, 1), 0);
      expect_error(ErrorCode::bad_file, {"here", "1 of the 6", "'w'"}, [&] {
        require_sound({{"w", one}}, "here");
      });
    }
  expect_error(ErrorCode::bad_file, {"all weights are zero"}, [&] {
    require_sound({{"w", full(0)}, {"b", full(0)}}, "here");
  });
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
