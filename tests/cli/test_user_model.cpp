// A model file in the place of a workload: served, trained on, exported; and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "superstep/base/random.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "tests/cli/program.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

constexpr std::int64_t samples = 96, features = 16;

Tensor random_rows(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Tensor tensor(ElementType::f32, {rows, columns});
  RandomStream random(seed);
  for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform(-1, 1));
  return tensor;
}

// y = x0 + 2 x1: what a perceptron learns in a few steps.
Tensor targets_of(const Tensor& x) {
  Tensor y(ElementType::f32, {x.shape()[0], 1});
  for (std::int64_t i = 0; i < y.element_count(); ++i)
    y.set(i, x.at(i * features) + 2 * x.at(i * features + 1));
  return y;
}

// mlp.onnx with fresh weights, x.npy, and pairs.h5 with x and its targets.
class UserModel : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run("onnx export mlp --out mlp.onnx").code, 0);
    x_ = random_rows(samples, features, 7);
    data::write_npy(folder_ / "x.npy", x_);
    data::Hdf5Writer pairs(folder_ / "pairs.h5");
    pairs.write("x", x_);
    pairs.write("target", targets_of(x_));
    pairs.close();
  }

  Outcome run(const std::string& arguments) { return run_program(folder_ / "", arguments); }

  void expect_refused(const std::string& arguments, int code, const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.output << outcome.errors;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << arguments << '\n' << outcome.errors;
  }

  Tensor outputs(const std::string& name) { return data::read_npz(folder_ / name).begin()->second; }

  const ScratchFolder folder_;
  Tensor x_;
};

TEST_F(UserModel, ServesTheSameWhateverTheBatch) {
  ASSERT_EQ(run("infer mlp.onnx --input x.npy --batch 4 --output four.npz").code, 0);
  ASSERT_EQ(run("infer mlp.onnx --input x.npy --batch 50 --output fifty.npz").code, 0);
  ASSERT_EQ(run("infer mlp.onnx --input x.npy --on reference --output reference.npz").code, 0);
  const Tensor four = outputs("four.npz"), fifty = outputs("fifty.npz"), reference = outputs("reference.npz");
  ASSERT_EQ(four.shape(), (Shape{samples, 1}));
  for (std::int64_t i = 0; i < samples; ++i) {
    EXPECT_NEAR(four.at(i), fifty.at(i), 1e-5) << i;
    EXPECT_NEAR(four.at(i), reference.at(i), 1e-5) << i;
  }
  // The samples differ, so that rows in a wrong order would be seen.
  EXPECT_GT(std::abs(four.at(0) - four.at(1)), 1e-4);
}

TEST_F(UserModel, ServesWithoutDataToMeasureSpeed) {
  const Outcome outcome = run("infer mlp.onnx --json result.json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_NE(content_of(folder_ / "result.json").find("latency_p50"), std::string::npos);
}

TEST_F(UserModel, LearnsAndLeavesAModelFile) {
  ASSERT_EQ(run("train mlp.onnx --loss mse --data pairs.h5 --optimizer adam --learning-rate 0.01 --batch 16 "
                "--epochs 60 --out tuned")
                .code,
            0);
  ASSERT_EQ(run("infer mlp.onnx --input x.npy --output before.npz").code, 0);
  ASSERT_EQ(run("infer tuned/model.onnx --input x.npy --output after.npz").code, 0);
  const Tensor before = outputs("before.npz"), after = outputs("after.npz"), truth = targets_of(x_);
  double error_before = 0, error_after = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    error_before += std::pow(before.at(i) - truth.at(i), 2);
    error_after += std::pow(after.at(i) - truth.at(i), 2);
  }
  EXPECT_LT(error_after, 0.05 * error_before);
}

TEST_F(UserModel, ResumesToTheSameWeights) {
  const std::string common = "train mlp.onnx --data pairs.h5 --batch 16 --epochs 6 ";
  ASSERT_EQ(run(common + "--out whole").code, 0);
  ASSERT_EQ(run(common + "--steps 13 --out parts").code, 0);
  std::string config = content_of(folder_ / "parts" / "config.json");
  const std::size_t at = config.find("\"steps\": 13");
  ASSERT_NE(at, std::string::npos) << config;
  std::ofstream(folder_ / "parts" / "config.json") << config.replace(at, 11, "\"steps\": 0");
  ASSERT_EQ(run("train mlp.onnx --resume parts").code, 0);
  EXPECT_EQ(content_of(folder_ / "whole" / "model.onnx"), content_of(folder_ / "parts" / "model.onnx"));
}

TEST_F(UserModel, RefusesDataThatDoNotFit) {
  data::write_npy(folder_ / "narrow.npy", random_rows(5, 3, 1));
  expect_refused("infer mlp.onnx --input narrow.npy", 1, "has shape [5,3]");
  data::write_npz(folder_ / "other.npz", {{"a", x_}, {"b", x_}});
  expect_refused("infer mlp.onnx --input other.npz", 1, "has no array 'x'");
  expect_refused("train mlp.onnx --data x.npy", 1, "has no array 'target'");
  expect_refused("train mlp.onnx", 2, "trained on data of your own");
  std::ofstream(folder_ / "words.txt") << "hello";
  expect_refused("infer mlp.onnx --input words.txt", 1, "words.txt: this is a text, not a file of arrays");
}

// All of the one file trains, all of the other validates: what the log says of it is what inference finds
// there, and a report finds the same samples again.
TEST_F(UserModel, ValidatesOnAFileOfItsOwn) {
  const Tensor other = random_rows(24, features, 8);
  Tensor truth = targets_of(other);
  for (std::int64_t i = 0; i < truth.element_count(); ++i)
    truth.set(i, truth.at(i) + 3);  // nothing learns that
  data::write_npz(folder_ / "other.npz", {{"x", other}, {"target", truth}});
  ASSERT_EQ(
      run("train mlp.onnx --data pairs.h5 --validation other.npz --batch 16 --epochs 30 --learning-rate 0.01 "
          "--optimizer adam --out run --json run.json")
          .code,
      0);
  const auto result = nlohmann::json::parse(content_of(folder_ / "run.json"));
  EXPECT_EQ(result.at("config").at("task").at("training"), samples);
  EXPECT_EQ(result.at("config").at("task").at("samples"), samples + 24);
  const double mae = result.at("metrics").at("mae").at("value");
  ASSERT_EQ(run("infer run/model.onnx --input other.npz --output y.npz").code, 0);
  const Tensor found = outputs("y.npz");
  double error = 0;
  for (std::int64_t i = 0; i < 24; ++i) error += std::abs(found.at(i) - truth.at(i)) / 24;
  EXPECT_NEAR(mae, error, 1e-4);
  EXPECT_GT(mae, 2);
  ASSERT_EQ(run("report --run run --samples 100 --out report").code, 0);
  EXPECT_NE(content_of(folder_ / "report/index.html").find("24"), std::string::npos);
  ASSERT_EQ(run("train mlp.onnx --resume run --epochs 31").code, 0);

  data::write_npz(folder_ / "narrow.npz", {{"x", random_rows(5, 3, 1)}, {"target", random_rows(5, 1, 1)}});
  expect_refused("train mlp.onnx --data pairs.h5 --validation narrow.npz --no-out", 1,
                 "narrow.npz: array 'x'");
  expect_refused("train mlp.onnx --data pairs.h5 --validation x.npy --no-out", 1, "x.npy: has no array");
  expect_refused("train mlp.onnx --data pairs.h5 --validation nowhere.h5 --no-out", 1, "nowhere.h5");
  expect_refused("train mlp.onnx --data pairs.h5 --validation other.npz --samples 5 --no-out", 2,
                 "--samples");
  expect_refused("train mlp --validation other.npz --no-out", 2, "come with their own");
  expect_refused("train mlp.onnx --validation other.npz --no-out", 2, "no samples to train on");
}

TEST_F(UserModel, RefusesWrongCalls) {
  expect_refused("infer absent.onnx", 1, "absent.onnx");
  std::ofstream(folder_ / "broken.onnx") << "this is no model";
  expect_refused("infer broken.onnx", 1, "broken.onnx");
  expect_refused("train mlp.onnx --data pairs.h5 --loss mze", 2, "mse");
  expect_refused("train mlp.onnx --data pairs.h5 --loss mse:z", 2, "no such output");
  expect_refused("infer mlp.onnx --shape y=4", 0, "");  // a symbol that is nowhere changes nothing
  expect_refused("infer mlp.onnx --shape x=4", 2, "has 2 extents, not 1");
  expect_refused("infer mlp.onnx --shape x=-1,-7", 2, "'-7' is not an extent");
}

TEST_F(UserModel, KeepsToTheBatchThatTheFileFixes) {
  ASSERT_EQ(run("onnx export mlp --batch 10 --out fixed.onnx").code, 0);
  ASSERT_EQ(run("infer fixed.onnx --input x.npy --output fixed.npz").code, 0);
  ASSERT_EQ(run("infer mlp.onnx --input x.npy --output open.npz").code, 0);
  const Tensor fixed = outputs("fixed.npz"), open = outputs("open.npz");
  ASSERT_EQ(fixed.shape(), open.shape());
  for (std::int64_t i = 0; i < samples; ++i) EXPECT_NEAR(fixed.at(i), open.at(i), 1e-5) << i;
  expect_refused("train fixed.onnx --data pairs.h5 --batch 8", 2, "fixes the batch at 10");
}

// HardSwish came with operator set 14: a file of it for 13 is refused by other programs.
TEST_F(UserModel, IsWrittenForTheOperatorSetThatItsOperatorsNeed) {
  ASSERT_EQ(run("onnx export mobilenet-v3-small --out m.onnx --quiet").code, 0);
  const Outcome outcome = run("onnx check m.onnx");
  EXPECT_NE(outcome.output.find("operator set 14"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("HardSwish"), std::string::npos) << outcome.output;
  expect_refused("onnx export mobilenet-v3-small --opset 13 --out m.onnx", 1, "needs operator set 14");
}

}  // namespace
}  // namespace superstep
