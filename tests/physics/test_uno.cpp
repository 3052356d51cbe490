#include <gtest/gtest.h>

#include <cmath>

#include "superstep/file/csv.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/pytables.h"
#include "superstep/physics/chemistry/uno_tables.h"
#include "tests/physics/workload_generators.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

TEST(DoseResponse, AreaHasTheClosedFormValues) {
  EXPECT_NEAR(area_under_curve({1, -7, 0}), 0.5, 1e-6);
  EXPECT_NEAR(area_under_curve({1, -6, 0.1}), 0.699358, 1e-6);
  EXPECT_NEAR(area_under_curve({2, -5.5, 0.3}), 0.824975, 1e-6);
  EXPECT_NEAR(area_under_curve({0.7, -8, 0}), 0.337206, 1e-6);
}

TEST(DoseResponse, AreaIsTheIntegralOfTheCurve) {
  for (const HillCurve curve :
       {HillCurve{1.3, -6.2, 0.2}, HillCurve{40, -9.9, 0}, HillCurve{0.05, -3, 0.9}}) {
    const int steps = 20000;
    double sum = 0;
    for (int i = 0; i < steps; ++i) sum += viability(curve, -10 + 6 * (i + 0.5) / steps);
    EXPECT_NEAR(area_under_curve(curve), sum / steps, 1e-6);
  }
  EXPECT_NEAR(area_under_curve({1, 300, 0}), 1, 1e-12);  // never acts, and nothing overflows
  EXPECT_NEAR(area_under_curve({50, -300, 0}), 0, 1e-12);
}

TEST(UnoGenerator, SamplesDoNotDependOnThreads) {
  expect_same_bits_on_any_threads("uno", 50, {"cells=30", "drugs=20", "doses=5", "layout=dense"});
}

// Published: pairs drawn at random differ by a mean square of .0474, twice the variance; the best models
// reach r2 of .77 where the noise leaves .8.
TEST(UnoGenerator, HasTheVarianceAndCeilingOfThePublicSet) {
  ThreadPool pool(2);
  const auto generator = make_generator("uno");
  for (const std::uint64_t seed : {1, 2}) {
    const std::int64_t rows = 20000;
    const auto made = generate_in_memory(*generator, seed, 0, rows, pool);
    const Tensor &auc = field(*generator, made, "AUC"), &exact = field(*generator, made, "AUC_exact");
    double pairs = 0;
    for (std::int64_t i = 0; i + 1 < rows; i += 2) pairs += std::pow(auc.at(i) - auc.at(i + 1), 2);
    const double ceiling = 1 - mean_square_difference(auc, exact) / variance(auc);
    std::printf("seed %d: variance %.4f, ceiling r2 %.3f, random pairs %.4f, mean %.3f\n",
                static_cast<int>(seed), variance(auc), ceiling, 2 * pairs / rows, mean(auc));
    EXPECT_NEAR(variance(auc), 0.024, 0.0015);
    EXPECT_NEAR(ceiling, 0.8, 0.015);
    EXPECT_NEAR(2 * pairs / rows, 2 * variance(auc), 0.0015);
  }
}

TEST(UnoGenerator, EveryPairComesOnceBeforeAnyComesAgain) {
  ThreadPool pool(1);
  const auto generator = make_generator("uno", {"cells=7", "drugs=5"});
  const auto made = generate_in_memory(*generator, 1, 0, 70, pool);
  std::vector<int> seen(35);
  for (std::int64_t i = 0; i < 70; ++i)
    ++seen[static_cast<std::size_t>(field(*generator, made, "cell_index").at(i) * 5 +
                                    field(*generator, made, "drug_index").at(i))];
  for (const int count : seen) EXPECT_EQ(count, 2);
  const Tensor &auc = field(*generator, made, "AUC"), &exact = field(*generator, made, "AUC_exact");
  for (std::int64_t i = 0; i < 35; ++i) {
    EXPECT_EQ(exact.at(i), exact.at(i + 35));  // the same pair measured again
    EXPECT_NE(auc.at(i), auc.at(i + 35));
  }
}

TEST(UnoGenerator, FilesHoldTablesAndRows) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const std::vector<std::string> small = {"cells=40", "drugs=30"};
  make_generator("uno", small)->write({folder / "a.h5", 3, 100, &pool});
  make_generator("uno", small)->write({folder / "a.tsv", 3, 100, &pool});
  auto dense = small;
  dense.push_back("layout=dense");
  make_generator("uno", dense)->write({folder / "dense.h5", 3, 100, &pool});
  const Hdf5File indexed(folder / "a.h5"), wide(folder / "dense.h5");
  const Tensor expression = indexed.read("cell_rnaseq", ElementType::f32);
  const Tensor descriptors = indexed.read("drug_descriptors", ElementType::f32);
  const Tensor cell = indexed.read("cell_index", ElementType::i32),
               drug = indexed.read("drug_index", ElementType::i32);
  const Tensor cells = wide.read("cell", ElementType::f32), drugs = wide.read("drug", ElementType::f32);
  const Tensor auc = indexed.read("AUC", ElementType::f32);
  CsvReader table(folder / "a.tsv");
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto c = static_cast<std::int64_t>(cell.at(i)), d = static_cast<std::int64_t>(drug.at(i));
    for (const std::int64_t g : {0, 500, 941}) EXPECT_EQ(cells.at(i * 942 + g), expression.at(c * 942 + g));
    for (const std::int64_t g : {0, 500, 5269})
      EXPECT_EQ(drugs.at(i * 5270 + g), descriptors.at(d * 5270 + g));
    ASSERT_TRUE(table.next());
    EXPECT_EQ(table.text(table.column("Sample")), "CELL." + std::to_string(c));
    EXPECT_EQ(static_cast<float>(table.number(table.column("AUC"))), static_cast<float>(auc.at(i)));
  }
}

TEST(UnoGenerator, WritesTheFramesOfTheBenchmark) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make_generator("uno", {"cells=20", "drugs=10", "layout=pandas"});
  generator->write({folder / "uno.h5", 3, 50, &pool});
  const auto made = generate_in_memory(*generator, 3, 0, 50, pool);
  const auto tables = generator->shared_arrays(3);
  const PandasFile file(folder / "uno.h5");
  EXPECT_EQ(file.keys().size(), 9u);
  std::int64_t i = 0;
  for (const std::string part : {"train", "val", "test"}) {
    const std::int64_t rows = file.rows("y_" + part);
    EXPECT_EQ(rows, part == "train" ? 40 : 5);
    const PandasFrame genes = file.read("x_" + part + "_0", 0, rows),
                      drugs = file.read("x_" + part + "_1", 0, rows),
                      labels = file.read("y_" + part, 0, rows);
    for (std::int64_t row = 0; row < rows; ++row, ++i) {
      const auto cell = static_cast<std::int64_t>(field(*generator, made, "cell_index").at(i)),
                 drug = static_cast<std::int64_t>(field(*generator, made, "drug_index").at(i));
      EXPECT_EQ(labels.values.at(row), field(*generator, made, "AUC").at(i));
      EXPECT_EQ(labels.text.at("Drug1")[static_cast<std::size_t>(row)], "DRUG." + std::to_string(drug));
      EXPECT_EQ(genes.values.at(row * 942 + 17), tables.at("cell_rnaseq").at(cell * 942 + 17));
      EXPECT_EQ(drugs.values.at(row * 5270 + 17), tables.at("drug_descriptors").at(drug * 5270 + 17));
    }
  }
}

TEST(UnoTables, GenesVaryInBlocksAndSomeDescriptorsAreConstant) {
  std::vector<UnoCell> cells;
  std::vector<UnoDrug> drugs;
  for (std::uint64_t i = 0; i < 400; ++i) cells.push_back(make_cell(1, i));
  for (std::uint64_t i = 0; i < 50; ++i) drugs.push_back(make_drug(1, i));
  const std::vector<float> genes = expression_table(1, cells), descriptors = descriptor_table(1, drugs);
  const auto correlation = [&](std::size_t a, std::size_t b) {
    double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (std::size_t i = 0; i < 400; ++i) {
      const double x = genes[i * gene_count + a], y = genes[i * gene_count + b];
      sa += x, sb += y, saa += x * x, sbb += y * y, sab += x * y;
    }
    return (sab - sa * sb / 400) / std::sqrt((saa - sa * sa / 400) * (sbb - sb * sb / 400));
  };
  double inside = 0, outside = 0;
  for (std::size_t g = 0; g + 16 < gene_count; g += 16) {
    inside += std::abs(correlation(g, g + 1));
    outside += std::abs(correlation(g, g + 16));
  }
  EXPECT_GT(inside, 2.5 * outside);
  int constant = 0;
  for (std::size_t column = 0; column < descriptor_count; ++column) {
    bool varies = false;
    for (std::size_t row = 1; row < 50; ++row)
      varies |= descriptors[row * descriptor_count + column] != descriptors[column];
    constant += !varies;
  }
  EXPECT_NEAR(constant, 0.1 * descriptor_count, 0.02 * descriptor_count);
}

// Rows of single doses follow from the curves of the same cells and drugs: one drug by its curve, two by the
// product (Bliss), and what is measured differs by noise and the study's offset alone.
TEST(UnoDoses, FollowFromTheCurvesOfCellsAndDrugs) {
  ThreadPool pool(2);
  const auto generator = make_generator("uno", {"by=dose", "cells=40", "drugs=30"});
  const std::int64_t rows = 4000;
  const auto made = generate_in_memory(*generator, 3, 0, rows, pool);
  const auto at = [&](const char* name, std::int64_t i) { return field(*generator, made, name).at(i); };
  const UnoResponse response(3, 0.0192);
  std::int64_t alone = 0;
  double squares = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const UnoCell cell = make_cell(3, static_cast<std::uint64_t>(at("cell_index", i)));
    const auto survival = [&](const char* drug, const char* dose) {
      return viability(response.curve(cell, make_drug(3, static_cast<std::uint64_t>(at(drug, i)))),
                       at(dose, i));
    };
    double expected = survival("drug1_index", "dose1");
    EXPECT_GE(at("dose1", i), -10);
    EXPECT_LT(at("dose1", i), -4);
    if (at("drug2_index", i) < 0) {
      ++alone;
      EXPECT_EQ(at("dose2", i), -10);
    } else {
      expected *= survival("drug2_index", "dose2");
    }
    ASSERT_NEAR(at("growth_exact", i), expected, 1e-5) << i;
    squares += std::pow(at("growth", i) - at("growth_exact", i), 2);
  }
  EXPECT_NEAR(static_cast<double>(alone) / static_cast<double>(rows), 0.5, 0.032);  // four standard errors
  // Noise of 0.03 to 0.05 and offsets of 0.056, in the mean square.
  EXPECT_NEAR(std::sqrt(squares / rows), std::sqrt(0.00163 + 0.056 * 0.056), 0.003);
}

TEST(UnoDoses, DoNotDependOnThreadsAndHaveFewBitsSet) {
  expect_same_bits_on_any_threads("uno", 50, {"by=dose", "cells=30", "drugs=20"});
  const auto tables = make_generator("uno", {"by=dose", "cells=3", "drugs=200"})->shared_arrays(1);
  const Tensor& bits = tables.at("drug_fingerprints");
  ASSERT_EQ(bits.shape(), (Shape{200, 2048}));
  double set = 0;
  for (const float bit : bits.as<float>()) {
    ASSERT_TRUE(bit == 0 || bit == 1);
    set += bit;
  }
  EXPECT_NEAR(set / static_cast<double>(bits.element_count()), 0.125, 0.02);
  EXPECT_THROW(make_generator("uno", {"by=dose", "layout=dense"}), Error);
  EXPECT_THROW(make_generator("uno", {"by=dose", "doses=5"}), Error);
}

}  // namespace
}  // namespace superstep::data
