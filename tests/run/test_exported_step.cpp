// A training step written as plain ONNX, run ten times by ONNX Runtime (where it is found) and here: the same
// parameters.
#include <gtest/gtest.h>

#include <cmath>
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

Tensor input_for(const target::Executable::Port& port, std::uint64_t seed) {
  if (port.name == "learning_rate") return Tensor::scalar(1e-3f);
  Tensor tensor(port.type.element, port.type.shape);
  RandomStream random(seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, is_floating(tensor.type()) ? random.uniform() : static_cast<double>(random.below(2)));
  return tensor;
}

class ExportedStep : public testing::TestWithParam<Case> {
 protected:
  // Ten steps here; leaves the inputs in files.
  void train_here() {
    const Model model(settings_of(GetParam(), {}).model);
    executable_ = target::find_target("cpu").compile(model.training_step(), {.batch = batch});
    std::vector<Tensor> inputs, outputs;
    for (const auto& port : executable_->inputs()) {
      inputs.push_back(input_for(port, inputs.size() + 1));
      write(port.name + ".bin", inputs.back());
      commands_ << "load " << port.name << " " << port.name << ".bin\n";
    }
    for (const auto& port : executable_->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
    for (const std::string& name : executable_->state_names())
      before_[name] = executable_->state(name).clone();
    for (int i = 0; i < steps; ++i) executable_->run(inputs, outputs);
  }

  void write(const std::string& name, const Tensor& tensor) {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(tensor.bytes()),
               static_cast<std::streamsize>(tensor.byte_count()));
  }

  // The same in ONNX Runtime; false when it is not there.
  bool train_there() {
    commands_ << "run " << steps << "\n";
    int number = 0;
    for (const std::string& name : parameters())
      commands_ << "save " << name << ".next " << number++ << ".out\n";
    commands_ << "quit\n";
    std::ofstream(folder_ / "commands.txt") << commands_.str();
    const std::string command = "cd '" + (folder_ / "").string() + "' && " + onnxruntime_peer() +
                                " step.onnx <commands.txt >answers.txt 2>&1";
    (void)!std::system(command.c_str());
    answers_ = read_text_file(folder_ / "answers.txt");
    return !answers_.starts_with("absent");
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

TEST_P(ExportedStep, GivesTheSameParametersInOnnxRuntime) {
  export_onnx(settings_of(GetParam(), folder_ / "step.onnx"));
  train_here();
  if (!train_there()) GTEST_SKIP() << "ONNX Runtime was not found: tools/setup-oracles installs it";
  ASSERT_TRUE(answers_.starts_with("ready")) << answers_;
  double apart = 0, size = 0, moved = 0;
  int number = 0;
  for (const std::string& name : parameters()) {
    const std::string theirs = read_text_file(folder_ / (std::to_string(number++) + ".out"));
    const Tensor ours = executable_->state(name);
    ASSERT_EQ(theirs.size(), ours.byte_count()) << name << '\n' << answers_;
    const auto* values = reinterpret_cast<const float*>(theirs.data());
    for (std::int64_t i = 0; i < ours.element_count(); ++i) {
      apart += std::pow(ours.at(i) - static_cast<double>(values[i]), 2);
      size += std::pow(ours.at(i), 2);
      moved += std::pow(ours.at(i) - before_.at(name).at(i), 2);
    }
  }
  EXPECT_LT(std::sqrt(apart), 1e-5 * std::sqrt(size));
  EXPECT_LT(std::sqrt(apart), 0.02 * std::sqrt(moved));  // so that standing still would be seen
  EXPECT_GT(moved, 0);
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
