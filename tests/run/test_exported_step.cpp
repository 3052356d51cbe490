// A training step written as plain ONNX, run ten times by ONNX Runtime (where it is found) and here: the same
// parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/export.h"
#include "superstep/run/serve/infer.h"
#include "superstep/target/target.h"
#include "tests/oracles/onnxruntime.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

constexpr std::int64_t batch = 8;
constexpr int steps = 10;

struct Case {
  const char *workload, *optimizer;
};

ExportSettings settings_of(const Case& test, const std::filesystem::path& out) {
  ExportSettings settings;
  settings.model.workload = test.workload;
  settings.model.optimizer = test.optimizer;
  settings.out = out;
  settings.training_step = true;
  settings.batch = batch;
  return settings;
}

Tensor input_for(const target::Executable::Port& port, std::uint64_t seed, float learning_rate) {
  if (port.name == "learning_rate") return Tensor::scalar(learning_rate);
  Tensor tensor(port.type.element, port.type.shape);
  RandomStream random(seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, is_floating(tensor.type()) ? random.uniform() : static_cast<double>(random.below(2)));
  return tensor;
}

class StepInBoth : public testing::Test {
 protected:
  // Steps here; gives the loss of the last and leaves the inputs in files.
  double train_here(const Case& test, int count, float learning_rate = 1e-3f) {
    const Model model(settings_of(test, {}).model);
    executable_ = target::find_target("cpu").compile(model.training_step(), {.batch = batch});
    std::vector<Tensor> inputs, outputs;
    for (const auto& port : executable_->inputs()) {
      inputs.push_back(input_for(port, inputs.size() + 1, learning_rate));
      write(port.name + ".bin", inputs.back());
      commands_ << "load " << port.name << " " << port.name << ".bin\n";
    }
    for (const auto& port : executable_->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
    for (const std::string& name : executable_->state_names())
      before_[name] = executable_->state(name).clone();
    for (int i = 0; i < count; ++i) executable_->run(inputs, outputs);
    EXPECT_EQ(executable_->outputs()[0].name, "loss");
    return outputs[0].at(0);
  }

  void write(const std::string& name, const Tensor& tensor) {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(tensor.bytes()),
               static_cast<std::streamsize>(tensor.byte_count()));
  }

  // The same in ONNX Runtime, by the commands so far; false when it is not there.
  bool train_there() {
    commands_ << "quit\n";
    std::ofstream(folder_ / "commands.txt") << commands_.str();
    const std::string command = "cd '" + (folder_ / "").string() + "' && " + onnxruntime_peer() +
                                " step.onnx <commands.txt >answers.txt 2>&1";
    (void)!std::system(command.c_str());
    answers_ = read_text_file(folder_ / "answers.txt");
    return !answers_.starts_with("absent");
  }

  // What "save" has left.
  std::vector<float> saved(const std::string& file) const {
    const std::string bytes = read_text_file(folder_ / file);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }

  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : before_)
      if (name.find('/') == std::string::npos && is_floating(tensor.type())) names.push_back(name);
    return names;
  }

  const ScratchFolder folder_;
  std::unique_ptr<target::Executable> executable_;
  std::map<std::string, Tensor> before_;
  std::ostringstream commands_;
  std::string answers_;
};

class ExportedStep : public StepInBoth, public testing::WithParamInterface<Case> {};
class ExportedDropout : public StepInBoth {};

TEST_P(ExportedStep, GivesTheSameParametersInOnnxRuntime) {
  export_onnx(settings_of(GetParam(), folder_ / "step.onnx"));
  train_here(GetParam(), steps);
  commands_ << "run " << steps << "\n";
  int files = 0;
  for (const std::string& name : parameters())
    commands_ << "save " << name << ".next " << files++ << ".out\n";
  if (!train_there()) GTEST_SKIP() << "ONNX Runtime was not found: tools/setup-oracles installs it";
  ASSERT_TRUE(answers_.starts_with("ready")) << answers_;
  double apart = 0, size = 0, moved = 0;
  int number = 0;
  for (const std::string& name : parameters()) {
    const std::vector<float> theirs = saved(std::to_string(number++) + ".out");
    const Tensor ours = executable_->state(name);
    ASSERT_EQ(theirs.size() * sizeof(float), ours.byte_count()) << name << '\n' << answers_;
    for (std::int64_t i = 0; i < ours.element_count(); ++i) {
      apart += std::pow(ours.at(i) - static_cast<double>(theirs[static_cast<std::size_t>(i)]), 2);
      size += std::pow(ours.at(i), 2);
      moved += std::pow(ours.at(i) - before_.at(name).at(i), 2);
    }
  }
  EXPECT_LT(std::sqrt(apart), 1e-5 * std::sqrt(size));
  EXPECT_LT(std::sqrt(apart), 0.02 * std::sqrt(moved));  // so that standing still would be seen
  EXPECT_GT(moved, 0);
}

// Two steps that move no parameter lose as much as one here, but for the noise of their masks, which are not
// the same.
TEST_F(ExportedDropout, IsDrawnAnewByOnnxRuntime) {
  const Case test{"bert-small", "adam"};
  export_onnx(settings_of(test, folder_ / "step.onnx"));
  const double here = train_here(test, 1, 0);
  commands_ << "run 1\nsave loss 0.out\nrun 1\nsave loss 1.out\n";
  if (!train_there()) GTEST_SKIP() << "ONNX Runtime was not found: tools/setup-oracles installs it";
  ASSERT_TRUE(answers_.starts_with("ready")) << answers_;
  const std::vector<float> first = saved("0.out"), second = saved("1.out");
  ASSERT_EQ(first.size(), 1u) << answers_;
  ASSERT_EQ(second.size(), 1u) << answers_;
  EXPECT_NE(first[0], second[0]);
  for (const float there : {first[0], second[0]}) EXPECT_NEAR(there, here, 0.02 * here);
}

// It has no row for each sample: neither served nor trained here, and told so.
TEST(ExportedStepHere, IsRefusedWithWords) {
  const ScratchFolder folder;
  const std::filesystem::path step = folder / "step.onnx";
  for (const char* workload : {"braggnn", "mlp"}) {
    export_onnx(settings_of({workload, "adam"}, step));
    try {
      infer({.workload = step.string()});
      ADD_FAILURE() << workload;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      EXPECT_EQ(error.where(), "output 'loss'");
    }
    const Model model({.workload = step.string()});
    ThreadPool pool(1);
    try {
      model.open_task(
          {.data = {}, .samples = 0, .seed = 1, .model_options = {}, .labels_required = true, .pool = &pool});
      ADD_FAILURE() << workload;
    } catch (const Error& error) {
      EXPECT_NE(error.where().find("output 'loss'"), std::string::npos) << error.what();
    }
  }
}

// Adam turns a gradient that is zero but for rounding (a bias before a normalisation, say) into steps of full
// length either way: models that have such parameters go by momentum.
INSTANTIATE_TEST_SUITE_P(Models, ExportedStep,
                         testing::Values(Case{"mlp", "adam"}, Case{"braggnn", "sgd"}, Case{"unet-64", "sgd"}),
                         [](const auto& test) {
                           std::string name = test.param.workload;
                           std::erase_if(name, [](char c) { return c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace superstep::run
