// The exported model in ONNX Runtime, where that library is found, beside our own.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/bragg_dataset.h"
#include "tests/cli/program.h"
#include "tests/oracles/onnxruntime.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

constexpr std::int64_t batch = 50;

void write_bytes(const std::filesystem::path& path, const Tensor& tensor) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(tensor.bytes()),
             static_cast<std::streamsize>(tensor.byte_count()));
}

TEST(ExportedModel, GivesTheSamePositionsInOnnxRuntime) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", "generate braggnn --samples 600 --set margin=1 --out peaks.h5").code, 0);
  ASSERT_EQ(run_program(folder / "", "train braggnn --data peaks.h5 --epochs 2 --batch 32 --out run").code,
            0);
  // ONNX holds the last weights, best.safetensors the best: serve the last.
  std::filesystem::remove(folder / "run" / "best.safetensors");
  ASSERT_EQ(
      run_program(folder / "", "infer braggnn --weights run --input peaks.h5 --samples 50 --output ours.h5")
          .code,
      0);

  const auto data = data::BraggDataset::open(folder / "peaks.h5", {.centered_labels = false});
  Tensor patches(ElementType::f32, {batch, 1, 11, 11});
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < batch; ++i) indices.push_back(i);
  data.fill(indices, 1, 0, patches.as<float>().data(), nullptr, false);
  write_bytes(folder / "patch.bin", patches);

  std::ofstream(folder / "commands.txt") << "load patch patch.bin\nrun 1\nsave ploc ploc.bin\nquit\n";
  const std::string command = "cd '" + (folder / "").string() + "' && " + onnxruntime_peer() +
                              " run/model.onnx --batch 50 <commands.txt >answers.txt 2>&1";
  (void)!std::system(command.c_str());
  const std::string answers = content_of(folder / "answers.txt");
  if (answers.starts_with("absent"))
    GTEST_SKIP() << "ONNX Runtime was not found: tools/setup-oracles installs it";
  ASSERT_TRUE(answers.starts_with("ready")) << answers;
  const std::string theirs = content_of(folder / "ploc.bin");
  ASSERT_EQ(theirs.size(), static_cast<std::size_t>(batch) * 2 * sizeof(float)) << answers;
  const Tensor ours = data::Hdf5File(folder / "ours.h5").read("ploc", ElementType::f32);
  const auto* values = reinterpret_cast<const float*>(theirs.data());
  for (std::size_t i = 0; i < ours.as<float>().size(); ++i)
    EXPECT_NEAR(ours.as<float>()[i], values[i], 1e-5) << i;
}

}  // namespace
}  // namespace superstep
