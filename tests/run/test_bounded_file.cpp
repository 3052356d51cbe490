// Boxes that are kept, written as a function of plain ONNX: ONNX Runtime (where it is found) chooses the
// same.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/onnx/writer.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/core/evaluate.h"
#include "tests/oracles/onnxruntime.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

constexpr std::int64_t count = 24, classes = 2;

// The best of overlapping boxes of a picture, with room for `bound`.
graph::Graph chooser(std::int64_t bound, bool centred) {
  graph::Graph graph("boxes");
  op::Builder b(graph);
  const op::Var inputs[] = {b.input("boxes", ElementType::f32, {1, count, 4}),
                            b.input("scores", ElementType::f32, {1, classes, count}), b.integers({count}),
                            b.constant(Tensor::from<float>({1}, {0.3F})),
                            b.constant(Tensor::from<float>({1}, {0.2F}))};
  const auto outputs = b.node("superstep.KeptBoxes", inputs,
                              {{"bound", bound}, {"center_point_box", std::int64_t{centred}}}, 2);
  b.output("chosen", outputs[0]);
  b.output("found", outputs[1]);
  return graph;
}

std::vector<Tensor> drawn(std::uint64_t seed) {
  Tensor boxes(ElementType::f32, {1, count, 4}), scores(ElementType::f32, {1, classes, count});
  RandomStream random(seed);
  for (std::int64_t i = 0; i < boxes.element_count(); ++i)
    boxes.set(i, i % 4 < 2 ? random.uniform() : 0.3 + random.uniform());
  for (std::int64_t i = 0; i < scores.element_count(); ++i) scores.set(i, random.uniform());
  return {boxes, scores};
}

void keep(const Tensor& tensor, const std::filesystem::path& path) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(tensor.bytes()),
             static_cast<std::streamsize>(tensor.byte_count()));
}

class BoundedFile : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(BoundedFile, ChoosesTheSameBoxesInOnnxRuntime) {
  const auto [bound, centred] = GetParam();
  const ScratchFolder folder;
  const auto model = [bound = bound, centred = centred](std::int64_t) { return chooser(bound, centred); };
  onnx::write_onnx(folder / "model.onnx", model, {.fixed_batch = 1, .producer_version = ""});
  const std::vector<Tensor> inputs = drawn(static_cast<std::uint64_t>(bound) + 1);
  keep(inputs[0], folder / "boxes.bin");
  keep(inputs[1], folder / "scores.bin");
  std::ofstream(folder / "commands.txt") << "load boxes boxes.bin\nload scores scores.bin\nrun 1\n"
                                         << "save chosen chosen.out\nsave found found.out\nquit\n";
  const std::string command = "cd '" + (folder / "").string() + "' && " + onnxruntime_peer() +
                              " model.onnx --batch 1 <commands.txt >answers.txt 2>&1";
  (void)!std::system(command.c_str());
  const std::string answers = read_text_file(folder / "answers.txt");
  if (answers.starts_with("absent"))
    GTEST_SKIP() << "ONNX Runtime was not found: tools/setup-oracles installs it";
  ASSERT_TRUE(answers.starts_with("ready")) << answers;
  const auto ours = op::evaluate(model(1), inputs).outputs;
  const char* names[] = {"chosen.out", "found.out"};
  for (std::size_t k = 0; k < 2; ++k) {
    const std::string theirs = read_text_file(folder / names[k]);
    ASSERT_EQ(theirs.size(), ours[k].byte_count()) << answers;
    EXPECT_EQ(theirs, std::string(reinterpret_cast<const char*>(ours[k].bytes()), ours[k].byte_count()));
  }
  EXPECT_GT(ours[1].at(0), 2);
  EXPECT_LT(ours[1].at(0), classes * count);  // some were suppressed
}

INSTANTIATE_TEST_SUITE_P(Rooms, BoundedFile, testing::Combine(testing::Values(4, 16), testing::Bool()));

}  // namespace
}  // namespace superstep
