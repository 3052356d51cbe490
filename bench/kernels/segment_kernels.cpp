// Rows by number and their sums, over packs of molecules as the polymer networks have them, beside a copy of
// as many bytes as they must move at least: in turn, the best of several runs each.
//   bench_segment_kernels [packs ...]
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/kernels/peak.h"
#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/move/segment.h"

namespace superstep::bench {
namespace {

using namespace kernels;

// Atoms and bonds, each in both directions, of a pack of polymer-gcn; rows of its hidden layers.
constexpr std::int64_t atoms = 256, edges = 576, graphs = 24, width = 128;

struct Memory {
  std::vector<float> values;
  std::vector<std::int64_t> near, pooled;
  std::vector<float> from, to;  // of the copy
};

// Bonds join atoms that stand close to each other.
Memory random_memory(std::int64_t packs, double most_bytes) {
  RandomStream random(1);
  Memory m;
  m.values.resize(static_cast<std::size_t>(packs * edges * width));
  for (float& value : m.values) value = static_cast<float>(random.uniform(-1, 1));
  for (std::int64_t e = 0; e < packs * edges; ++e)
    m.near.push_back(std::min<std::int64_t>(
        atoms - 1, e % edges * atoms / edges + static_cast<std::int64_t>(random.below(6))));
  for (std::int64_t a = 0; a < packs * atoms; ++a) m.pooled.push_back(a % atoms * graphs / atoms);
  m.from.assign(static_cast<std::size_t>(most_bytes / 8) + 16, 1.0f);
  m.to.assign(m.from.size(), 0.0f);
  return m;
}

void measure(const char* name, const Prepared& kernel, Memory& m, const std::vector<const void*>& inputs,
             std::vector<float>& y) {
  const KernelInfo& info = (*kernel)->info();
  std::vector<std::byte> scratch(info.scratch_bytes + 64);
  void* outputs[] = {y.data()};
  const auto half = static_cast<std::size_t>(info.bytes / 2);  // a copy reads as much as it writes
  double own = 1e30, copy = 1e30;
  for (int round = 0; round < 5; ++round) {
    own = std::min(
        own,
        best_seconds(
            [&] { (*kernel)->run({.inputs = inputs, .outputs = outputs, .scratch = scratch.data()}); }, 3));
    copy = std::min(copy, best_seconds([&] { std::memcpy(m.to.data(), m.from.data(), half); }, 3));
  }
  fmt::print("{:<16} {:>9.1f} {:>9.2f} {:>9.2f} {:>7.0f} % {:>8.1f}\n", name, own * 1e6, info.bytes / 1e6,
             info.bytes / own / 1e9, 100 * copy / own, info.flops / own / 1e9);
}

void bench_packs(std::int64_t packs) {
  fmt::print("\n{} packs of {} atoms and {} edges, rows of {}\n", packs, atoms, edges, width);
  fmt::print("{:<16} {:>9} {:>9} {:>9} {:>9} {:>8}\n", "kernel", "us", "MB", "GB/s", "of a copy", "GFLOP/s");
  const auto bytes = static_cast<double>(packs * (edges + atoms) * width * 4 + packs * edges * 20);
  Memory m = random_memory(packs, bytes);
  std::vector<float> y(static_cast<std::size_t>(packs * edges * width));
  const PackedRows p{.packs = packs, .rows = atoms, .entries = edges, .width = width, .count = atoms};
  PackedRows pool = p;
  pool.entries = atoms, pool.count = graphs;
  measure("rows to edges", prepare_gather_packed(p), m, {m.values.data(), m.near.data()}, y);
  measure("edges to rows", prepare_segment_sum(p), m, {m.values.data(), m.near.data()}, y);
  measure("sparse product", prepare_sparse_product(p), m,
          {m.values.data(), m.near.data(), m.near.data(), m.values.data()}, y);
  measure("add pool", prepare_segment_sum(pool), m, {m.values.data(), m.pooled.data()}, y);
}

}  // namespace
}  // namespace superstep::bench

int main(int count, char** words) {
  std::vector<std::int64_t> packs;
  for (int i = 1; i < count; ++i) packs.push_back(std::atoll(words[i]));
  if (packs.empty()) packs = {1, 4, 64};
  for (const std::int64_t each : packs) superstep::bench::bench_packs(std::max<std::int64_t>(1, each));
}
