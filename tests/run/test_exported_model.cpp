// Models written as ONNX files, run by ONNX Runtime (where it is found) and here, under the names that the
// workload gives its inputs and outputs: the same results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/export.h"
#include "superstep/target/target.h"
#include "tests/oracles/onnxruntime.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

constexpr std::int64_t served = 3;

struct ServedModel {
  const char* workload;
  std::vector<std::string> options;
};

void PrintTo(const ServedModel& model, std::ostream* out) {
  *out << model.workload;
  for (const std::string& option : model.options) *out << " " << option;
}

class ExportedModelOf : public testing::TestWithParam<ServedModel> {
 protected:
  void export_it() {
    ExportSettings settings;
    settings.model.workload = GetParam().workload;
    settings.model.model_options = GetParam().options;
    settings.out = folder_ / "model.onnx";
    export_onnx(settings);
  }

  // Leaves the inputs in files, and says what is to be done with them.
  void serve_here() {
    const workload::Workload& workload = workload::find_workload(GetParam().workload);
    const auto executable = target::find_target("cpu").compile(
        [&](std::int64_t batch) { return workload::build_model(workload, batch, GetParam().options); },
        {.batch = served, .threads = 1});
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < workload.inputs.size(); ++i) {
      Tensor tensor(ElementType::f32, executable->inputs()[i].type.shape);
      RandomStream random(i + 1);
      for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform());
      const std::string& name = workload.inputs[i].name;
      std::ofstream(folder_ / (name + ".bin"), std::ios::binary)
          .write(reinterpret_cast<const char*>(tensor.bytes()),
                 static_cast<std::streamsize>(tensor.byte_count()));
      commands_ << "load " << name << " " << name << ".bin\n";
      inputs.push_back(tensor);
    }
    commands_ << "run 1\n";
    for (std::size_t i = 0; i < workload.outputs.size(); ++i) {
      ours_.emplace_back(ElementType::f32, executable->outputs()[i].type.shape);
      commands_ << "save " << workload.outputs[i].name << " " << workload.outputs[i].name << ".out\n";
    }
    commands_ << "quit\n";
    executable->run(inputs, ours_);
  }

  // The answers of ONNX Runtime; they start with "absent" when it is not there.
  std::string serve_there() const {
    std::ofstream(folder_ / "commands.txt") << commands_.str();
    const std::string command = "cd '" + (folder_ / "").string() + "' && " + onnxruntime_peer() +
                                " model.onnx --batch " + std::to_string(served) +
                                " <commands.txt >answers.txt 2>&1";
    (void)!std::system(command.c_str());
    return read_text_file(folder_ / "answers.txt");
  }

  const ScratchFolder folder_;
  std::vector<Tensor> ours_;
  std::ostringstream commands_;
};

TEST_P(ExportedModelOf, GivesTheSameInOnnxRuntime) {
  export_it();
  serve_here();
  const std::string answers = serve_there();
  if (answers.starts_with("absent"))
    GTEST_SKIP() << "ONNX Runtime was not found: tools/setup-oracles installs it";
  ASSERT_TRUE(answers.starts_with("ready")) << answers;
  for (std::size_t i = 0; i < ours_.size(); ++i) {
    const std::string& name = workload::find_workload(GetParam().workload).outputs[i].name;
    const std::string theirs = read_text_file(folder_ / (name + ".out"));
    ASSERT_EQ(theirs.size(), ours_[i].byte_count()) << name << '\n' << answers;
    const auto* values = reinterpret_cast<const float*>(theirs.data());
    float largest = 0, smallest = 0, apart = 0;
    for (std::size_t k = 0; k < ours_[i].as<float>().size(); ++k) {
      const float own = ours_[i].as<float>()[k];
      largest = k == 0 ? own : std::max(largest, own);
      smallest = k == 0 ? own : std::min(smallest, own);
      apart = std::max(apart, std::abs(own - values[k]));
    }
    const float allowed = std::max(1e-6f, 2e-4f * (largest - smallest));
    EXPECT_LT(apart, allowed) << name;
    EXPECT_GT(largest - smallest, 100 * allowed) << name;  // so that a constant would be seen
  }
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, ExportedModelOf,
    testing::Values(ServedModel{"ptychonn-64", {"window=32"}}, ServedModel{"unet-64", {"size=32"}},
                    ServedModel{"autophasenn", {"size=32", "width=4"}},
                    ServedModel{"autophasenn", {"size=32", "width=4", "encoder=strided"}},
                    ServedModel{"autophasenn", {"width=2"}}),
    [](const auto& test) {
      std::string name = testing::PrintToString(test.param);
      std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
      return name;
    });

}  // namespace
}  // namespace superstep::run
