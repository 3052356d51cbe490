// Programs of target regions on the tiles, beside plain loops.
#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>

#include "superstep/base/random.h"
#include "tests/openmp/support.h"

namespace superstep::openmp {
namespace {

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  RandomStream random(seed);
  random.fill_uniform(values, -1, 1);
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const ReportRow& row(const Report& report, const std::string& what) {
  for (const ReportRow& row : report.rows)
    if (row.what == what) return row;
  throw Error(ErrorCode::not_found, "no row " + what);
}

// v[i][j] = u[i][j] + c * (u[i-1][j] + u[i+1][j] + u[i][j-1] + u[i][j+1] - 4 u[i][j])
struct Heat {
  float c;
};
float heat(float up, float down, float left, float right, float middle, float c) {
  return middle + c * (up + down + left + right - 4 * middle);
}
void heat_body(const Part& part) {
  const float c = part.scalar<Heat>().c;
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i)
    for (std::int64_t j = part.begin[1]; j < part.end[1]; ++j) {
      const auto at = [&](int access) -> float& {
        return part.at<float>(access)[part.stride(access, 0) * i + part.stride(access, 1) * j];
      };
      at(5) = heat(at(0), at(1), at(2), at(3), at(4), c);
    }
}
Region heat_region(std::int64_t rows, std::int64_t columns, float c) {
  Region region;
  region.place = {"heat.c", 12};
  region.loops = {{1, rows - 1}, {1, columns - 1}};
  region.distributed = 2;
  region.arrays = {{"u", ElementType::f32, {rows, columns}}, {"v", ElementType::f32, {rows, columns}}};
  region.accesses = {reads(0, {index(0, -1), index(1)}), reads(0, {index(0, 1), index(1)}),
                     reads(0, {index(0), index(1, -1)}), reads(0, {index(0), index(1, 1)}),
                     reads(0, {index(0), index(1)}),     writes(1, {index(0), index(1)})};
  region.work = {.loads = 5, .stores = 1, .float_operations = 6};
  region.scalars = scalar_bytes(Heat{c});
  region.body = heat_body;
  return region;
}
void heat_on_host(std::vector<float>& u, std::vector<float>& v, std::size_t rows, std::size_t columns,
                  float c) {
  for (std::size_t i = 1; i + 1 < rows; ++i)
    for (std::size_t j = 1; j + 1 < columns; ++j) {
      const std::size_t at = i * columns + j;
      v[at] = heat(u[at - columns], u[at + columns], u[at - 1], u[at + 1], u[at], c);
    }
}

struct HeatRun {
  std::vector<float> u;
  Report report;
};
HeatRun run_heat(std::int64_t rows, std::int64_t columns, int steps, const bsp::Device& device,
                 const OffloadOptions& options = {}) {
  HeatRun run;
  run.u = numbers(static_cast<std::size_t>(rows * columns), 1);
  std::vector<float> v = run.u;
  Offload offload(device, options);
  offload.enter(run.u.data(), "u", ElementType::f32, rows * columns, Enter::to);
  offload.enter(v.data(), "v", ElementType::f32, rows * columns, Enter::to);
  const Region region = heat_region(rows, columns, 0.2f);
  void* arrays[] = {run.u.data(), v.data()};
  for (int step = 0; step < steps; ++step) {
    offload.launch(region, arrays);
    std::swap(arrays[0], arrays[1]);
  }
  offload.leave(v.data(), Leave::from);
  offload.leave(run.u.data(), Leave::from);
  if (arrays[0] != run.u.data()) run.u = v;
  run.report = offload.report();
  return run;
}

TEST(Offload, HeatHasTheBitsOfTheSerialLoop) {
  for (const std::uint32_t tiles : {1u, 3u, 16u, 61u}) {
    constexpr std::size_t rows = 40, columns = 53;
    std::vector<float> u = numbers(rows * columns, 1), v = u;
    for (int step = 0; step < 11; ++step) {
      heat_on_host(u, v, rows, columns, 0.2f);
      std::swap(u, v);
    }
    const HeatRun run = run_heat(rows, columns, 11, machine(tiles));
    EXPECT_TRUE(same_bits(run.u, u)) << tiles << " tiles";
    const HeatRun threads = run_heat(rows, columns, 11, machine(tiles), {.threads = 3});
    EXPECT_TRUE(same_bits(threads.u, u));
    EXPECT_EQ(threads.report.cycles, run.report.cycles);
    const HeatRun counted = run_heat(rows, columns, 11, machine(tiles), {.timing_only = true});
    EXPECT_EQ(counted.report.cycles, run.report.cycles);
  }
}

TEST(Offload, AWithheldElementOfAHaloShows) {
  constexpr std::size_t rows = 40, columns = 53;
  std::vector<float> u = numbers(rows * columns, 1), v = u;
  for (int step = 0; step < 11; ++step) {
    heat_on_host(u, v, rows, columns, 0.2f);
    std::swap(u, v);
  }
  EXPECT_FALSE(same_bits(run_heat(rows, columns, 11, machine(16), {.withhold_halo_element = true}).u, u));
  EXPECT_TRUE(
      same_bits(run_heat(rows, columns, 11, machine(1), {.withhold_halo_element = true}).u, u));  // no halo
}

// 64 x 64 inner cells on 16 tiles are 4 x 4 blocks of 16 x 16: 24 sides between blocks, 16 cells each way.
TEST(Offload, HalosAreThePerimeter) {
  const HeatRun run = run_heat(66, 66, 100, machine_without_fragments(16));
  const ReportRow& heat = row(run.report, "heat.c:12");
  EXPECT_EQ(heat.launches, 100u);
  EXPECT_EQ(heat.tiles, 16u);
  EXPECT_EQ(heat.flops, 100u * 64 * 64 * 6);
  // The footprint's box has corners too: 9 where four blocks meet, each sending its neighbour across one
  // element, and 12 ends of sides at the border, one element each way.
  EXPECT_EQ(heat.exchanged_bytes, 100u * 4 * (24 * 16 * 2 + 9 * 4 + 12 * 2));
  ASSERT_EQ(run.report.captured.size(), 1u);
  EXPECT_EQ(run.report.captured[0], "50 x (2 steps)");
  // The parts of all rows are the machine's cycles, and each has its share.
  std::uint64_t cycles = 0;
  for (const ReportRow& each : run.report.rows) cycles += each.cycles();
  EXPECT_EQ(cycles, run.report.cycles);
  for (const std::uint64_t part : {heat.compute, heat.exchange, heat.sync}) {
    EXPECT_GT(part, 0u);
    EXPECT_LT(part, run.report.cycles);
  }
  // 16 x 16 cells in six shares of rows, the fullest of 3: 20 + 3 rows of 3 + 48 cells of 12 cycles.
  EXPECT_EQ(heat.compute, 100u * 6 * (20 + 3 * 3 + 48 * 12));
}

// u = sin(pi i / (n - 1)) sin(pi j / (n - 1)) shrinks by 1 - 8 c sin^2(pi / (2 (n - 1))) a step.
TEST(Offload, AModeDecaysByItsFactor) {
  constexpr std::int64_t n = 33;
  std::vector<float> u(n * n), v(n * n);
  const double angle = M_PI / (n - 1);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      u[static_cast<std::size_t>(i * n + j)] = static_cast<float>(std::sin(angle * static_cast<double>(i)) *
                                                                  std::sin(angle * static_cast<double>(j)));
  Offload offload(machine(25));
  offload.enter(u.data(), "u", ElementType::f32, n * n, Enter::to);
  offload.enter(v.data(), "v", ElementType::f32, n * n, Enter::to);
  const Region region = heat_region(n, n, 0.1f);
  for (int step = 0; step < 50; ++step) {
    offload.launch(region, std::vector<void*>{u.data(), v.data()});
    offload.launch(region, std::vector<void*>{v.data(), u.data()});
  }
  offload.update_from(u.data(), 0, n * n);
  const double factor = std::pow(1 - 8 * 0.1 * std::pow(std::sin(angle / 2), 2), 100);
  EXPECT_NEAR(u[(n / 2) * n + n / 2], factor, 2e-5);
}

// a[i] += b[i] * c: on one array, and reductions of all kinds.
void triad_body(const Part& part) {
  const float c = part.scalar<Heat>().c;
  float* a = part.at<float>(0);
  const float* b = part.at<float>(1);
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i)
    a[part.stride(0, 0) * i] += c * b[part.stride(1, 0) * i];
}

TEST(Offload, ArraysSeenInTwoShapes) {
  constexpr std::int64_t rows = 20, columns = 24, count = rows * columns;
  Region triad;
  triad.place = {"two.c", 5};
  triad.loops = {{3, count - 2}};
  triad.distributed = 1;
  triad.arrays = {{"a", ElementType::f32, {count}}, {"b", ElementType::f32, {count}}};
  triad.accesses = {updates(0, {index(0)}), reads(1, {index(0)})};
  triad.scalars = scalar_bytes(Heat{0.5f});
  triad.body = triad_body;
  const Region heat = heat_region(rows, columns, 0.2f);
  for (const bool first : {false, true}) {
    std::vector<float> a = numbers(count, 3), b = numbers(count, 4), host_a = a, host_b = b;
    Offload offload(machine(13));
    offload.enter(a.data(), "a", ElementType::f32, count, Enter::to);
    offload.enter(b.data(), "b", ElementType::f32, count, Enter::to);
    for (int turn = 0; turn < 3; ++turn) {
      if (first || turn > 0) {
        offload.launch(triad, std::vector<void*>{a.data(), b.data()});
        for (std::size_t i = 3; i < count - 2; ++i) host_a[i] += 0.5f * host_b[i];
      }
      offload.launch(heat, std::vector<void*>{a.data(), b.data()});
      heat_on_host(host_a, host_b, rows, columns, 0.2f);
      if (turn == 1) {  // the host looks in, and puts some of its own there
        offload.update_from(a.data(), 17, 200);
        EXPECT_EQ(std::memcmp(a.data() + 17, host_a.data() + 17, 183 * sizeof(float)), 0);
        for (std::size_t i = 30; i < 77; ++i) a[i] = host_a[i] = static_cast<float>(i);
        offload.update_to(a.data(), 30, 77);
      }
    }
    offload.leave(a.data(), Leave::from);
    offload.leave(b.data(), Leave::from);
    EXPECT_TRUE(same_bits(a, host_a));
    EXPECT_TRUE(same_bits(b, host_b));
  }
}

struct Sums {
  double unused;
};
void sums_body(const Part& part) {
  const std::int32_t* x = part.at<std::int32_t>(0);
  const float* f = part.at<float>(1);
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i) {
    const std::int32_t value = x[part.stride(0, 0) * i];
    part.reduction<std::int32_t>(0) += value;
    part.reduction<std::int32_t>(1) = std::min(part.reduction<std::int32_t>(1), value);
    part.reduction<std::int32_t>(2) ^= value;
    part.reduction<float>(3) += f[part.stride(1, 0) * i];
    (&part.reduction<std::int32_t>(4))[value & 7] += 1;  // a section of 8
  }
}

TEST(Offload, Reductions) {
  constexpr std::int64_t count = 5000;
  std::vector<std::int32_t> x(count);
  RandomStream random(8);
  for (std::int32_t& value : x) value = static_cast<std::int32_t>(random.below(100000)) - 50000;
  std::vector<float> f = numbers(count, 9);
  for (const std::uint32_t tiles : {1u, 7u, 100u}) {
    std::vector<std::int32_t> sum{5}, least{7}, bits{3}, histogram{1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<float> total{0.25f};
    Region region;
    region.place = {"sums.c", 3};
    region.loops = {{0, count}};
    region.distributed = 1;
    region.arrays = {{"x", ElementType::i32, {count}},    {"f", ElementType::f32, {count}},
                     {"sum", ElementType::i32, {1}},      {"least", ElementType::i32, {1}},
                     {"bits", ElementType::i32, {1}},     {"total", ElementType::f32, {1}},
                     {"histogram", ElementType::i32, {8}}};
    region.accesses = {reads(0, {index(0)}), reads(1, {index(0)})};
    region.reductions = {{2, Operator::add},
                         {3, Operator::minimum},
                         {4, Operator::bit_xor},
                         {5, Operator::add},
                         {6, Operator::add}};
    region.work = {.loads = 2, .integer_operations = 6, .float_operations = 1};
    region.body = sums_body;
    std::vector<void*> arrays{x.data(),    f.data(),     sum.data(),      least.data(),
                              bits.data(), total.data(), histogram.data()};
    Offload offload(machine(tiles), {.threads = 2});
    for (std::size_t i = 0; i < arrays.size(); ++i)
      offload.enter(arrays[i], region.arrays[i].name, region.arrays[i].type, region.arrays[i].count(),
                    Enter::to);
    offload.launch(region, arrays);
    offload.launch(region, arrays);
    for (void* array : arrays) offload.leave(array, Leave::from);

    std::int32_t host_sum = 5, host_least = 7, host_bits = 3;
    std::vector<std::int32_t> host_histogram{1, 2, 3, 4, 5, 6, 7, 8};
    double magnitude = 0.25, exact = 0.25;
    for (int turn = 0; turn < 2; ++turn)
      for (std::size_t i = 0; i < count; ++i) {
        host_sum += x[i];
        host_least = std::min(host_least, x[i]);
        host_bits ^= x[i];
        host_histogram[static_cast<std::size_t>(x[i] & 7)] += 1;
        exact += static_cast<double>(f[i]);
        magnitude += std::abs(static_cast<double>(f[i]));
      }
    EXPECT_EQ(sum[0], host_sum);
    EXPECT_EQ(least[0], host_least);
    EXPECT_EQ(bits[0], host_bits);
    EXPECT_EQ(histogram, host_histogram);
    EXPECT_NEAR(total[0], exact, 2 * 2 * count * 6e-8 * magnitude);
  }
}

// c[i][j] += sum over k of a[i][k] * b[k][j], in the order of k.
void product_body(const Part& part) {
  const auto inner = part.scalar<std::int64_t>();
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i)
    for (std::int64_t j = part.begin[1]; j < part.end[1]; ++j) {
      float& c = part.at<float>(0)[part.stride(0, 0) * i + part.stride(0, 1) * j];
      for (std::int64_t k = 0; k < inner; ++k)
        c += part.at<float>(1)[part.stride(1, 0) * i + part.stride(1, 2) * k] *
             part.at<float>(2)[part.stride(2, 2) * k + part.stride(2, 1) * j];
    }
}

TEST(Offload, ProductsOfRaggedMatrices) {
  constexpr std::int64_t m = 37, n = 29, inner = 41;
  Region region;
  region.place = {"product.c", 4};
  region.loops = {{0, m}, {0, n}, {0, inner}};
  region.distributed = 2;
  region.arrays = {{"c", ElementType::f32, {m, n}},
                   {"a", ElementType::f32, {m, inner}},
                   {"b", ElementType::f32, {inner, n}}};
  region.accesses = {updates(0, {index(0), index(1)}), reads(1, {index(0), index(2)}),
                     reads(2, {index(2), index(1)})};
  region.work = {.loads = 2 * inner + 1, .stores = 1, .float_operations = 2 * inner, .inner_loops = 1};
  region.scalars = scalar_bytes(inner);
  region.body = product_body;
  std::vector<float> a = numbers(m * inner, 1), b = numbers(inner * n, 2), c(m * n), host = c;
  Offload offload(machine(20));
  offload.enter(c.data(), "c", ElementType::f32, m * n, Enter::to);
  offload.enter(a.data(), "a", ElementType::f32, m * inner, Enter::to);
  offload.enter(b.data(), "b", ElementType::f32, inner * n, Enter::to);
  for (int turn = 0; turn < 2; ++turn)
    offload.launch(region, std::vector<void*>{c.data(), a.data(), b.data()});
  offload.leave(c.data(), Leave::from);
  run_on_host(region, {host.data(), a.data(), b.data()});
  run_on_host(region, {host.data(), a.data(), b.data()});
  EXPECT_TRUE(same_bits(c, host));
  std::vector<float> plain(m * n);
  for (int turn = 0; turn < 2; ++turn)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t k = 0; k < inner; ++k) plain[i * n + j] += a[i * inner + k] * b[k * n + j];
  EXPECT_TRUE(same_bits(plain, host));
}

void double_body(const Part& part) {
  double* a = part.at<double>(0);
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i) {
    double& x = a[part.stride(0, 0) * i];
    x = x * 1.000000000000001 + 1e-13;
  }
}

TEST(Offload, DoublesAreExactAndCostTheirSoftware) {
  constexpr std::int64_t count = 900;
  std::vector<double> a(count), host(count);
  for (std::size_t i = 0; i < count; ++i) a[i] = host[i] = 1.0 / static_cast<double>(i + 1);
  Region region;
  region.place = {"double.c", 4};
  region.loops = {{0, count}};
  region.distributed = 1;
  region.arrays = {{"a", ElementType::f64, {count}}};
  region.accesses = {updates(0, {index(0)})};
  region.work = {.loads = 1, .stores = 1, .float_operations = 2};
  region.body = double_body;
  Offload offload(machine(3));
  offload.enter(a.data(), "a", ElementType::f64, count, Enter::to);
  offload.launch(region, std::vector<void*>{a.data()});
  offload.leave(a.data(), Leave::from);
  for (double& x : host) x = x * 1.000000000000001 + 1e-13;
  EXPECT_EQ(a, host);
  const Report report = offload.report();
  EXPECT_EQ(row(report, "double.c:4").compute, 6u * (20 + 3 + 50 * (2 + 2 * 100)));
}

TEST(Offload, ReferencesAreCounted) {
  std::vector<float> a(64, 1.0f);
  Region region;
  region.place = {"count.c", 1};
  region.loops = {{0, 64}};
  region.distributed = 1;
  region.arrays = {{"a", ElementType::f32, {64}}, {"b", ElementType::f32, {64}}};
  region.accesses = {updates(0, {index(0)}), reads(1, {index(0)})};
  region.scalars = scalar_bytes(Heat{1.0f});
  region.body = triad_body;
  std::vector<float> b(64, 2.0f);
  Offload offload(machine(4));
  offload.enter(b.data(), "b", ElementType::f32, 64, Enter::to);
  offload.enter(a.data(), "a", ElementType::f32, 64, Enter::to);
  a.assign(64, 50.0f);
  offload.enter(a.data(), "a", ElementType::f32, 64, Enter::to);  // there already: moves nothing
  offload.launch(region, std::vector<void*>{a.data(), b.data()});
  offload.leave(a.data(), Leave::from);  // one reference is left: moves nothing
  EXPECT_EQ(a[0], 50.0f);
  EXPECT_TRUE(offload.present(a.data()));
  offload.leave(a.data(), Leave::from);
  EXPECT_EQ(a, std::vector<float>(64, 3.0f));
  EXPECT_FALSE(offload.present(a.data()));
  // The same memory again: the program that was compiled for it is used again.
  for (int turn = 0; turn < 3; ++turn) {
    offload.enter(a.data(), "a", ElementType::f32, 64, Enter::to);
    offload.launch(region, std::vector<void*>{a.data(), b.data()});
    offload.leave(a.data(), Leave::from);
  }
  EXPECT_EQ(a, std::vector<float>(64, 9.0f));
  const Report report = offload.report();
  EXPECT_EQ(report.programs, 2u);  // the first also brought b
  EXPECT_EQ(report.runs, 4u);
  EXPECT_EQ(row(report, "count.c:1").launches, 4u);
  std::ostringstream text;
  print_report(text, report);
  EXPECT_NE(text.str().find("count.c:1"), std::string::npos);
}

// a = a + s * b with another s each time, as the steps of an iterative solver have it.
struct ScaledSums {
  std::vector<float> a = std::vector<float>(640, 1.0f), b = numbers(640, 3), expected = a;
  Region region;

  ScaledSums() {
    region.place = {"axpy.c", 1};
    region.loops = {{0, 640}};
    region.distributed = 1;
    region.arrays = {{"a", ElementType::f32, {640}}, {"b", ElementType::f32, {640}}};
    region.accesses = {updates(0, {index(0)}), reads(1, {index(0)})};
    region.body = triad_body;
  }
  void launch(Offload& offload, float s) {
    region.scalars = scalar_bytes(Heat{s});
    offload.launch(region, std::vector<void*>{a.data(), b.data()});
    for (std::size_t i = 0; i < a.size(); ++i) expected[i] = expected[i] + s * b[i];
  }
};

TEST(Offload, ScalarsAreDataAndNotTheProgram) {
  ScaledSums sums;
  Offload offload(machine(8));
  offload.enter(sums.a.data(), "a", ElementType::f32, 640, Enter::to);
  offload.enter(sums.b.data(), "b", ElementType::f32, 640, Enter::to);
  for (int step = 0; step < 20; ++step) {
    sums.launch(offload, 0.25f + 0.125f * static_cast<float>(step));
    offload.update_from(sums.a.data(), 0, 640);
    EXPECT_EQ(sums.a, sums.expected) << "step " << step;
  }
  // With the arrays' way to the device, the first scalar in it; then with scalars that are sent.
  EXPECT_EQ(offload.report().programs, 2u);
}

TEST(Offload, ScalarsThatChangeInOneQueueAreCapturedAsALoop) {
  ScaledSums sums;
  Offload offload(machine(8));
  offload.enter(sums.a.data(), "a", ElementType::f32, 640, Enter::to);
  offload.enter(sums.b.data(), "b", ElementType::f32, 640, Enter::to);
  for (int step = 0; step < 30; ++step) sums.launch(offload, 1.0f / static_cast<float>(1 + step));
  offload.leave(sums.a.data(), Leave::from);
  EXPECT_EQ(sums.a, sums.expected);
  EXPECT_EQ(offload.report().programs, 1u);
  EXPECT_EQ(offload.report().captured, std::vector<std::string>{"30 x (2 steps)"});
}

TEST(Offload, ScalarsThatStayCostNothing) {
  const auto host_cycles = [](float second) {
    ScaledSums sums;
    Offload offload(machine(8));
    offload.enter(sums.a.data(), "a", ElementType::f32, 640, Enter::to);
    offload.enter(sums.b.data(), "b", ElementType::f32, 640, Enter::to);
    sums.launch(offload, 0.5f);
    sums.launch(offload, second);
    offload.leave(sums.a.data(), Leave::from);
    return row(offload.report(), "axpy.c:1").host;
  };
  EXPECT_EQ(host_cycles(0.5f), 0u);
  EXPECT_GT(host_cycles(0.75f), 0u);
}

TEST(Offload, RegionsWithoutIterations) {
  std::vector<float> u = numbers(12, 1), before = u;
  Offload offload(machine(4));
  offload.enter(u.data(), "u", ElementType::f32, 12, Enter::to);
  Region region;
  region.place = {"none.c", 1};
  region.loops = {{5, 5}};
  region.distributed = 1;
  region.arrays = {{"u", ElementType::f32, {12}}};
  region.accesses = {writes(0, {index(0)})};
  region.body = no_body;
  offload.launch(region, std::vector<void*>{u.data()});
  offload.leave(u.data(), Leave::from);
  EXPECT_EQ(u, before);
}

}  // namespace
}  // namespace superstep::openmp
