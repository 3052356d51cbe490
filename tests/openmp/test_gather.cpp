// Elements that are found by numbers in other arrays: what each tile receives, and what comes out.
#include <bit>
#include <numeric>
#include <set>

#include "superstep/base/random.h"
#include "superstep/openmp/program/abi.h"
#include "tests/openmp/support.h"

namespace superstep::openmp {
namespace {

// y[i] = the sum of value[k] * x[column[k]], row[i] <= k < row[i + 1], as superstep-cc has it: its accesses
// are row[i], row[i + 1], value[k], x[column[k]], column[k], y[i].
void multiply_body(const Part& part) {
  const auto* row = part.at<std::int32_t>(0);
  const auto place = [&](int access, std::int64_t element) {
    auto* gather = part.gathers ? std::bit_cast<sst_gather*>(part.gathers[access]) : nullptr;
    return sst_gathered(gather, part.origin[access] + element);
  };
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i) {
    float sum = 0;
    const std::int64_t end = part.at<std::int32_t>(1)[part.stride(1, 0) * i];
    for (std::int64_t k = row[part.stride(0, 0) * i]; k < end; ++k) {
      if (part.turns) ++part.turns[0];
      const auto column = static_cast<const std::int32_t*>(part.data[4])[place(4, k)];
      sum += static_cast<const float*>(part.data[2])[place(2, k)] *
             static_cast<const float*>(part.data[3])[place(3, column)];
    }
    part.at<float>(5)[part.stride(5, 0) * i] = sum;
  }
}

Access gathers(int array, std::vector<Affine> subscripts) {
  Access access = reads(array, std::move(subscripts));
  access.gathered = true;
  return access;
}

struct Matrix {
  std::vector<std::int32_t> row{0}, column;
  std::vector<float> value, x;

  std::int64_t rows() const { return static_cast<std::int64_t>(row.size()) - 1; }
  std::int64_t entries() const { return static_cast<std::int64_t>(column.size()); }
  std::vector<float> product() const {
    std::vector<float> y;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      float sum = 0;
      for (std::int32_t k = row[i]; k < row[i + 1]; ++k)
        sum += value[static_cast<std::size_t>(k)] *
               x[static_cast<std::size_t>(column[static_cast<std::size_t>(k)])];
      y.push_back(sum);
    }
    return y;
  }
  Region region() const {
    Region region;
    region.place = {"spmv.c", 7};
    region.loops = {{0, rows()}, {0, entries()}, {0, static_cast<std::int64_t>(x.size())}};
    region.distributed = 1;
    region.arrays = {{"row", ElementType::i32, {rows() + 1}, true},
                     {"value", ElementType::f32, {entries()}},
                     {"x", ElementType::f32, {static_cast<std::int64_t>(x.size())}},
                     {"column", ElementType::i32, {entries()}, true},
                     {"y", ElementType::f32, {rows()}}};
    region.accesses = {reads(0, {index(0)}),   reads(0, {index(0, 1)}), gathers(1, {index(1)}),
                       gathers(2, {index(2)}), gathers(3, {index(1)}),  writes(4, {index(0)})};
    region.work = {.loads = 2, .stores = 1};
    region.turns = {{.loads = 3, .float_operations = 2}};
    region.body = multiply_body;
    return region;
  }
};

// Rows of different lengths, none among them and one full one; columns anywhere.
Matrix random_matrix(std::int64_t rows, std::uint64_t seed) {
  RandomStream random(seed);
  Matrix matrix;
  matrix.x.resize(static_cast<std::size_t>(rows));
  random.fill_uniform(matrix.x, -1, 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::set<std::int32_t> columns;
    const std::int64_t length = i == rows / 3 ? rows : static_cast<std::int64_t>(random.uniform() * 7);
    if (length == rows)
      for (std::int32_t j = 0; j < static_cast<std::int32_t>(rows); ++j) columns.insert(j);
    while (static_cast<std::int64_t>(columns.size()) < std::min(length, rows))
      columns.insert(static_cast<std::int32_t>(random.uniform() * static_cast<double>(rows)));
    matrix.column.insert(matrix.column.end(), columns.begin(), columns.end());
    matrix.row.push_back(static_cast<std::int32_t>(matrix.column.size()));
  }
  matrix.value.resize(matrix.column.size());
  random.fill_uniform(matrix.value, -1, 1);
  return matrix;
}

// Each row has itself and its two neighbours.
Matrix three_diagonals(std::int64_t rows) {
  Matrix matrix;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = std::max<std::int64_t>(0, i - 1); j <= std::min(rows - 1, i + 1); ++j)
      matrix.column.push_back(static_cast<std::int32_t>(j));
    matrix.row.push_back(static_cast<std::int32_t>(matrix.column.size()));
    matrix.x.push_back(static_cast<float>(i % 17));
  }
  matrix.value.assign(matrix.column.size(), 0.5f);
  return matrix;
}

struct Product {
  std::vector<float> y;
  Report report;
};
Product multiply(Matrix& matrix, const bsp::Device& device, const OffloadOptions& options = {},
                 int times = 1) {
  Product run;
  run.y.assign(static_cast<std::size_t>(matrix.rows()), -1);
  Offload offload(device, options);
  offload.enter(matrix.row.data(), "row", ElementType::i32, matrix.rows() + 1, Enter::to);
  offload.enter(matrix.column.data(), "column", ElementType::i32, matrix.entries(), Enter::to);
  offload.enter(matrix.value.data(), "value", ElementType::f32, matrix.entries(), Enter::to);
  offload.enter(matrix.x.data(), "x", ElementType::f32, static_cast<std::int64_t>(matrix.x.size()),
                Enter::to);
  offload.enter(run.y.data(), "y", ElementType::f32, matrix.rows(), Enter::alloc);
  void* const arrays[] = {matrix.row.data(), matrix.value.data(), matrix.x.data(), matrix.column.data(),
                          run.y.data()};
  for (int i = 0; i < times; ++i) offload.launch(matrix.region(), arrays);
  offload.leave(run.y.data(), Leave::from);
  run.report = offload.report();
  return run;
}

std::uint64_t bytes_of(const Report& report, const std::string& what) {
  for (const ReportStep& step : report.steps)
    if (step.what == what) return step.exchanged_bytes;
  return 0;
}

TEST(Gather, ProductsOfRandomMatricesHaveTheHostsBits) {
  for (const std::uint32_t tiles : {1u, 3u, 16u, 61u})
    for (const std::int64_t rows : {1, 2, 37, 200}) {
      Matrix matrix = random_matrix(rows, tiles * 1000 + static_cast<std::uint64_t>(rows));
      EXPECT_EQ(multiply(matrix, machine(tiles)).y, matrix.product())
          << tiles << " tiles, " << rows << " rows";
    }
}

TEST(Gather, OneElementWithheldIsNoticed) {
  Matrix matrix = random_matrix(200, 5);
  OffloadOptions options;
  options.withhold_halo_element = true;
  // A number that did not come leads to an element that was not asked for, or to a wrong one.
  std::vector<float> y;
  const std::string message = error_of([&] { y = multiply(matrix, machine(16), options).y; });
  EXPECT_NE(y, matrix.product());
  EXPECT_TRUE(message.empty() || message.contains("has not been received")) << message;
}

// Each tile receives what its neighbours own and it reads: one number on either side, none of it twice.
TEST(Gather, BytesAreThoseOfTheElementsThatOthersOwn) {
  Matrix matrix = three_diagonals(160);
  const Product run = multiply(matrix, machine(16), {}, 3);
  EXPECT_EQ(run.y, matrix.product());
  ASSERT_EQ(run.report.rows[0].tiles, 16u);
  // x lies evenly, 160 numbers on one tile (fewer than 256 are not spread), so that 15 tiles receive theirs.
  std::uint64_t wanted = 0;
  for (int part = 1; part < 16; ++part) wanted += part < 15 ? 12 : 11;
  EXPECT_EQ(bytes_of(run.report, "gathered x"), 4 * wanted);
  // The entries of a part's rows are its own, and lie with it.
  EXPECT_EQ(bytes_of(run.report, "gathered value"), 0u);
  EXPECT_EQ(bytes_of(run.report, "gathered column"), 0u);
}

// Sixteen long rows, then short ones: ten long rows on one tile would be two for a worker.
TEST(Gather, RowsAreDealtSoThatWorkIsEven) {
  Matrix matrix;
  for (std::int32_t i = 0; i < 160; ++i) {
    for (std::int32_t j = 0; j < (i < 16 ? 60 : 2); ++j) matrix.column.push_back(j);
    matrix.row.push_back(static_cast<std::int32_t>(matrix.column.size()));
    matrix.x.push_back(1);
  }
  matrix.value.assign(matrix.column.size(), 1);
  const Product run = multiply(matrix, machine(16));
  EXPECT_EQ(run.y, matrix.product());
  EXPECT_EQ(run.report.rows[0].tiles, 16u);
  // 60 turns of 5 cycles and 3 beside them a row, 23 to start; six workers, whose fullest counts.
  const std::uint64_t evenly = 6 * (20 + 2 * (3 + 3 + 60 * 5)), balanced = 6 * (20 + 3 + 3 + 60 * 5);
  EXPECT_GE(run.report.rows[0].compute, balanced);
  EXPECT_LT(run.report.rows[0].compute, evenly);
}

TEST(Gather, TurnsAreCounted) {
  Matrix few = three_diagonals(64), more = few;
  for (std::size_t i = 0; i < more.column.size(); ++i) more.value[i] = 1;
  // The same rows with each entry twice.
  more.column.clear();
  more.value.clear();
  for (std::size_t i = 0; i < 64; ++i) {
    for (int twice = 0; twice < 2; ++twice)
      for (std::int32_t k = few.row[i]; k < few.row[i + 1]; ++k) {
        more.column.push_back(few.column[static_cast<std::size_t>(k)]);
        more.value.push_back(0.25f);
      }
    more.row[i + 1] = static_cast<std::int32_t>(more.column.size());
  }
  const Product a = multiply(few, machine(1)), b = multiply(more, machine(1));
  EXPECT_EQ(b.y, more.product());
  EXPECT_EQ(b.report.rows[0].flops, 2 * a.report.rows[0].flops);
  EXPECT_EQ(a.report.rows[0].flops, 2 * few.column.size());
}

TEST(Gather, AnElementOutsideIsRefusedByItsNumber) {
  Matrix matrix = three_diagonals(32);
  matrix.column[5] = 99;
  const std::string message = error_of([&] { multiply(matrix, machine(4)); });
  EXPECT_NE(message.find("bounds: element 99 of x, which has 32"), std::string::npos) << message;
  EXPECT_NE(message.find("spmv.c:7"), std::string::npos) << message;
  matrix.column[5] = -1;
  EXPECT_NE(error_of([&] { multiply(matrix, machine(4)); }).find("element -1 of x"), std::string::npos);
}

// New numbers are new plans, the same ones again are none; after eight every tile has all of it.
TEST(Gather, NumbersThatChangeAreInspectedAgain) {
  Matrix matrix = three_diagonals(96);
  std::vector<float> y(96);
  Offload offload(machine(8));
  offload.enter(matrix.row.data(), "row", ElementType::i32, 97, Enter::to);
  offload.enter(matrix.column.data(), "column", ElementType::i32, matrix.entries(), Enter::to);
  offload.enter(matrix.value.data(), "value", ElementType::f32, matrix.entries(), Enter::to);
  offload.enter(matrix.x.data(), "x", ElementType::f32, 96, Enter::to);
  offload.enter(y.data(), "y", ElementType::f32, 96, Enter::alloc);
  void* const arrays[] = {matrix.row.data(), matrix.value.data(), matrix.x.data(), matrix.column.data(),
                          y.data()};
  for (int step = 0; step < 12; ++step) {
    for (std::int32_t& column : matrix.column) column = (column + 7) % 96;
    offload.update_to(matrix.column.data(), 0, matrix.entries());
    for (int again = 0; again < 2; ++again) {
      offload.launch(matrix.region(), arrays);
      offload.update_from(y.data(), 0, 96);
      EXPECT_EQ(y, matrix.product()) << step;
    }
  }
  const Report report = offload.report();
  ASSERT_EQ(report.replaced.size(), 1u);
  EXPECT_NE(report.replaced[0].find("replans: spmv.c:7"), std::string::npos) << report.replaced[0];
  EXPECT_GT(bytes_of(report, "copy of x"), 0u);
}

// Numbers that another region has written are read back before they are inspected.
TEST(Gather, NumbersMadeOnTheTilesAreFollowed) {
  Matrix matrix = three_diagonals(96);
  const std::vector<std::int32_t> wanted = matrix.column;
  std::vector<float> y(96);
  Region shift;
  shift.place = {"spmv.c", 3};
  shift.loops = {{0, matrix.entries()}};
  shift.distributed = 1;
  shift.arrays = {{"column", ElementType::i32, {matrix.entries()}}};
  shift.accesses = {updates(0, {index(0)})};
  shift.work = {.loads = 1, .stores = 1, .integer_operations = 1};
  shift.body = [](const Part& part) {
    for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i)
      part.at<std::int32_t>(0)[part.stride(0, 0) * i] -= 1;
  };
  for (std::int32_t& column : matrix.column) ++column;  // beyond the end, until the region has run
  Offload offload(machine(8));
  offload.enter(matrix.row.data(), "row", ElementType::i32, 97, Enter::to);
  offload.enter(matrix.column.data(), "column", ElementType::i32, matrix.entries(), Enter::to);
  offload.enter(matrix.value.data(), "value", ElementType::f32, matrix.entries(), Enter::to);
  offload.enter(matrix.x.data(), "x", ElementType::f32, 96, Enter::to);
  offload.enter(y.data(), "y", ElementType::f32, 96, Enter::alloc);
  void* const arrays[] = {matrix.row.data(), matrix.value.data(), matrix.x.data(), matrix.column.data(),
                          y.data()};
  void* const columns[] = {matrix.column.data()};
  offload.launch(shift, columns);
  offload.launch(matrix.region(), arrays);
  offload.leave(y.data(), Leave::from);
  matrix.column = wanted;
  EXPECT_EQ(y, matrix.product());
}

// Counting time alone needs the numbers all the same, as the program sent them.
TEST(Gather, TimingAloneCountsTheSame) {
  Matrix matrix = random_matrix(200, 11);
  OffloadOptions options;
  options.timing_only = true;
  const Report timed = multiply(matrix, machine(16), options).report,
               run = multiply(matrix, machine(16)).report;
  EXPECT_EQ(timed.cycles, run.cycles);
  EXPECT_EQ(bytes_of(timed, "gathered x"), bytes_of(run, "gathered x"));
}

}  // namespace
}  // namespace superstep::openmp
