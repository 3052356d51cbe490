// Models of the zoo written as ONNX, run by ONNX Runtime (where it is found) and here: the same results,
// under the names that the zoo gives.
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

constexpr std::int64_t batch = 3;

struct Exported {
  const char* workload;
  std::vector<std::string> options;
  double tolerance = 2e-5;  // of the largest element
};
void PrintTo(const Exported& model, std::ostream* out) { *out << model.workload; }

class ExportedModel : public testing::TestWithParam<Exported> {
 protected:
  void run_here() {
    executable_ = target::find_target("cpu").compile(Model(settings().model).inference(), {.batch = batch});
    std::vector<Tensor> inputs;
    for (const auto& port : executable_->inputs()) {
      Tensor& input = inputs.emplace_back(port.type.element, port.type.shape);
      RandomStream random(inputs.size());
      for (std::int64_t i = 0; i < input.element_count(); ++i)
        input.set(i, is_floating(input.type()) ? random.uniform() : static_cast<double>(random.below(2)));
      std::ofstream(folder_ / (port.name + ".bin"), std::ios::binary)
          .write(reinterpret_cast<const char*>(input.bytes()),
                 static_cast<std::streamsize>(input.byte_count()));
      commands_ << "load " << port.name << " " << port.name << ".bin\n";
    }
    for (const auto& port : executable_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
    executable_->run(inputs, outputs_);
  }

  std::string answers_of_onnxruntime() {
    commands_ << "run 1\n";
    for (const auto& port : executable_->outputs())
      commands_ << "save " << port.name << " " << port.name << ".out\n";
    std::ofstream(folder_ / "commands.txt") << commands_.str() << "quit\n";
    const std::string command = "cd '" + (folder_ / "").string() + "' && " + onnxruntime_peer() +
                                " model.onnx --batch " + std::to_string(batch) +
                                " <commands.txt >answers.txt 2>&1";
    (void)!std::system(command.c_str());
    return read_text_file(folder_ / "answers.txt");
  }

  ExportSettings settings() const {
    ExportSettings settings;
    settings.model.workload = GetParam().workload;
    settings.model.model_options = GetParam().options;
    settings.out = folder_ / "model.onnx";
    return settings;
  }

  const ScratchFolder folder_;
  std::unique_ptr<target::Executable> executable_;
  std::vector<Tensor> outputs_;
  std::ostringstream commands_;
};

TEST_P(ExportedModel, GivesTheSameResultsInOnnxRuntime) {
  export_onnx(settings());
  run_here();
  const std::string answers = answers_of_onnxruntime();
  if (answers.starts_with("absent"))
    GTEST_SKIP() << "ONNX Runtime was not found: tools/setup-oracles installs it";
  ASSERT_TRUE(answers.starts_with("ready")) << answers;
  const auto& workload = workload::find_workload(GetParam().workload);
  ASSERT_EQ(outputs_.size(), workload.outputs.size());
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    SCOPED_TRACE(workload.outputs[k].name);
    const std::string theirs = read_text_file(folder_ / (workload.outputs[k].name + ".out"));
    ASSERT_EQ(theirs.size(), outputs_[k].byte_count()) << answers;
    const auto ours = outputs_[k].as<float>();
    const auto* values = reinterpret_cast<const float*>(theirs.data());
    double largest = 0, apart = 0, spread = 0;  // a constant would agree with anything made of it
    for (std::size_t i = 0; i < ours.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      spread = std::max(spread, std::abs(static_cast<double>(values[i]) - static_cast<double>(values[0])));
      apart = std::max(apart, std::abs(static_cast<double>(ours[i]) - static_cast<double>(values[i])));
    }
    EXPECT_LT(apart, GetParam().tolerance * largest);
    EXPECT_GT(spread, 10 * apart);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ExportedModel,
    testing::Values(Exported{"mlp", {}}, Exported{"unet-64", {"size=32", "width=4"}},
                    Exported{"ptychonn-64", {"window=32"}}, Exported{"autophasenn", {"size=32", "width=4"}},
                    Exported{"autophasenn", {"size=32", "width=4", "encoder=strided"}},
                    Exported{"cookienetae", {"width=4"}},
                    Exported{"pca-compress-128", {"side=32", "components=8"}},
                    Exported{"sobel-800", {"side=40"}}, Exported{"image-autoencoder", {"width=4", "bits=0"}},
                    Exported{"polymer-gcn", {"width=16"}}, Exported{"polymer-mpnn", {"width=16"}},
                    Exported{"gin", {"width=16"}},
                    Exported{"yieldgnn", {"atoms=24", "edges=40", "largest=20", "width=16"}},
                    // Forces are sums of slopes along all edges of an atom, which cancel each other.
                    Exported{"schnet", {"atoms=24", "edges=80", "width=16"}, 1e-4},
                    Exported{"deepmd", {"types=Cu,Ni", "atoms=5,4", "sel=6,7"}, 1e-4},
                    Exported{"gravity-wave-drag", {"levels=21", "width=24"}},
                    Exported{"conductivity", {"side=32", "width=4"}},
                    Exported{"conductivity", {"side=32", "width=4", "size=heavy"}}),
    [](const auto& test) {
      std::string name = test.param.workload;
      if (test.param.options.size() > 2) name += test.param.options.back();
      std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
      return name;
    });

}  // namespace
}  // namespace superstep::run
