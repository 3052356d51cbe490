// Heat flow on a plate as the target regions of
//
//     #pragma omp target data map(tofrom: u[0:n*n]) map(to: v[0:n*n])
//     for (int step = 0; step < steps; step++) {
//       #pragma omp target teams distribute parallel for collapse(2)                               // line 3
//       for (int i = 1; i < n - 1; i++)
//         for (int j = 1; j < n - 1; j++)
//           v[i*n+j] = u[i*n+j] + c * (u[(i-1)*n+j] + u[(i+1)*n+j] + u[i*n+j-1] + u[i*n+j+1] - 4*u[i*n+j]);
//       swap(u, v);
//     }
//     #pragma omp target teams distribute parallel for collapse(2) map(tofrom: sum) reduction(+: sum)   //
//     line 9 for (int i = 0; i < n; i++)
//       for (int j = 0; j < n; j++) sum += u[i*n+j];
//
// run on the tiles of a GC200, with their tables written by hand.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/openmp/offload.h"

using namespace superstep;
using namespace superstep::openmp;

constexpr std::int64_t n = 258;
constexpr int steps = 100;

static float average(float middle, float up, float down, float left, float right, float c) {
  return middle + c * (up + down + left + right - 4 * middle);
}

// The accesses in the order of the table: middle, up, down, left, right, and the result.
static void step_body(const Part& part) {
  const auto c = part.scalar<float>();
  const auto element = [&](int access, std::int64_t i, std::int64_t j) -> float& {
    return part.at<float>(access)[part.stride(access, 0) * i + part.stride(access, 1) * j];
  };
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i)
    for (std::int64_t j = part.begin[1]; j < part.end[1]; ++j)
      element(5, i, j) = average(element(0, i, j), element(1, i, j), element(2, i, j), element(3, i, j),
                                 element(4, i, j), c);
}

static void sum_body(const Part& part) {
  for (std::int64_t i = part.begin[0]; i < part.end[0]; ++i)
    for (std::int64_t j = part.begin[1]; j < part.end[1]; ++j)
      part.reduction<float>(0) += part.at<float>(0)[part.stride(0, 0) * i + part.stride(0, 1) * j];
}

// u[(i + rows) * n + j + columns]: as the program has it, one number of an element.
static Access at(int array, std::int64_t rows, std::int64_t columns, bool writes = false) {
  return {array, !writes, writes, {Affine{rows * n + columns, {n, 1}}}, 6};
}

static Region step_region(float c) {
  Region region;
  region.place = {"heat.c", 3};
  region.loops = {{1, n - 1}, {1, n - 1}};
  region.distributed = 2;
  region.arrays = {{"u", ElementType::f32, {n * n}}, {"v", ElementType::f32, {n * n}}};
  region.accesses = {at(0, 0, 0), at(0, -1, 0), at(0, 1, 0), at(0, 0, -1), at(0, 0, 1), at(1, 0, 0, true)};
  region.work.loads = 5;
  region.work.stores = 1;
  region.work.float_operations = 6;
  region.scalars = scalar_bytes(c);
  region.body = step_body;
  split_linear_subscripts(region);
  return region;
}

static Region sum_region() {
  Region region;
  region.place = {"heat.c", 9};
  region.loops = {{0, n}, {0, n}};
  region.distributed = 2;
  region.arrays = {{"u", ElementType::f32, {n * n}}, {"sum", ElementType::f32, {1}}};
  region.accesses = {at(0, 0, 0)};
  region.reductions = {{1, Operator::add}};
  region.work.loads = 1;
  region.work.float_operations = 1;
  region.body = sum_body;
  split_linear_subscripts(region);
  return region;
}

static void run() {
  constexpr float c = 0.2f;
  std::vector<float> u(n * n, 0.0f);
  for (std::size_t j = 0; j < n; ++j) u[j] = 100;  // a hot border
  std::vector<float> v = u, host_u = u, host_v = u;
  std::vector<float> sum(1, 0.0f);

  Offload offload(bsp::gc200_device());
  offload.enter(u.data(), "u", ElementType::f32, n * n, Enter::to);
  offload.enter(v.data(), "v", ElementType::f32, n * n, Enter::to);
  offload.enter(sum.data(), "sum", ElementType::f32, 1, Enter::to);
  const Region step = step_region(c);
  void* arrays[] = {u.data(), v.data()};
  for (int i = 0; i < steps; ++i) {
    offload.launch(step, arrays);
    std::swap(arrays[0], arrays[1]);
  }
  void* summed[] = {u.data(), sum.data()};
  offload.launch(sum_region(), summed);
  offload.leave(sum.data(), Leave::from);
  offload.leave(u.data(), Leave::from);
  offload.leave(v.data(), Leave::release);

  double total = 0;
  for (int s = 0; s < steps; ++s) {
    for (std::size_t i = 1; i + 1 < n; ++i)
      for (std::size_t j = 1; j + 1 < n; ++j) {
        const std::size_t k = i * n + j;
        host_v[k] = average(host_u[k], host_u[k - n], host_u[k + n], host_u[k - 1], host_u[k + 1], c);
      }
    std::swap(host_u, host_v);
  }
  for (const float x : host_u) total += static_cast<double>(x);
  const bool same = std::memcmp(u.data(), host_u.data(), u.size() * sizeof(float)) == 0;
  fmt::print("u: {} the serial loops' bits; sum {:.0f}, in double precision on the host {:.0f}\n",
             same ? "has" : "has not", sum[0], total);
  print_report(std::cout, offload.report());
  if (!same) throw Error(ErrorCode::internal, "the plate differs from that of the serial loops");
}

int main() {
  try {
    run();
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
