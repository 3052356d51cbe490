// What is said of a model file is what becomes of it: over every file of ONNX's suite, PyTorch's exports and
// the zoo's own. And every file that is written is one that other programs take.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "superstep/base/file.h"
#include "superstep/onnx/writer.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/export.h"
#include "superstep/run/user/prospects.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/workload/workload.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;

const fs::path suite_folder = "/usr/include/onnx/backend/test/data";
const fs::path exported_models = fs::path(SUPERSTEP_SOURCE) / "tests/onnx/models";

std::vector<fs::path> model_files(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

template <class Attempt>
std::string reason_of(Attempt&& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// What the commands do with a file, one after the other.
struct Road {
  std::string name;
  std::string check;                   // of onnx::Model: why it cannot be imported
  std::string opened;                  // why it is no user's model
  Prospects prospects;                 // of one that is
  std::string trained, written, read;  // why not
};

void write_and_read(const UserModel& model, Road& road, const fs::path& out) {
  const auto build = [&](std::int64_t batch) { return model.build(batch); };
  const bool open = model.fixed_batch() == 0 && road.prospects.no_open_batch.empty();
  road.written =
      reason_of([&] { onnx::write_onnx(out, build, {.fixed_batch = open ? 0 : model.smallest_batch()}); });
  if (!road.written.empty()) return;
  road.read = reason_of([&] {
    const UserModel again({.file = out});
    again.build(again.fixed_batch() > 0 ? again.fixed_batch() : 3);
  });
}

Road walk(const fs::path& file, const fs::path& out, std::vector<std::string> shapes = {}) {
  Road road{.name = file.parent_path().filename().string(),
            .check = {},
            .opened = {},
            .prospects = {},
            .trained = {},
            .written = {},
            .read = {}};
  const onnx::Model model = onnx::Model::open(file);
  const onnx::Findings findings = model.check({.parameters_as_state = true});
  if (shapes.empty() && !findings.importable()) road.check = findings.unsupported.front().reason;
  std::optional<UserModel> user;
  road.opened =
      reason_of([&] { user.emplace(UserModelSettings{.file = file, .shapes = std::move(shapes)}); });
  if (!user) return road;
  road.prospects = prospects_of(*user);
  road.trained = reason_of([&] {
    user->require_trainable();
    const workload::Recipe& recipe = user->workload().training;
    transform::run_passes(user->build(user->fixed_batch() > 0 ? user->fixed_batch() : 2),
                          std::vector{transform::training_step_pass(recipe.loss, recipe.optimizer, {})});
  });
  write_and_read(*user, road, out);
  std::ofstream(out.string() + ".from") << file.string();
  return road;
}

void expect_one_answer(const Road& road) {
  SCOPED_TRACE(road.name);
  EXPECT_EQ(road.check.empty(), road.opened.empty()) << road.check << " / " << road.opened;
  if (!road.opened.empty()) return;
  EXPECT_EQ(road.prospects.no_training.empty(), road.trained.empty())
      << road.prospects.no_training << " / " << road.trained;
  EXPECT_EQ(road.prospects.no_file.empty(), road.written.empty())
      << road.prospects.no_file << " / " << road.written;
  EXPECT_EQ(road.read, "") << "what was written is read";
}

// Says which files ONNX's own checker, with shape inference, or ONNX Runtime refuse, where they take the file
// that it was made of (NAME.from has its path).
constexpr const char* validity = R"(
import os, sys
import onnx, onnxruntime
onnxruntime.set_default_logger_severity(4)

def refusals(path):
    try:
        onnx.checker.check_model(onnx.load(path), full_check=True)
    except Exception as error:
        yield 'checker: ' + str(error).splitlines()[0][:300]
    try:
        onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])
    except Exception as error:
        if 'NOT_IMPLEMENTED' not in str(error):  # a kernel that the program lacks is no fault of the file
            yield 'runtime: ' + str(error).splitlines()[0][:300]

files = sorted(name for name in os.listdir('.') if name.endswith('.onnx'))
bad = 0
for name in files:
    said = list(refusals(name))
    if said and os.path.exists(name + '.from') and list(refusals(open(name + '.from').read())):
        continue
    for line in said:
        print(name, line); bad += 1
sys.exit(bad > 0 or not files)
)";

void expect_valid(const ScratchFolder& folder) {
  const std::string python = python_with("onnx, onnxruntime");
  if (python.empty())
    GTEST_SKIP() << "no Python with onnx, onnxruntime was found: tools/setup-oracles installs them";
  EXPECT_TRUE(run_python(python, folder / "", validity));
}

TEST(OneRoad, OfEveryFileOfTheSuite) {
  std::vector<fs::path> files = model_files(suite_folder);
  if (files.empty()) GTEST_SKIP() << "libonnx-testdata is not installed (tools/setup installs it)";
  const ScratchFolder folder;
  int trained = 0, written = 0;
  for (const fs::path& file : files) {
    const std::string name = file.parent_path().filename().string() + ".onnx";
    const Road road = walk(file, folder / name);
    expect_one_answer(road);
    trained += road.opened.empty() && road.trained.empty();
    written += road.opened.empty() && road.written.empty();
  }
  EXPECT_GT(trained, 0);
  EXPECT_GT(written, 800);
  expect_valid(folder);
}

TEST(OneRoad, OfModelsFromPyTorch) {
  const ScratchFolder folder;
  for (const fs::path& file : model_files(exported_models)) {
    const std::string name = file.parent_path().filename().string();
    const std::vector<std::string> shapes =
        name == "unet" ? std::vector<std::string>{"height=16", "width=16"} : std::vector<std::string>();
    const Road road = walk(file, folder / (name + ".onnx"), shapes);
    expect_one_answer(road);
    EXPECT_EQ(road.trained, "") << name;
    EXPECT_EQ(road.prospects.no_open_batch, "") << name;
  }
  expect_valid(folder);
}

// The zoo's own files, read back: what was trained there is trained here, and nothing else.
class ExportedZoo : public testing::TestWithParam<std::string> {};

void expect_same_trained(const UserModel& model, const graph::Graph& workload) {
  std::set<std::string> there, here;
  for (const graph::ValueId id : transform::trainable_states(workload)) there.insert(workload.value(id).name);
  for (const onnx::Initializer& each : model.initializers()) {
    const bool is_trained = each.kind == onnx::Initializer::Kind::trained;
    if (is_trained) here.insert(each.name);
    if (each.kind != onnx::Initializer::Kind::statistics) {
      EXPECT_EQ(is_trained, there.contains(each.name)) << each.name;
    }
  }
  EXPECT_FALSE(here.empty());
}

TEST_P(ExportedZoo, IsReadBackAsItWas) {
  const ScratchFolder folder;
  ExportSettings settings;
  settings.model.workload = GetParam();
  settings.out = folder / "model.onnx";
  export_onnx(settings);
  const Road road = walk(settings.out, folder / "again.onnx");
  expect_one_answer(road);
  EXPECT_EQ(road.trained, "");
  EXPECT_EQ(road.prospects.no_open_batch, "");
  expect_same_trained(UserModel({.file = settings.out}),
                      workload::build_model(workload::find_workload(GetParam()), 1, {}, 1));
  expect_valid(folder);
}

std::vector<std::string> names_of_the_zoo() {
  std::vector<std::string> names;
  for (const workload::Workload& each : workload::workloads()) names.push_back(each.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Workloads, ExportedZoo, testing::ValuesIn(names_of_the_zoo()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace superstep::run
