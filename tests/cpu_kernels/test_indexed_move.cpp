#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/move/indexed_move.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"
#include "tests/cpu_kernels/support/random_strides.h"

namespace superstep::kernels {
namespace {

// A move whose data have `slots` slots along each component in front of axes of their own, in any order, and
// whose other side lies in any order, with gaps.
struct Problem {
  IndexedMove move;
  std::int64_t data_size = 1, other_size = 1, index_size = 1;
};

Problem random_problem(std::uint64_t seed) {
  RandomStream random(seed);
  Problem p;
  const std::int64_t components = draw(random, 1, 2), rows = draw(random, 0, 2), indexed = draw(random, 1, 2);
  std::vector<std::int64_t> slots, own, chosen;
  for (std::int64_t i = 0; i < components; ++i) slots.push_back(draw(random, 1, 5));
  for (std::int64_t i = 0; i < rows; ++i) own.push_back(draw(random, seed % 7 == 0 ? 0 : 1, 20));
  for (std::int64_t i = 0; i < indexed; ++i) chosen.push_back(draw(random, 1, 6));
  std::vector<std::int64_t> data = own, other = own, index = chosen;
  data.insert(data.end(), slots.begin(), slots.end());
  other.insert(other.end(), chosen.begin(), chosen.end());
  index.push_back(components);
  const auto data_strides = scattered_strides(random, data, p.data_size),
             other_strides = scattered_strides(random, other, p.other_size),
             index_strides = scattered_strides(random, index, p.index_size);
  for (std::size_t i = 0; i < own.size(); ++i)
    p.move.axes.push_back({own[i], data_strides[i], other_strides[i], 0, true});
  for (std::size_t i = 0; i < chosen.size(); ++i)
    p.move.axes.push_back({chosen[i], 0, other_strides[own.size() + i], index_strides[i], false});
  for (std::size_t i = 0; i < slots.size(); ++i)
    p.move.components.push_back(
        {static_cast<std::int64_t>(i) * index_strides.back(), slots[i], data_strides[own.size() + i]});
  if (seed % 2 == 0) p.move.index_type = ElementType::i32;
  return p;
}

// visit(d, o) for every place, in the order of the loop.
template <class Visit>
void naive(const IndexedMove& m, const GuardedBuffer& index, const Visit& visit) {
  std::vector<std::int64_t> at(m.axes.size(), 0);
  if (std::ranges::any_of(m.axes, [](const auto& axis) { return axis.extent == 0; })) return;
  for (;;) {
    std::int64_t d = 0, o = 0, place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      d += at[i] * m.axes[i].data;
      o += at[i] * m.axes[i].other;
      place += at[i] * m.axes[i].index;
    }
    for (const auto& component : m.components) {
      const auto chosen = static_cast<std::int64_t>(index.get(place + component.offset));
      d += (chosen < 0 ? chosen + component.extent : chosen) * component.stride;
    }
    visit(d, o);
    std::size_t axis = at.size();
    while (axis-- > 0) {
      if (++at[axis] < m.axes[axis].extent) break;
      at[axis] = 0;
    }
    if (axis == static_cast<std::size_t>(-1)) return;
  }
}

GuardedBuffer random_indices(const Problem& p, std::uint64_t seed) {
  RandomStream random(seed + 1000);
  GuardedBuffer index(p.move.index_type, p.index_size);
  std::int64_t least = 1000;
  for (const auto& component : p.move.components) least = std::min(least, component.extent);
  for (std::int64_t i = 0; i < index.size(); ++i)
    index.set(i, static_cast<double>(draw(random, -least, least - 1)));
  return index;
}

std::vector<double> values_of(const GuardedBuffer& buffer) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < buffer.size(); ++i) values.push_back(buffer.get(i));
  return values;
}

std::int64_t differences(const GuardedBuffer& buffer, const std::vector<double>& expected, double tolerance) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < buffer.size(); ++i)
    wrong += !(std::abs(buffer.get(i) - expected[static_cast<std::size_t>(i)]) <= tolerance);
  return wrong;
}

TEST(IndexedMove, GathersWhateverTheStridesAre) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Problem p = random_problem(seed);
    constexpr ElementType types[] = {ElementType::f32, ElementType::bf16, ElementType::i64, ElementType::u8};
    p.move.type = p.move.other_type = types[seed % 4];
    GuardedBuffer data(p.move.type, p.data_size), y(p.move.type, p.other_size);
    data.fill_random(seed, 0, 100);
    y.fill(77);
    const GuardedBuffer index = random_indices(p, seed);
    std::vector<double> expected = values_of(y);
    naive(p.move, index,
          [&](std::int64_t d, std::int64_t o) { expected[static_cast<std::size_t>(o)] = data.get(d); });
    run_kernel(*require_kernel(prepare_indexed_gather(p.move)), {data.data(), index.data()}, {y.data()});
    EXPECT_EQ(differences(y, expected, 0), 0) << seed;
  }
}

double combined(Combination how, double old, double update) {
  switch (how) {
    case Combination::add: return old + update;
    case Combination::multiply: return old * update;
    case Combination::largest: return std::max(old, update);
    case Combination::least: return std::min(old, update);
    default: return update;
  }
}

TEST(IndexedMove, ScattersWhateverTheStridesAre) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Problem p = random_problem(seed);
    const auto how = static_cast<Combination>(seed / 3 % 5);
    const bool narrow = how != Combination::replace && seed % 3 == 0;
    p.move.other_type = narrow ? ElementType::bf16 : ElementType::f32;
    GuardedBuffer data(ElementType::f32, p.data_size), updates(p.move.other_type, p.other_size);
    data.fill_random(seed);
    updates.fill_random(seed + 1);
    const GuardedBuffer index = random_indices(p, seed);
    std::vector<double> expected = values_of(data);
    naive(p.move, index, [&](std::int64_t d, std::int64_t o) {
      double& place = expected[static_cast<std::size_t>(d)];
      place = combined(how, place, updates.get(o));
    });
    run_kernel(*require_kernel(prepare_indexed_scatter(p.move, how)), {updates.data(), index.data()},
               {data.data()});
    EXPECT_EQ(differences(data, expected, 1e-5), 0) << seed;
    if (expected.empty()) continue;
    expected[0] += 1;
    EXPECT_EQ(differences(data, expected, 1e-5), 1) << seed;
  }
}

// Large enough for threads: parts run one after the other here, and each is given bits of the whole.
TEST(IndexedMove, DividesLargeMoves) {
  IndexedMove move{.axes = {{64, 600, 400, 0, true}, {40, 0, 10, 1, false}, {10, 1, 1, 0, true}},
                   .components = {{0, 60, 10}}};
  const KernelPointer gather = require_kernel(prepare_indexed_gather(move)),
                      scatter = require_kernel(prepare_indexed_scatter(move, Combination::add));
  EXPECT_EQ(gather->info().parts, 32);
  EXPECT_EQ(scatter->info().parts, 32);
  move.axes[0].apart = move.axes[2].apart = false;
  EXPECT_EQ(require_kernel(prepare_indexed_scatter(move, Combination::add))->info().parts, 1);
}

// Sums of rows of 64 floats, as messages along the edges of a graph are added: their rows meet, so columns
// are divided, in whole lines of a cache.
TEST(IndexedMove, PartsThatScatterShareNoCacheLine) {
  IndexedMove move{.axes = {{160, 0, 64, 1, false}, {64, 1, 1, 0, true}}, .components = {{0, 48, 64}}};
  EXPECT_EQ(require_kernel(prepare_indexed_scatter(move, Combination::add))->info().parts, 4);
  EXPECT_EQ(require_kernel(prepare_indexed_gather(move))->info().parts, 32);  // rows of 256 bytes
  move.axes = {{4000, 0, 8, 1, false}, {8, 1, 1, 0, true}};
  EXPECT_EQ(require_kernel(prepare_indexed_scatter(move, Combination::add))->info().parts, 1);
}

TEST(IndexedMove, NamesAnIndexThatLiesOutside) {
  const IndexedMove move{.axes = {{2, 0, 1, 1, false}}, .components = {{0, 3, 1}}};
  const std::int64_t index[] = {2, 3};
  float data[3] = {}, y[2] = {};
  try {
    run_kernel(*require_kernel(prepare_indexed_gather(move)), {data, index}, {y});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("index 3 of input indices lies outside [-3, 2]"),
              std::string::npos);
  }
  IndexedMove wrong = move;
  wrong.index_type = ElementType::f32;
  EXPECT_EQ(prepare_indexed_gather(wrong).error().reason, "indices of f32");
  wrong = move;
  wrong.type = ElementType::u8;
  EXPECT_EQ(prepare_indexed_scatter(wrong, Combination::add).error().reason, "f32 is not combined with u8");
}

}  // namespace
}  // namespace superstep::kernels
