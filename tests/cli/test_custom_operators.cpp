// A model file with an operator of a user's library: checked, trained, served, and refused without it.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "superstep/base/random.h"
#include "superstep/file/npz.h"
#include "tests/cli/page_commands.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/onnx/proto_builder.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace on = onnx::testing;

// y = Wiggle(x w), frequency 2.
std::string wiggling_model(const std::vector<onnx::Message>& more = {}) {
  std::vector<onnx::Message> attributes{on::attribute("frequency", 2.0F)};
  attributes.insert(attributes.end(), more.begin(), more.end());
  on::GraphParts parts;
  parts.inputs = {on::port("x", on::f32, {"N", "2"})};
  parts.outputs = {on::port("y", on::f32, {"N", "1"})};
  parts.nodes = {on::node("MatMul", {"x", "w"}, {"z"}),
                 on::node("Wiggle", {"z"}, {"y"}, attributes, "com.example")};
  parts.initializers = {on::floats("w", {2, 1}, {0.5F, -1})};
  return on::model_bytes(on::graph(parts), 17, {}, {"com.example"});
}

class CustomOperators : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(SUPERSTEP_WIGGLE, folder_ / "wiggle.so");
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << wiggling_model();
    Tensor x(ElementType::f32, {40, 2}), y(ElementType::f32, {40, 1});
    RandomStream random(1);
    for (std::int64_t i = 0; i < 80; ++i) x.set(i, random.uniform(-1, 1));
    for (std::int64_t i = 0; i < 40; ++i) y.set(i, wiggle(0.7 * x.at(2 * i) + 0.2 * x.at(2 * i + 1)));
    data::write_npz(folder_ / "pairs.npz", {{"x", x}, {"target", y}});
  }
  static double wiggle(double z) { return z + std::pow(std::sin(2 * z), 2) / 2; }
  Outcome program(const std::string& arguments) { return run_program(folder_ / "", arguments); }

  const ScratchFolder folder_;
};

TEST_F(CustomOperators, TheCommandsOfTheirPageWork) {
  const auto commands = commands_of(content_of(SUPERSTEP_SOURCE "/docs/custom-operators.md"));
  EXPECT_GE(commands.size(), 3U);
  for (const std::string& command : commands) {
    const Outcome outcome = program(command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.output << outcome.errors;
  }
  // What was trained is a file with the same operator.
  EXPECT_EQ(program("infer run/model.onnx --operators wiggle.so --input pairs.npz --output again.npz").code,
            0);
  const Tensor y = data::read_npz(folder_ / "y.npz").begin()->second,
               again = data::read_npz(folder_ / "again.npz").begin()->second;
  for (std::int64_t i = 0; i < 40; ++i) EXPECT_NEAR(y.at(i), again.at(i), 1e-6);
}

TEST_F(CustomOperators, TrainThroughTheirGradient) {
  const Outcome trained = program(
      "train model.onnx --operators wiggle.so --data pairs.npz --epochs 200 --learning-rate 0.05 --optimizer "
      "adam "
      "--batch 8 --out run --quiet");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  ASSERT_EQ(program("infer run/model.onnx --operators wiggle.so --input pairs.npz --output y.npz").code, 0);
  const Tensor y = data::read_npz(folder_ / "y.npz").begin()->second,
               target = data::read_npz(folder_ / "pairs.npz").at("target");
  for (std::int64_t i = 0; i < 40; ++i) EXPECT_NEAR(y.at(i), target.at(i), 0.02);
}

TEST_F(CustomOperators, WhatIsMissingIsNamed) {
  const auto refused = [&](const std::string& arguments, int code, std::initializer_list<const char*> why) {
    const Outcome outcome = program(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.output << outcome.errors;
    for (const char* words : why)
      EXPECT_TRUE(contains(outcome.errors + outcome.output, words))
          << words << " is not in " << outcome.errors << outcome.output;
  };
  refused("infer model.onnx --input pairs.npz", 1, {"com.example", "--operators"});
  refused("infer model.onnx --operators nowhere.so --input pairs.npz", 1, {"nowhere.so"});
  refused("predict model.onnx --on gc200 --operators wiggle.so", 1, {"com.example.Wiggle"});
  refused("infer model.onnx --on gc200 --operators wiggle.so --input pairs.npz", 1,
          {"com.example.Wiggle", "no cycles are known"});
  std::ofstream(folder_ / "other.onnx", std::ios::binary) << wiggling_model({on::attribute("speed", 1.0F)});
  refused("infer other.onnx --operators wiggle.so --input pairs.npz", 1,
          {"attribute 'speed'", "com.example.Wiggle"});
}

}  // namespace
}  // namespace superstep
