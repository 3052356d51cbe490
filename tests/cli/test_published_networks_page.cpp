// The scripts and the commands of docs/published-networks.md, on smaller forms of both networks; ONNX Runtime
// says the same.
#include <gtest/gtest.h>

#include <regex>

#include "tests/cli/page_commands.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

constexpr const char* small_conformer = "--width 32 --layers 2 --frames 64 --vocabulary 40";
constexpr const char* small_yolo = "--size 64 --width 0.125 --classes 5";

class PublishedNetworks : public ::testing::Test {
 protected:
  void SetUp() override {
    python_ = python_with("numpy, onnx.helper");
    if (python_.empty()) GTEST_SKIP() << "no Python with numpy, onnx: tools/setup-oracles installs them";
  }

  // What the script says of the file that it wrote.
  std::string write(const std::string& script, const std::string& file, const std::string& options) {
    const std::string said = (folder_ / "said.txt").string();
    const std::string command = python_ + " -B " SUPERSTEP_SOURCE "/examples/networks/" + script + " '" +
                                (folder_ / file).string() + "' " + options + " > '" + said + "' 2>&1";
    code_ = std::system(command.c_str());
    return content_of(said);
  }

  ScratchFolder folder_;
  std::string python_;
  int code_ = 0;
};

TEST_F(PublishedNetworks, TheCommandsOfThePageWork) {
  write("conformer.py", "conformer.onnx", small_conformer);
  ASSERT_EQ(code_, 0);
  write("yolov4.py", "yolov4.onnx", small_yolo);
  ASSERT_EQ(code_, 0);
  const auto commands = commands_of(content_of(SUPERSTEP_SOURCE "/docs/published-networks.md"));
  ASSERT_EQ(commands.size(), 7U);
  for (std::string command : commands) {
    command = std::regex_replace(command, std::regex("FOLDER/"), "");
    const Outcome outcome = run_program(folder_ / "", command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.output << outcome.errors;
    if (!command.starts_with("onnx check")) continue;
    EXPECT_TRUE(contains(outcome.output, "infer: any batch")) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "train: yes")) << outcome.output;
  }
}

// Of YOLOv4 as many numbers as the published file, statistics included; the page names what is trained.
TEST_F(PublishedNetworks, HaveTheNumbersThatThePageNames) {
  EXPECT_TRUE(contains(write("yolov4.py", "yolov4.onnx", "--size 32"), "64,429,405 parameters"));
  const Outcome yolo = run_program(folder_ / "", "onnx check yolov4.onnx");
  EXPECT_TRUE(contains(yolo.output, "64,363,101 values; kept up to date: 214 statistics")) << yolo.output;
  write("conformer.py", "conformer.onnx", "");
  const Outcome conformer = run_program(folder_ / "", "onnx check conformer.onnx");
  EXPECT_TRUE(contains(conformer.output, "8,838,592 values")) << conformer.output;
  EXPECT_TRUE(contains(conformer.output, "not: half, distances, scale")) << conformer.output;
}

TEST_F(PublishedNetworks, SayWhatOnnxRuntimeSays) {
  const std::string python = python_with("numpy, onnx.helper, onnxruntime");
  if (python.empty()) GTEST_SKIP() << "no Python with onnxruntime: tools/setup-oracles installs it";
  write("conformer.py", "conformer.onnx", small_conformer);
  write("yolov4.py", "yolov4.onnx", small_yolo);
  ASSERT_TRUE(run_python(python, folder_ / "", R"(
import numpy as np
random = np.random.default_rng(3)
np.savez("conformer.npz", features=random.normal(size=(3, 64, 80)).astype(np.float32))
np.savez("yolov4.npz", image=random.random((2, 3, 64, 64), dtype=np.float32))
)"));
  for (const char* name : {"conformer", "yolov4"}) {
    const std::string own(name);
    const Outcome outcome = run_program(
        folder_ / "", "infer " + own + ".onnx --input " + own + ".npz --output " + own + "-said.npz");
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_TRUE(run_python(python, folder_ / "", "name = '" + own + R"('
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(name + ".onnx")
given, said = np.load(name + ".npz"), np.load(name + "-said.npz")
for output, truth in zip(session.get_outputs(), session.run(None, dict(given))):
    ours = said[output.name]
    assert ours.shape == truth.shape, (ours.shape, truth.shape)
    error = np.abs(ours - truth).max() / np.abs(truth).max()
    assert error < 3e-6, (output.name, error)
    assert np.abs(ours[0] - ours[1]).max() > 1e-3  # the control: samples differ
)")) << name;
  }
}

TEST_F(PublishedNetworks, RefuseSizesThatTheyCannotHave) {
  EXPECT_TRUE(contains(write("yolov4.py", "yolov4.onnx", "--size 100"), "take a multiple of 32"));
  EXPECT_NE(code_, 0);
  EXPECT_TRUE(contains(write("conformer.py", "conformer.onnx", "--width 30"), "a width that 8 divides"));
  EXPECT_NE(code_, 0);
}

}  // namespace
}  // namespace superstep
