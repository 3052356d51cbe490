// superstep onnx check and superstep onnx test, as a user calls them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;
const fs::path models = fs::path(SUPERSTEP_SOURCE) / "tests/onnx/models";

TEST(OnnxCheck, DescribesAModelThatCanBeImported) {
  const ScratchFolder folder;
  const fs::path file = models / "resnet/model.onnx";
  const Outcome outcome =
      run_program(folder / "", "onnx check '" + file.string() + "' --symbol batch=4 --json out.json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "operator set 13, written by pytorch"));
  EXPECT_TRUE(contains(outcome.output, "f32[batch,3,32,32]"));
  EXPECT_TRUE(contains(outcome.output, "can be imported"));
  const auto json = nlohmann::json::parse(read_text_file(folder / "out.json"));
  EXPECT_EQ(json["command"], "onnx check");
  EXPECT_EQ(json["metrics"]["importable"]["value"], 1);
  EXPECT_GT(json["config"]["operators"]["Conv"], 5);
  EXPECT_TRUE(json["config"]["unsupported"].empty());
}

TEST(OnnxCheck, EndsWithOneAndSaysWhy) {
  const ScratchFolder folder;
  // The smallest extents that the file leaves open are too small for three poolings.
  const Outcome outcome =
      run_program(folder / "", "onnx check '" + (models / "unet/model.onnx").string() + "'");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.output, "extents taken as 1: batch, height, width"));
  EXPECT_TRUE(contains(outcome.output, "(MaxPool, operator set 15)"));
  const Outcome damaged =
      run_program(folder / "", "onnx check '" + (models / "../export_models.py").string() + "'");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_TRUE(contains(damaged.errors, "not an ONNX file"));
}

TEST(OnnxCheck, RefusesWrongCalls) {
  const ScratchFolder folder;
  const std::string file = "'" + (models / "resnet/model.onnx").string() + "'";
  for (const std::string option :
       {"--shape image", "--shape image=a", "--shape picture=1,3,32,32", "--symbol =4"})
    EXPECT_EQ(run_program(folder / "", "onnx check " + file + " " + option).code, 2) << option;
}

TEST(OnnxTest, RunsCasesAndTellsFailures) {
  const ScratchFolder folder;
  const std::string cases = "onnx test '" + models.string() + "' --filter mlp";
  const Outcome passed = run_program(folder / "", cases + " --on all --verbose");
  EXPECT_EQ(passed.code, 0) << passed.errors;
  EXPECT_TRUE(contains(passed.output, "passed  cpu       mlp"));
  const Outcome failed = run_program(folder / "", cases + " --relative 0 --absolute 0");
  EXPECT_EQ(failed.code, 1);
  EXPECT_TRUE(contains(failed.output, "elements are wrong"));
  EXPECT_EQ(run_program(folder / "", cases + " --on nowhere").code, 2);
}

}  // namespace
}  // namespace superstep
