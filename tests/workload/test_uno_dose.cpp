// Uno by single doses: as many parameters as published, drugs that share their sub-networks, rows that point
// into tables, and files that point beside them.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/physics/generator.h"
#include "superstep/workload/chemistry/uno/dose.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/task.h"
#include "superstep/workload/workload.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::workload {
namespace {

graph::Graph network(const std::vector<std::string>& options, std::int64_t batch = 1) {
  graph::Graph graph = build_model(find_workload("uno"), batch, options);
  value_or_throw(graph::verify(graph, op::infer_types));
  return graph;
}

TEST(UnoDose, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(network({"by=dose"})), 21275001);
  EXPECT_EQ(count_parameters(network({"by=auc"})), 16224001);
}

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Tensor tensor(ElementType::f32, shape);
  RandomStream random(seed);
  for (float& value : tensor.as<float>()) value = static_cast<float>(random.normal());
  return tensor;
}

// Where the joint layer weighs both drugs alike, their order does not matter: their towers have the same
// weights. As the weights are drawn it does.
TEST(UnoDose, SendsBothDrugsThroughTheSameTowers) {
  for (const bool alike : {true, false}) {
    graph::Graph graph = network({"by=dose", "width=6"}, 2);
    const graph::ValueId joint = graph.find_value("joint1.weight");
    Tensor weight = graph.value(joint).data.clone();
    ASSERT_EQ(weight.shape(), (Shape{6, 2 + 5 * 6}));
    // Columns: two doses, the cell, descriptors of both drugs, fingerprints of both.
    for (std::int64_t row = 0; alike && row < 6; ++row) {
      weight.set(row * 32 + 1, weight.at(row * 32));
      for (const std::int64_t first : {8, 20})
        for (std::int64_t k = 0; k < 6; ++k)
          weight.set(row * 32 + first + 6 + k, weight.at(row * 32 + first + k));
    }
    graph.set_data(joint, weight);
    const Tensor cell = drawn({2, 942}, 1), d1 = drawn({2, 5270}, 2), d2 = drawn({2, 5270}, 3),
                 f1 = drawn({2, 2048}, 4), f2 = drawn({2, 2048}, 5), a = drawn({2, 1}, 6),
                 b = drawn({2, 1}, 7);
    const Tensor there[] = {cell, d1, d2, f1, f2, a, b}, back[] = {cell, d2, d1, f2, f1, b, a};
    const Tensor one = op::evaluate(graph, there).outputs[0], other = op::evaluate(graph, back).outputs[0];
    for (std::int64_t i = 0; i < 2; ++i)
      EXPECT_EQ(std::abs(one.at(i) - other.at(i)) < 1e-5 * (1 + std::abs(one.at(i))), alike) << i;
    EXPECT_NE(one.at(0), one.at(1));
  }
}

class DoseRows : public ::testing::Test {
 protected:
  void write(std::vector<std::string> without = {}, std::int32_t second_drug = 2, float dose = -7) {
    data::Hdf5Writer file(path_);
    const auto put = [&](const std::string& name, const Tensor& values) {
      if (std::ranges::find(without, name) == without.end()) file.write(name, values);
    };
    put("cell_rnaseq", drawn({4, 942}, 1));
    put("drug_descriptors", drawn({3, 5270}, 2));
    put("drug_fingerprints", drawn({3, 2048}, 3));
    put("cell_index", Tensor::from<std::int32_t>({5}, {0, 1, 2, 3, 0}));
    put("drug1_index", Tensor::from<std::int32_t>({5}, {0, 1, 2, 0, 1}));
    put("drug2_index", Tensor::from<std::int32_t>({5}, {-1, 0, -1, 1, second_drug}));
    put("dose1", Tensor::from<float>({5}, {-10, -7, -4, -7, dose}));
    put("dose2", Tensor::from<float>({5}, {-10, -5, -10, -6, -8}));
    put("growth", Tensor::from<float>({5}, {1, 0.5f, 0.25f, 0.75f, 0}));
    file.close();
  }
  std::unique_ptr<Task> open(bool labels = true) {
    return open_task(
        find_workload("uno"),
        {.data = path_, .model_options = {"by=dose"}, .labels_required = labels, .pool = &pool_});
  }
  ScratchFolder folder_;
  std::filesystem::path path_ = folder_ / "rows.h5";
  ThreadPool pool_{2};
};

TEST_F(DoseRows, PointIntoTheirTables) {
  write();
  const auto task = open();
  ASSERT_EQ(task->size(), 5);
  std::vector<Tensor> rows;
  for (const std::int64_t width : {942, 5270, 5270, 2048, 2048, 1, 1, 1})
    rows.emplace_back(ElementType::f32, Shape{2, width});
  const std::int64_t indices[] = {0, 3};
  task->fill(indices, 0, false, rows);
  const Tensor cells = standardised_columns(drawn({4, 942}, 1)),
               drugs = standardised_columns(drawn({3, 5270}, 2));
  EXPECT_EQ(rows[0].at(5), cells.at(5));
  EXPECT_EQ(rows[0].at(942 + 5), cells.at(3 * 942 + 5));
  EXPECT_EQ(rows[1].at(7), drugs.at(7));
  EXPECT_EQ(rows[2].at(7), 0) << "there is no second drug";
  EXPECT_EQ(rows[4].at(7), 0);
  EXPECT_EQ(rows[2].at(5270 + 7), drugs.at(5270 + 7));
  EXPECT_NEAR(rows[5].at(0), -std::sqrt(3.0), 1e-5);  // the lowest dose, in standard deviations
  EXPECT_NEAR(rows[5].at(1), 0, 1e-6);
  EXPECT_NEAR(rows[7].at(1), 0.75, 1e-6);
  const Tensor exact = Tensor::from<float>({2, 1}, {1, 0.75f});
  EXPECT_NEAR(task->quality(indices, std::span(&exact, 1)).at(0).value, 1, 1e-6);
}

TEST_F(DoseRows, ThatCannotBeAreNamed) {
  const auto refused = [&](std::initializer_list<std::string> words) {
    expect_error(ErrorCode::bad_file, words, [&] { open(); });
  };
  write({}, 3);
  refused({"drug2_index", "row 4", "3 of 3"});
  write({}, -2);
  refused({"drug2_index", "row 4"});
  write({}, 2, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THROW(open(), Error);
  write({"drug_fingerprints"});
  EXPECT_THROW(open(), Error);
  write({"growth"});
  EXPECT_THROW(open(), Error);
  EXPECT_FALSE(open(false)->has_labels());
}

// Standard deviations beside errors: twenty rows and more have a calibration, these five have none.
TEST_F(DoseRows, HaveTheirSpreadHeldAgainstErrors) {
  const auto task =
      open_task(find_workload("uno"), {.samples = 400, .model_options = {"by=dose"}, .pool = &pool_});
  std::vector<std::int64_t> indices(400);
  Tensor mean(ElementType::f32, {400, 1}), spread(ElementType::f32, {400, 1});
  std::vector<Tensor> rows;
  for (const std::int64_t width : {942, 5270, 5270, 2048, 2048, 1, 1, 1})
    rows.emplace_back(ElementType::f32, Shape{1, width});
  for (std::int64_t i = 0; i < 400; ++i) {
    indices[static_cast<std::size_t>(i)] = i;
    task->fill(std::span(&i, 1), 0, false, rows);
    const double stated = 0.01 * static_cast<double>(1 + i % 7);
    mean.set(i, rows[7].at(0) + (i % 2 == 0 ? 2 : -2) * stated);  // off by twice what is stated
    spread.set(i, stated);
  }
  const auto worth = task->spread_quality(indices, std::span(&mean, 1), std::span(&spread, 1));
  ASSERT_EQ(worth.size(), 6u);
  EXPECT_EQ(worth[0].name, "spread_factor");
  EXPECT_NEAR(worth[0].value, 2, 1e-3);
  EXPECT_EQ(worth[1].value, 0);  // within the spread
  EXPECT_GT(worth[3].value, 0.99);
  EXPECT_TRUE(
      task->spread_quality(std::span(indices).first(5), std::span(&mean, 1), std::span(&spread, 1)).empty());
}

}  // namespace
}  // namespace superstep::workload
