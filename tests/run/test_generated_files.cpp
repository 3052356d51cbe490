// Generators, conventional methods and workloads meet by name: each has the others, and what `superstep
// generate NAME` writes, as it stands, fits the model NAME as it stands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/baseline/baseline.h"
#include "superstep/physics/generator.h"
#include "superstep/run/task.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

// That are written: three patients of the slices; of a series more than a window takes.
std::int64_t samples_of(const std::string& workload) { return workload == "mcmc" ? 700 : 60; }
const std::vector<std::int64_t> looked_at = {0, 1};

std::vector<std::string> trained_workloads() {
  std::vector<std::string> names;
  for (const workload::Workload& workload : workload::workloads())
    if (!workload.metrics.empty()) names.push_back(workload.name);
  return names;
}

class GeneratedFile : public ::testing::TestWithParam<std::string> {
 protected:
  const workload::Workload& workload() const { return workload::find_workload(GetParam()); }

  std::filesystem::path write(const std::vector<std::string>& settings = {}) {
    const data::GeneratorEntry& entry = data::find_generator(GetParam());
    std::filesystem::path path = folder_ / "data.h5";  // some write folders where the name has no ending
    entry.make(Options(entry.options, settings))
        ->write({.path = path,
                 .seed = 3,
                 .samples = static_cast<std::uint64_t>(samples_of(GetParam())),
                 .pool = &pool_});
    return path;
  }

  std::unique_ptr<Task> open(const std::filesystem::path& path) {
    return open_task(workload(), {.data = path, .seed = 1, .pool = &pool_});
  }

  // What the workload says of its ports, for the samples that are looked at.
  static void add_ports(std::vector<Tensor>& tensors, std::span<const workload::PortSpec> ports) {
    for (const workload::PortSpec& port : ports) {
      std::vector<std::int64_t> extents{static_cast<std::int64_t>(looked_at.size())};
      extents.insert(extents.end(), port.shape.begin(), port.shape.end());
      tensors.emplace_back(port.element, Shape(extents));
    }
  }

  ThreadPool pool_{2};
  ScratchFolder folder_;
};

TEST_P(GeneratedFile, FitsTheModelAsItStands) {
  const auto task = open(write());
  EXPECT_TRUE(task->has_labels());
  EXPECT_GT(task->training_count(), 0);
  EXPECT_LT(task->training_count(), task->size());
  std::vector<Tensor> inputs;
  add_ports(inputs, workload().inputs);
  task->fill_inputs(looked_at, inputs, pool_);
  std::vector<Tensor> batch;
  add_ports(batch, workload().inputs);
  add_ports(batch, workload().targets);
  task->fill(looked_at, 0, false, batch);
  for (const Tensor& tensor : inputs)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) ASSERT_TRUE(std::isfinite(tensor.at(i)));
}

// Rows that are read when they are wanted are those of the file in memory: in batches, and where predictions
// are judged. Workloads that hold their data however little memory they may take are the same twice.
TEST_P(GeneratedFile, IsTheSameReadAsItGoes) {
  const auto path = write();
  const auto held = open(path);
  const auto read = open_task(workload(), {.data = path, .seed = 1, .pool = &pool_, .data_memory = 1});
  ASSERT_EQ(read->size(), held->size());
  ASSERT_EQ(read->training_count(), held->training_count());
  EXPECT_EQ(read->has_labels(), held->has_labels());
  const std::vector<std::int64_t> indices{read->size() - 1, 0, read->training_count() / 2, 1};
  for (const bool augment : {false, true}) {
    std::vector<Tensor> batches[2];
    for (std::vector<Tensor>& batch : batches)
      for (const auto& ports : {workload().inputs, workload().targets})
        for (const workload::PortSpec& port : ports) {
          std::vector<std::int64_t> extents{static_cast<std::int64_t>(indices.size())};
          extents.insert(extents.end(), port.shape.begin(), port.shape.end());
          batch.emplace_back(port.element, Shape(extents));
        }
    held->fill(indices, 3, augment, batches[0]);
    read->fill(indices, 3, augment, batches[1]);
    for (std::size_t i = 0; i < batches[0].size(); ++i)
      EXPECT_EQ(std::memcmp(batches[0][i].bytes(), batches[1][i].bytes(), batches[0][i].byte_count()), 0)
          << i;
  }
  std::vector<Tensor> outputs;
  for (const workload::PortSpec& port : workload().outputs) {
    std::vector<std::int64_t> extents{static_cast<std::int64_t>(indices.size())};
    extents.insert(extents.end(), port.shape.begin(), port.shape.end());
    outputs.push_back(Tensor::full(port.element, Shape(extents), 0.25));
  }
  const auto found = held->quality(indices, outputs), again = read->quality(indices, outputs);
  ASSERT_EQ(found.size(), again.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i].value == again[i].value ||
                (std::isnan(found[i].value) && std::isnan(again[i].value)))
        << found[i].name;
}

INSTANTIATE_TEST_SUITE_P(Workloads, GeneratedFile, ::testing::ValuesIn(trained_workloads()));

// The control: a file of another size is refused, or its samples are.
TEST(GeneratedFiles, OfAnotherSizeDoNotFit) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const data::GeneratorEntry& entry = data::find_generator("unet-256");
  entry.make(Options(entry.options, std::vector<std::string>{"size=64"}))
      ->write({.path = folder / "small.h5", .seed = 3, .samples = 20, .pool = &pool});
  const auto fill = [&] {
    const auto task = open_task(workload::find_workload("unet-256"),
                                {.data = folder / "small.h5", .seed = 1, .pool = &pool});
    std::vector<Tensor> inputs{Tensor(ElementType::f32, {2, 3, 256, 256})};
    task->fill_inputs(looked_at, inputs, pool);
  };
  EXPECT_THROW(fill(), Error);
}

TEST(GeneratedFiles, EveryGeneratorHasAMethodAndEveryMethodAGenerator) {
  for (const data::GeneratorEntry& entry : data::generators()) {
    EXPECT_EQ(baseline::find_baseline(entry.name).name, entry.name);
    EXPECT_EQ(entry.make(Options(entry.options, {}))->name(), entry.name);
  }
  for (const baseline::Entry& entry : baseline::baselines())
    EXPECT_EQ(data::find_generator(entry.name).name, entry.name);
}

}  // namespace
}  // namespace superstep::run
