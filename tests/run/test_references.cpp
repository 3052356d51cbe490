// Every workload with data of its own: one name for model, generator and conventional method, and references
// on the same samples that mean something.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "superstep/baseline/baseline.h"
#include "superstep/baseline/polynomial.h"
#include "superstep/baseline/series/oscillation_fit.h"
#include "superstep/physics/generator.h"
#include "superstep/run/task.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

// Forms that take a moment: options of the model, and how many samples.
struct Small {
  std::vector<std::string> options;
  std::int64_t samples;
};

const std::map<std::string, Small> small_forms = {
    {"braggnn", {{}, 500}},
    {"ptychonn-64", {{"window=32"}, 1280}},
    {"ptychonn-128", {{"window=32"}, 640}},
    {"cookienetae", {{}, 60}},
    {"pca-compress-128", {{"side=32", "components=16"}, 200}},
    {"sobel-800", {{"side=100"}, 10}},
    {"image-autoencoder", {{}, 200}},
    {"conductivity", {{"side=64"}, 100}},
    {"wallmodel", {{}, 500}},
    {"gravity-wave-drag", {{"levels=21"}, 1500}},
    {"autophasenn", {{"size=32"}, 20}},
    {"uno", {{}, 12000}},
    {"polymer-gcn", {{}, 2500}},
    {"polymer-mpnn", {{}, 2500}},
    {"gin", {{}, 6000}},
    {"schnet", {{"most=8"}, 300}},
    {"deepmd", {{}, 64}},
    {"yieldgnn", {{}, 1500}},
    {"unet-256", {{"size=64"}, 100}},
    {"unet-64", {{}, 100}},
    {"cifar10-cnn", {{}, 600}},
    {"resnet50", {{"size=32", "classes=10"}, 600}},
    {"efficientnet-b0", {{"size=32", "classes=10"}, 600}},
    {"efficientnet-b4", {{"size=32", "classes=10"}, 600}},
    {"mobilenet-v3-small", {{"size=32", "classes=10"}, 600}},
    {"mobilenet-v3-large", {{"size=32", "classes=10"}, 600}},
    {"vit-base", {{"size=32", "classes=10", "layers=1", "width=48"}, 600}},
    {"resnext101", {{"size=32", "classes=10", "width=8", "groups=4", "group-width=2"}, 600}},
    {"bert-small", {{"vocabulary=128"}, 800}},
    {"distilbert", {{"vocabulary=128", "length=64"}, 800}},
    {"bert-large", {{"layers=1", "width=32", "heads=2", "vocabulary=128", "length=64", "sequences=2"}, 800}},
    {"bert-base-squad", {{"layers=1", "width=32", "heads=2", "vocabulary=128", "length=64"}, 400}},
    {"gpt2", {{"layers=1", "width=32", "heads=2", "vocabulary=128", "length=64"}, 400}},
    {"llama", {{"layers=1", "width=32", "heads=2", "inner=64", "vocabulary=128", "length=64"}, 400}},
    {"lstm", {{}, 200}},
    {"mlp", {{}, 500}},
    {"mcmc", {{}, 700}},
};

class WithData : public ::testing::TestWithParam<std::string> {
 protected:
  const workload::Workload& workload() const { return workload::find_workload(GetParam()); }
  std::unique_ptr<Task> open(const std::filesystem::path& data = {}) {
    const Small& form = small_forms.at(GetParam());
    return open_task(
        workload(),
        {.data = data, .samples = form.samples, .seed = 1, .model_options = form.options, .pool = &pool_});
  }
  static std::vector<std::int64_t> unseen(const Task& task) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(task.size() - task.training_count()));
    std::iota(indices.begin(), indices.end(), task.training_count());
    return indices;
  }
  ThreadPool pool_{2};
};

TEST_P(WithData, HasOneNameForModelDataAndMethod) {
  EXPECT_EQ(data::find_generator(GetParam()).name, GetParam());
  EXPECT_EQ(baseline::find_baseline(GetParam()).name, GetParam());
  const data::GeneratorEntry& entry = data::find_generator(GetParam());
  EXPECT_EQ(entry.make(Options(entry.options, {}))->name(), GetParam());
}

TEST_P(WithData, MeasuresWhatItsWorkloadSays) {
  const auto task = open();
  const Small& form = small_forms.at(GetParam());
  const auto indices = unseen(*task);
  ASSERT_FALSE(indices.empty());
  const graph::Graph model =
      workload::build_model(workload(), static_cast<std::int64_t>(indices.size()), form.options);
  std::vector<Tensor> outputs;
  for (const graph::Output& output : model.outputs())
    outputs.emplace_back(model.type(output.value).element, model.type(output.value).shape);
  const std::vector<Metric> found = task->quality(indices, outputs);
  ASSERT_EQ(found.size(), workload().metrics.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, workload().metrics[i].name);
    EXPECT_EQ(found[i].unit, workload().metrics[i].unit);
  }
}

// The conventional method is better than the floor, the limit better than both, on samples neither has seen.
TEST_P(WithData, KnowsWhatOthersReach) {
  const auto task = open();
  const References found = task->references(unseen(*task), pool_);
  ASSERT_TRUE(found.floor);
  ASSERT_TRUE(found.conventional);
  const bool higher = higher_is_better(workload(), workload().metrics[0].name);
  EXPECT_TRUE(std::isfinite(found.floor->value));
  EXPECT_NE(found.conventional->value, found.floor->value);
  EXPECT_TRUE(as_good(found.conventional->value, found.floor->value, higher))
      << found.conventional->value << " is not better than " << found.floor->value;
  if (found.limit) {
    EXPECT_TRUE(as_good(found.limit->value, found.conventional->value, higher));
    const double target = found.target ? *found.target : workload().target->value;
    EXPECT_TRUE(as_good(found.limit->value, target, higher)) << "nobody can reach a target of " << target;
  }
  EXPECT_TRUE(found.target || workload().target) << "no target";
  // Without samples to judge there is nothing to say, and nothing to fail on.
  const std::vector<std::int64_t> none;
  EXPECT_FALSE(task->references(none, pool_).floor);
}

std::vector<std::string> names_with_data() {
  std::vector<std::string> names;
  for (const workload::Workload& workload : workload::workloads())
    if (!workload.metrics.empty()) names.push_back(workload.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Workloads, WithData, ::testing::ValuesIn(names_with_data()));

TEST(Names, UnknownOnesAreRefused) { EXPECT_THROW(data::find_generator("bert-huge"), Error); }

// --- uno

// The default file of the generator, and one with the features in every row, give the same samples.
TEST(Uno, ReadsBothLayoutsOfItsFiles) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const data::GeneratorEntry& entry = data::find_generator("uno");
  const std::vector<std::string> few = {"cells=20", "drugs=10"};
  std::vector<std::string> dense = few;
  dense.push_back("layout=dense");
  entry.make(Options(entry.options, few))->write({folder / "tables.h5", 1, 60, &pool});
  entry.make(Options(entry.options, dense))->write({folder / "rows.h5", 1, 60, &pool});
  const workload::Workload& uno = workload::find_workload("uno");
  const auto batch = [&](const char* file) {
    const auto task = open_task(uno, {.data = folder / file, .pool = &pool});
    std::vector<Tensor> tensors{Tensor(ElementType::f32, {60, 942}), Tensor(ElementType::f32, {60, 5270}),
                                Tensor(ElementType::f32, {60, 1})};
    std::vector<std::int64_t> all(60);
    std::iota(all.begin(), all.end(), 0);
    task->fill(all, 0, false, tensors);
    return tensors;
  };
  const auto a = batch("tables.h5"), b = batch("rows.h5");
  for (std::size_t t = 0; t < a.size(); ++t)
    for (std::int64_t i = 0; i < a[t].element_count(); ++i)
      ASSERT_EQ(a[t].at(i), b[t].at(i)) << t << " " << i;
  // Standardised: the model must not see numbers of hundreds.
  double squares = 0, largest = 0;
  for (std::int64_t i = 0; i < a[1].element_count(); ++i) {
    squares += a[1].at(i) * a[1].at(i) / static_cast<double>(a[1].element_count());
    largest = std::max(largest, std::abs(a[1].at(i)));
  }
  EXPECT_LT(squares, 1.5);
  EXPECT_GT(squares, 0.5);
  EXPECT_LT(largest, 20);
}

// --- the methods by themselves

TEST(OscillationFit, ComesNearTheCramerRaoBound) {
  ThreadPool pool(2);
  const data::GeneratorEntry& entry = data::find_generator("lstm");
  constexpr std::int64_t count = 400, steps = 50, sensors = 32;
  for (const double noise : {0.2, 0.02}) {
    const auto generator = entry.make(Options(entry.options, {{"noise=" + std::to_string(noise)}}));
    const auto made = data::generate_in_memory(*generator, 3, 0, count, pool);
    double squares = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto x =
          made[0].as<float>().subspan(static_cast<std::size_t>(i * steps * sensors), steps * sensors);
      const double error = baseline::fit_periods(x, steps, sensors) - 5 * made[1].at(i);
      squares += error * error / count;
    }
    // One amplitude and phase over all sensors: sqrt(6) noise / (pi sqrt(steps sensors)) periods.
    const double bound = std::sqrt(6.0) * noise / (3.14159265 * std::sqrt(double{steps} * sensors));
    EXPECT_LT(std::sqrt(squares), 1.15 * bound) << noise;
    EXPECT_GT(std::sqrt(squares), 0.85 * bound) << noise;
  }
}

TEST(Polynomial, HasEveryProductOnce) {
  Eigen::MatrixXd x(1, 3);
  x << 2, 3, 5;
  const Eigen::MatrixXd all = baseline::with_products_of_two(x);
  ASSERT_EQ(all.cols(), 9);
  const double expected[] = {2, 3, 5, 4, 6, 10, 9, 15, 25};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(all(0, i), expected[i]);
}

}  // namespace
}  // namespace superstep::run
