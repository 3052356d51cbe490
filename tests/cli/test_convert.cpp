// superstep convert and show as they are called.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/file/npz.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

Outcome expect_said(const ScratchFolder& folder, const std::string& arguments, int code,
                    const std::string& part) {
  Outcome outcome = run_program(folder / "", arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  EXPECT_TRUE(contains(outcome.output + outcome.errors, part)) << arguments << "\n"
                                                               << outcome.output << outcome.errors;
  return outcome;
}

void write_samples(const ScratchFolder& folder) {
  data::write_npz(folder / "in.npz", {{"x", Tensor::full(ElementType::f32, {6, 3}, 0.5)},
                                      {"label", Tensor(ElementType::i64, {6})}});
}

TEST(ConvertCommand, WritesAndSaysWhatItWrote) {
  const ScratchFolder folder;
  write_samples(folder);
  expect_said(folder, "convert in.npz out.tar --json out.json", 0, "read back: the same");
  const auto result = parse_json(read_text_file(folder / "out.json"));
  EXPECT_EQ(result["command"], "convert");
  EXPECT_EQ(result["arrays"].size(), 2u);
  EXPECT_EQ(result["arrays"][1]["sha256"].get<std::string>().size(), 64u);
  expect_said(folder, "convert out.tar again.npz", 0, "6 samples");
  EXPECT_EQ(data::read_npz(folder / "again.npz").at("x").at(17), 0.5);
  expect_said(folder, "convert 'i*.npz' records --to tfrecord", 0, "6 samples");
  expect_said(folder, "show records", 0, "TFRecord of tf.train.Example: 6 samples");
}

TEST(ConvertCommand, NeverWritesOverOrAmongWhatItReads) {
  const ScratchFolder folder;
  write_samples(folder);
  const std::string before = read_text_file(folder / "in.npz");
  expect_said(folder, "convert in.npz in.npz", 2, "are the same file");
  expect_said(folder, "convert '*.npz' in.npz", 2, "one of the files that are read");
  std::filesystem::create_directories(folder / "inside");
  std::filesystem::copy_file(folder / "in.npz", folder / "inside/in.npz");
  expect_said(folder, "convert inside inside/out.h5", 2, "into a folder that is read");
  expect_said(folder, "convert inside/ ./inside/out.h5", 2, "into a folder that is read");
  expect_said(folder, "convert inside outside.h5", 0, "6 samples");
  EXPECT_EQ(read_text_file(folder / "in.npz"), before);
  expect_said(folder, "convert in.npz nowhere/out.h5", 1, "there is no folder nowhere");
  expect_said(folder, "convert none.npz out.h5", 1, "none.npz");
  expect_said(folder, "convert in.npz out.dat", 2, "--to");
}

TEST(ShowCommand, SaysWhatAWorkloadWants) {
  const ScratchFolder folder;
  write_file_atomically(folder / "p.jsonl",
                        std::string_view("{\"patch\": [[1.5, 2]], \"ploc\": [0.5, 0.25]}\n"));
  const Outcome outcome =
      expect_said(folder, "show p.jsonl --for braggnn --json p.json", 0, "data of braggnn");
  EXPECT_TRUE(contains(outcome.output, "as wanted")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "has [1,1,2]")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "not there")) << outcome.output;
  EXPECT_EQ(parse_json(read_text_file(folder / "p.json"))["source"]["form"], "json-lines");
  write_samples(folder);
  expect_said(folder, "show in.npz --skip-broken", 2, "file of arrays");
  expect_said(folder, "show p.jsonl --for bragnn", 2, "braggnn");
}

}  // namespace
}  // namespace superstep
