// Files of one's own as they lie: arrays with names, axes too few, larger pictures, the run that is kept.
#include <gtest/gtest.h>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/onnx/proto_builder.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;
namespace on = onnx::testing;

Tensor counted(const Shape& shape) {
  Tensor tensor(ElementType::f32, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, static_cast<double>((i * 7) % 23));
  return tensor;
}

// pool.onnx: x [N,1,3,4] -> y [N,1], the mean times a weight; a scan with frames [6,5,6] and [6,3,4].
class OwnFiles : public testing::Test {
 protected:
  void SetUp() override {
    on::GraphParts parts;
    parts.inputs = {on::port("x", on::f32, {"N", "1", "3", "4"})};
    parts.outputs = {on::port("y", on::f32, {"N", "1"})};
    parts.nodes = {on::node("Flatten", {"x"}, {"flat"}), on::node("MatMul", {"flat", "w"}, {"y"})};
    parts.initializers = {on::floats("w", {12, 1}, std::vector<float>(12, 1.0F / 12))};
    std::ofstream(folder_ / "pool.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
    data::Hdf5Writer scan(folder_ / "scan.nxs");
    scan.write("entry/data/frames", counted({6, 5, 6}));
    scan.write("entry/small/frames", counted({6, 3, 4}));
    scan.write("entry/peak", counted({6}));
    scan.close();
    data::write_npz(folder_ / "same.npz", {{"x", counted({6, 3, 4}).reshaped({6, 1, 3, 4})},
                                           {"target", counted({6}).reshaped({6, 1})}});
  }
  Outcome run(const std::string& arguments) { return run_program(folder_ / "", arguments); }
  Outcome done(const std::string& arguments) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << '\n' << outcome.errors;
    return outcome;
  }
  const ScratchFolder folder_;
};

constexpr const char* small_frames = "x=scan.nxs:/entry/small/frames";

TEST_F(OwnFiles, FramesInPlacesOfTheirOwnGiveWhatTheSameArraysGive) {
  const Outcome said = done(std::string("infer pool.onnx --input ") + small_frames + " --output a.npy");
  EXPECT_TRUE(contains(said.errors, "[6,3,4] is taken as [6,1,3,4]"));
  done("infer pool.onnx --input same.npz --output b.npy");
  const Tensor a = data::read_npy(folder_ / "a.npy"), b = data::read_npy(folder_ / "b.npy");
  ASSERT_EQ(a.shape(), b.shape());
  for (std::int64_t i = 0; i < a.element_count(); ++i) EXPECT_EQ(a.at(i), b.at(i));
  // One array needs no name where the model has one input.
  done("infer pool.onnx --input scan.nxs:entry/small/frames --output c.npy");
  EXPECT_EQ(data::read_npy(folder_ / "c.npy").at(5), b.at(5));
}

TEST_F(OwnFiles, ATrainingTakesThemWithTheirTargets) {
  const std::string more = " --steps 4 --batch 2 --threads 1 --loss mse --no-augment";
  done(std::string("train pool.onnx --data ") + small_frames + " --data target=scan.nxs:/entry/peak --out a" +
       more);
  done("train pool.onnx --data same.npz --out b" + more);
  const Outcome shown =
      done(std::string("infer pool.onnx --weights a --input ") + small_frames + " --output a.npy");
  done("infer pool.onnx --weights b --input same.npz --output b.npy");
  EXPECT_EQ(content_of(folder_ / "a.npy"), content_of(folder_ / "b.npy"));
  // What it was trained on is found again.
  done("train pool.onnx --resume a --steps 6");
}

TEST_F(OwnFiles, LargerPicturesAreRefusedWithTheOptionThatCutsThem) {
  const Outcome refused = run("infer pool.onnx --input x=scan.nxs:/entry/data/frames");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.errors, "[6,5,6]"));
  EXPECT_TRUE(contains(refused.errors, "--crop center takes the middle [1,3,4] of each sample"));
  const Outcome cut =
      done("infer pool.onnx --input x=scan.nxs:/entry/data/frames --crop center --output a.npy");
  EXPECT_TRUE(contains(cut.errors, "the middle [1,3,4] of each sample of [5,6]"));
  const Tensor frames = counted({6, 5, 6}), found = data::read_npy(folder_ / "a.npy");
  double sum = 0;
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t k = 0; k < 4; ++k) sum += frames.at(2 * 30 + (i + 1) * 6 + k + 1);
  EXPECT_NEAR(found.at(2), sum / 12, 1e-5);
}

TEST_F(OwnFiles, TheZooTakesThemToo) {
  done("generate braggnn --samples 60 --out peaks.h5");
  const std::string data = "--data patch=peaks.h5:/patch --data ploc=peaks.h5:ploc";
  done("train braggnn " + data + " --steps 2 --batch 8 --out run");
  done("infer braggnn --weights run --input peaks.h5:patch --output a.npz");
  done("infer braggnn --weights run --input peaks.h5 --output b.npz");
  EXPECT_EQ(content_of(folder_ / "a.npz").size(), content_of(folder_ / "b.npz").size());
  done("baseline braggnn --input patch=peaks.h5 --input ploc=peaks.h5:/ploc --output fits.h5");
  EXPECT_TRUE(contains(done("show patch=peaks.h5:/patch").output, "patch"));
}

TEST_F(OwnFiles, NothingIsWrittenOverWhatIsRead) {
  for (const char* input : {"x=same.npz:x", "same.npz:x", "'{same.npz,same.npz}'"}) {
    const Outcome refused = run(std::string("infer pool.onnx --output same.npz --input ") + input);
    EXPECT_EQ(refused.code, 2) << input;
    EXPECT_TRUE(contains(refused.errors, "would be overwritten")) << input;
  }
}

TEST_F(OwnFiles, ARunIsKeptWhereItSays) {
  const std::string train = "train pool.onnx --data same.npz --steps 2 --batch 2 --threads 1";
  const Outcome kept = done(train), again = done(train);
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(folder_ / "runs")) runs.push_back(entry.path());
  ASSERT_EQ(runs.size(), 2u);
  for (const fs::path& each : runs) {
    EXPECT_TRUE(each.filename().string().starts_with("pool-20")) << each;
    EXPECT_TRUE(fs::exists(each / "model.onnx"));
    const std::string name = "runs/" + each.filename().string();
    EXPECT_TRUE((kept.errors + again.errors).find("kept in " + name) != std::string::npos) << kept.errors;
  }
  done("infer pool.onnx --weights runs/" + runs[0].filename().string() + " --input same.npz");
  fs::remove_all(folder_ / "runs");
  done(train + " --no-out");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  EXPECT_EQ(run(train + " --no-out --out run").code, 2);
  EXPECT_EQ(run("train braggnn --epochs 0.1 --samples 64 --until nothing=1").code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "runs")) << "nothing is left of what did not begin";
}

TEST_F(OwnFiles, ThePlanIsSaidBeforeTheFirstStep) {
  const Outcome explained =
      run("train mlp --samples 256 --batch 32 --learning-rate 1e30 --no-out --explain --threads 1");
  EXPECT_EQ(explained.code, 1) << "it diverges";
  EXPECT_TRUE(contains(explained.output, "for each of"));
}

}  // namespace
}  // namespace superstep
