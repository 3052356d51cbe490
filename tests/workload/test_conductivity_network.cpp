// The network that takes the place of a solve: its blocks, its loss, its data and how they are changed in
// training, and files that hold something else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/tiff.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/task.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::workload {
namespace {

graph::Graph network(const std::vector<std::string>& options, std::int64_t batch = 1) {
  graph::Graph graph = build_model(find_workload("conductivity"), batch, options);
  value_or_throw(graph::verify(graph, op::infer_types));
  return graph;
}

std::map<std::string, std::int64_t> parameters_of_blocks(const graph::Graph& graph) {
  std::map<std::string, std::int64_t> blocks;
  for (graph::ValueId id : transform::trainable_states(graph)) {
    const std::string& name = graph.value(id).name;
    blocks[name.substr(0, name.find('.'))] += graph.type(id).shape.element_count();
  }
  return blocks;
}

double multiply_accumulates_of(const graph::Graph& graph) {
  double sum = 0;
  for (const graph::Node& node : graph.nodes())
    if (node.op == "Conv" || node.op == "Gemm") sum += op::cost(graph, node).flops / 2;
  return sum;
}

TEST(ConductivityNetwork, HasTenBlocksOfEitherSize) {
  const std::int64_t heavy[] = {704, 36992, 73984, 147712, 295424, 590336, 1180672, 2360320, 65792, 129};
  const std::int64_t light[] = {176, 4672, 18560, 55488, 110848, 221568, 442880, 524800, 32896, 65};
  for (const bool is_heavy : {true, false}) {
    const graph::Graph graph = network({is_heavy ? "size=heavy" : "size=light"});
    const auto blocks = parameters_of_blocks(graph);
    EXPECT_EQ(blocks.size(), 10u);
    std::int64_t sum = 0;
    for (int i = 0; i < 10; ++i) {
      const std::int64_t own = blocks.at("block" + std::to_string(i + 1));
      EXPECT_EQ(own, is_heavy ? heavy[i] : light[i]) << i + 1;
      sum += own;
    }
    EXPECT_EQ(sum, is_heavy ? 4752065 : 1411953);
    EXPECT_NEAR(multiply_accumulates_of(graph), is_heavy ? 13.33e9 : 0.267e9, is_heavy ? 0.01e9 : 0.001e9);
  }
}

TEST(ConductivityNetwork, IsBuiltForOtherSidesAndRefusesWhatCannotBeHalved) {
  for (const char* size : {"size=light", "size=heavy"})
    for (std::int64_t side : {16, 32, 64, 512}) {
      const graph::Graph graph = network({size, "width=2", "side=" + std::to_string(side)}, 3);
      EXPECT_EQ(graph.type(graph.inputs()[0]).shape, (Shape{3, 1, side, side}));
      EXPECT_EQ(graph.type(graph.outputs()[0].value).shape, (Shape{3, 1}));
    }
  EXPECT_EQ(count_parameters(network({"side=64"})), 1411953);
  const auto refusal = [](const char* option) { return [option] { network({option}); }; };
  expect_error(ErrorCode::invalid_argument, {"100 pixels cannot be halved", "power of two"},
               refusal("side=100"));
  expect_error(ErrorCode::invalid_argument, {"size", "medium"}, refusal("size=medium"));
  expect_error(ErrorCode::invalid_argument, {"width"}, refusal("width=0"));
}

Tensor uniform(const Shape& shape, std::uint64_t seed, double low, double high) {
  Tensor tensor(ElementType::f32, shape);
  RandomStream random(seed);
  for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform(low, high));
  return tensor;
}

// The ratio is multiplied by sigma: without the weight of log10 sigma, twice the conductor is twice the
// effective conductivity, exactly; with it, not.
TEST(ConductivityNetwork, MultipliesItsRatioByTheConductor) {
  for (const bool sees_sigma : {false, true}) {
    graph::Graph graph = network({"side=16", "width=2"}, 2);
    const graph::ValueId weight = graph.find_value("block9.weight");
    const Tensor& drawn = graph.value(weight).data;
    const std::int64_t columns = drawn.shape()[1];
    Tensor values(ElementType::f32, drawn.shape());
    for (std::int64_t i = 0; i < drawn.element_count(); ++i)
      values.set(i, i % columns == columns - 1 && !sees_sigma ? 0 : drawn.at(i));
    graph.set_data(weight, values);
    const Tensor image = uniform({2, 1, 16, 16}, 3, 0, 1);
    const auto effective = [&](float sigma) {
      const Tensor inputs[] = {image, Tensor::full(ElementType::f32, {2, 1}, sigma)};
      return op::evaluate(graph, inputs).outputs[0];
    };
    const Tensor one = effective(1), eight = effective(8);
    const bool same = 8 * one.at(0) == eight.at(0) && 8 * one.at(1) == eight.at(1);
    EXPECT_EQ(same, !sees_sigma);
    EXPECT_NE(one.at(0), one.at(1));
  }
}

// With sees=image it holds to the last bit for powers of two, in either size, with weights as they are drawn;
// log10 sigma's columns are gone.
TEST(ConductivityNetwork, ThatSeesTheImageAloneHasOneRatioForEveryConductor) {
  for (const char* size : {"size=light", "size=heavy"}) {
    const graph::Graph graph = network({size, "side=16", "width=8", "sees=image"}, 2);
    const graph::Graph both = network({size, "side=16", "width=8"}, 2);
    const auto width = [](const graph::Graph& of) {
      return of.type(of.find_value("block9.weight")).shape[1];
    };
    EXPECT_EQ(width(graph) + 1, width(both));
    const Tensor image = uniform({2, 1, 16, 16}, 3, 0, 1);
    const auto effective = [&](float sigma) {
      const Tensor inputs[] = {image, Tensor::full(ElementType::f32, {2, 1}, sigma)};
      return op::evaluate(graph, inputs).outputs[0];
    };
    const Tensor one = effective(1), eighth = effective(0.125f), many = effective(1024);
    for (int i = 0; i < 2; ++i) {
      EXPECT_NE(one.at(i), 0);
      EXPECT_EQ(one.at(i), 8 * eighth.at(i));
      EXPECT_EQ(1024 * one.at(i), many.at(i));
    }
  }
}

TEST(ConductivityNetwork, LosesTheMeanSquareOfTheRatios) {
  const graph::Graph model = network({"side=16", "width=2"}, 3);
  const Tensor image = uniform({3, 1, 16, 16}, 3, 0, 1), sigma = uniform({3, 1}, 4, 0.1, 10),
               truth = uniform({3, 1}, 5, 0, 1);
  const graph::Graph step = transform::make_training_step(model, find_workload("conductivity").training.loss,
                                                          {.kind = transform::OptimizerKind::sgd});
  const Tensor inputs[] = {image, sigma, truth, Tensor::scalar(0.0f)};
  const auto found = op::evaluate(step, inputs);
  // In training, normalisation is by the batch: the loss is held against that of a second truth, which is
  // farther by a known square. With d = found - truth, mean ((d + c sigma) / sigma)^2 - mean (d / sigma)^2 is
  // 2 c mean(d / sigma) + c^2: twice c less twice -c of it leaves 2 c^2 with the first.
  const auto loss_at = [&](double c) {
    Tensor moved(ElementType::f32, {3, 1});
    for (std::int64_t i = 0; i < 3; ++i) moved.set(i, truth.at(i) - c * sigma.at(i));
    const Tensor shifted[] = {image, sigma, moved, Tensor::scalar(0.0f)};
    return op::evaluate(step, shifted).outputs[0].at(0);
  };
  EXPECT_NEAR(loss_at(0.5) + loss_at(-0.5) - 2 * found.outputs[0].at(0), 2 * 0.25, 1e-5);
}

// --- data

std::unique_ptr<Task> open(ThreadPool& pool, TaskSettings settings) {
  settings.model_options.push_back("side=32");
  settings.pool = &pool;
  return open_task(find_workload("conductivity"), settings);
}

struct Batch {
  Tensor image{ElementType::f32, {4, 1, 32, 32}}, sigma{ElementType::f32, {4, 1}},
      effective{ElementType::f32, {4, 1}};

  double ratio(std::int64_t k) const { return effective.at(k) / sigma.at(k); }
  std::vector<double> pixels(std::int64_t k) const {
    std::vector<double> own;
    for (std::int64_t i = 0; i < 1024; ++i) own.push_back(image.at(k * 1024 + i));
    return own;
  }
};

Batch filled(const Task& task, std::uint64_t epoch, bool augment) {
  Batch batch;
  const std::int64_t indices[] = {0, 1, 2, 3};
  std::vector<Tensor> tensors{batch.image, batch.sigma, batch.effective};
  task.fill(indices, epoch, augment, tensors);
  return {tensors[0], tensors[1], tensors[2]};
}

double solved(const std::vector<double>& pixels) {
  return data::effective_conductivity(pixels, 32, 32).effective;
}

// Mirrored images have the same ratio, to the solver's last digits; epochs differ, calls of one do not.
TEST(ConductivityTask, MirrorsAndRescalesWithoutChangingTheRatio) {
  ThreadPool pool(2);
  const auto task = open(pool, {.samples = 50});
  EXPECT_EQ(task->training_count(), 40);
  const Batch plain = filled(*task, 0, false);
  int mirrored = 0, rescaled = 0;
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    const Batch batch = filled(*task, epoch, true), again = filled(*task, epoch, true);
    for (std::int64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(batch.pixels(k), again.pixels(k));
      EXPECT_EQ(batch.sigma.at(k), again.sigma.at(k));
      EXPECT_NEAR(batch.ratio(k), plain.ratio(k), 1e-6);
      EXPECT_NEAR(solved(batch.pixels(k)), plain.ratio(k), 1e-6);
      mirrored += batch.pixels(k) != plain.pixels(k);
      rescaled += batch.sigma.at(k) != plain.sigma.at(k);
    }
  }
  EXPECT_GT(mirrored, 12);  // three of four
  EXPECT_LT(mirrored, 24);
  EXPECT_GT(rescaled, 20);
}

TEST(ConductivityTask, JudgesByTheRatioAndForgivesImagesWithoutAPath) {
  ThreadPool pool(2);
  const auto task = open(pool, {.samples = 50});
  std::vector<std::int64_t> indices(50);
  std::iota(indices.begin(), indices.end(), 0);
  Tensor image(ElementType::f32, {50, 1, 32, 32}), sigma(ElementType::f32, {50, 1}),
      truth(ElementType::f32, {50, 1});
  std::vector<Tensor> tensors{image, sigma, truth};
  task->fill(indices, 0, false, tensors);
  EXPECT_GT(std::ranges::count(tensors[2].as<float>(), 0.0f), 0) << "some have no conducting path";
  const auto metric = [&](const Tensor& found, std::size_t which) {
    return task->quality(indices, std::span(&found, 1))[which].value;
  };
  EXPECT_NEAR(metric(tensors[2], 0), 1, 1e-9);
  EXPECT_NEAR(metric(tensors[2], 1), 0, 1e-9);
  Tensor larger(ElementType::f32, {50, 1});
  for (std::int64_t k = 0; k < 50; ++k) larger.set(k, 1.1 * tensors[2].at(k));
  EXPECT_NEAR(metric(larger, 1), 0.1, 1e-6);
  EXPECT_LT(metric(larger, 0), 1);
}

// --- files

class ConductivityFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const data::GeneratorEntry& entry = data::find_generator("conductivity");
    const std::vector<std::string> settings{"size=32"};
    const auto generator = entry.make(Options(entry.options, settings));
    generator->write({folder_ / "c.h5", 1, 12, &pool_});
    generator->write({folder_ / "c.tif", 1, 12, &pool_});
  }
  std::unique_ptr<Task> open_file(const std::string& name, bool labels = true) {
    return open(pool_, {.data = folder_ / name, .labels_required = labels});
  }
  auto opening(const std::string& name) {
    return [this, name] { open_file(name); };
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  ThreadPool pool_{2};
  const ScratchFolder folder_;
};

TEST_F(ConductivityFiles, AreTheSameAsPagesWithATableAndAsHdf5) {
  data::write_npy(folder_ / "n.npy", data::read_tiff(folder_ / "c.tif"));
  std::filesystem::copy(folder_ / "c.csv", folder_ / "n.csv");
  const Batch hdf5 = filled(*open_file("c.h5"), 0, false);
  for (const char* name : {"c.tif", "n.npy"}) {
    const auto task = open_file(name);
    EXPECT_EQ(task->size(), 12);
    const Batch pages = filled(*task, 0, false);
    for (std::int64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(hdf5.pixels(k), pages.pixels(k));
      EXPECT_NEAR(hdf5.sigma.at(k), pages.sigma.at(k), 1e-6);
      EXPECT_NEAR(hdf5.effective.at(k), pages.effective.at(k), 1e-6);
    }
  }
}

TEST_F(ConductivityFiles, NeedNoLabelsToBeServed) {
  write("c.csv", "sigma\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n");
  expect_error(ErrorCode::bad_file, {"c.csv", "sigma_eff"}, opening("c.tif"));
  const auto task = open_file("c.tif", false);
  EXPECT_FALSE(task->has_labels());
  EXPECT_EQ(task->size(), 12);
}

TEST_F(ConductivityFiles, AreRefusedByNameWhereTheyHoldSomethingElse) {
  const std::string pages = read_text_file(folder_ / "c.tif");
  write("cut.tif", pages.substr(0, pages.size() / 2));
  expect_error(ErrorCode::bad_file, {"cut.tif"}, opening("cut.tif"));
  data::write_npy(folder_ / "few.npy", Tensor(ElementType::u8, {5, 32, 32}));
  std::filesystem::copy(folder_ / "c.csv", folder_ / "few.csv");
  expect_error(ErrorCode::bad_file, {"few.csv", "12 rows for the 5 images", "cut short"}, opening("few.npy"));
  data::write_npy(folder_ / "large.npy", Tensor(ElementType::u8, {5, 64, 64}));
  expect_error(ErrorCode::bad_file, {"large.npy", "64x64 pixels, the model takes 32x32", "--set side=64"},
               opening("large.npy"));
  data::write_npy(folder_ / "alone.npy", Tensor(ElementType::u8, {5, 32, 32}));
  expect_error(ErrorCode::not_found, {"alone.csv", "columns sigma and sigma_eff"}, opening("alone.npy"));
  Tensor odd(ElementType::f32, {1, 32, 32});
  odd.set(40, std::nan(""));
  data::write_npy(folder_ / "nan.npy", odd);
  expect_error(ErrorCode::bad_file, {"nan.npy", "nan"}, opening("nan.npy"));
  odd.set(40, 0.5), odd.set(41, 1);
  data::write_npy(folder_ / "grey.npy", odd);
  expect_error(ErrorCode::bad_file, {"grey.npy", "image 0 is not binary: pixel 40 is 0.5"},
               opening("grey.npy"));
}

TEST_F(ConductivityFiles, HaveConductivitiesThatCanBe) {
  data::write_npy(folder_ / "one.npy", Tensor::full(ElementType::u8, {1, 32, 32}, 1));
  const auto with = [&](const char* row) {
    return [this, row] {
      write("one.csv", std::string("sigma,sigma_eff\n") + row + "\n");
      open_file("one.npy");
    };
  };
  with("2,0")();  // no path
  with("2,2")();
  expect_error(ErrorCode::bad_file, {"one.npy", "image 0: sigma is 0"}, with("0,0"));
  expect_error(ErrorCode::bad_file, {"image 0: sigma is nan"}, with("nan,0"));
  expect_error(ErrorCode::bad_file, {"image 0: sigma_eff is 3", "at most sigma"}, with("2,3"));
  expect_error(ErrorCode::bad_file, {"image 0: sigma_eff is nan"}, with("2,nan"));
}

}  // namespace
}  // namespace superstep::workload
