// Rows of packs by number, and their sums, against naive loops in f64.
#include <gtest/gtest.h>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/move/segment.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

constexpr ElementType types[] = {ElementType::f32, ElementType::bf16};

PackedRows random_rows(std::uint64_t seed) {
  RandomStream random(seed);
  const auto number = [&](std::uint64_t below) { return static_cast<std::int64_t>(random.below(below)); };
  PackedRows p{.packs = number(4), .rows = 1 + number(30), .entries = number(50), .count = 1 + number(20)};
  p.width =
      seed % 3 == 0 ? 64 * (1 + number(3)) + number(2) : number(70);  // in columns that parts share, too
  p.type = types[random.below(2)];
  p.index_type = random.below(2) ? ElementType::i64 : ElementType::i32;
  if (random.below(2)) p.index_stride = p.entries + 1 + number(4);
  if (random.below(2)) p.target_stride = p.entries + 1 + number(4);
  return p;
}

// Numbers below `rows`, one in eight of them none; packs lie `stride` apart.
class Numbers {
 public:
  Numbers(const PackedRows& p, std::int64_t stride, std::int64_t rows, std::uint64_t seed)
      : entries_(p.entries),
        stride_(stride == 0 ? p.entries : stride),
        buffer_(strided_buffer(p.index_type, {p.packs, p.entries}, {stride_, 1})) {
    RandomStream random(seed, 5);
    for (std::int64_t i = 0; i < p.packs * p.entries; ++i)
      buffer_.set(place(i), random.below(8) == 0
                                ? -1.0
                                : static_cast<double>(random.below(static_cast<std::uint64_t>(rows))));
  }
  const void* data() const { return buffer_.data(); }
  std::int64_t get(std::int64_t i) const { return static_cast<std::int64_t>(buffer_.get(place(i))); }

 private:
  std::int64_t place(std::int64_t i) const { return i / entries_ * stride_ + i % entries_; }

  std::int64_t entries_, stride_;
  GuardedBuffer buffer_;
};

GuardedBuffer values(const PackedRows& p, std::int64_t elements, std::uint64_t seed) {
  GuardedBuffer buffer(p.type, elements);
  buffer.fill_random(seed);
  return buffer;
}

// What the sums of all packs are. `row_of`: the row of the data that an entry adds, -1 for none.
template <class RowOf, class WeightOf>
std::vector<Sum> sums(const PackedRows& p, const GuardedBuffer& data, std::int64_t data_rows,
                      const Numbers& target, const RowOf& row_of, const WeightOf& weight_of) {
  std::vector<Sum> result(static_cast<std::size_t>(p.packs * p.count * p.width));
  for (std::int64_t e = 0; e < p.packs * p.entries; ++e) {
    const std::int64_t to = target.get(e), row = row_of(e);
    if (to < 0 || row < 0) continue;
    const std::int64_t pack = e / p.entries;
    for (std::int64_t i = 0; i < p.width; ++i) {
      const double term = weight_of(e) * data.get((pack * data_rows + row) * p.width + i);
      Sum& sum = result[static_cast<std::size_t>((pack * p.count + to) * p.width + i)];
      sum.value += term, sum.magnitude += std::abs(term);
    }
  }
  return result;
}

int wrong_gathered(const PackedRows& p, std::uint64_t seed) {
  const GuardedBuffer data = values(p, p.packs * p.rows * p.width, seed);
  const Numbers index(p, p.index_stride, p.rows, seed);
  GuardedBuffer y(p.type, p.packs * p.entries * p.width);
  y.fill_bits();
  run_kernel(*require_kernel(prepare_gather_packed(p)), {data.data(), index.data()}, {y.data()});
  int wrong = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t e = i / p.width;
    const std::int64_t row = index.get(e);
    const double expected = row < 0 ? 0 : data.get((e / p.entries * p.rows + row) * p.width + i % p.width);
    wrong += y.get(i) != expected;
  }
  return wrong;
}

int wrong_summed(const PackedRows& p, std::uint64_t seed, double error = 0) {
  const GuardedBuffer data = values(p, p.packs * p.entries * p.width, seed);
  const Numbers index(p, p.index_stride, p.count, seed);
  GuardedBuffer y(p.type, p.packs * p.count * p.width);
  y.fill_bits();
  run_kernel(*require_kernel(prepare_segment_sum(p)), {data.data(), index.data()}, {y.data()});
  const auto expected = sums(
      p, data, p.entries, index, [&](std::int64_t e) { return e % p.entries; },
      [](std::int64_t) { return 1.0; });
  return count_wrong(expected, static_cast<double>(p.entries), p.type,
                     [&](std::size_t i) { return y.get(static_cast<std::int64_t>(i)) + error; });
}

// Sums in f64 are right to its digits.
int wrong_wide(PackedRows p, std::uint64_t seed) {
  p.type = ElementType::f64;
  const GuardedBuffer data = values(p, p.packs * p.entries * p.width, seed);
  const Numbers index(p, p.index_stride, p.count, seed);
  GuardedBuffer y(p.type, p.packs * p.count * p.width);
  y.fill_bits();
  run_kernel(*require_kernel(prepare_segment_sum(p)), {data.data(), index.data()}, {y.data()});
  const auto expected = sums(
      p, data, p.entries, index, [&](std::int64_t e) { return e % p.entries; },
      [](std::int64_t) { return 1.0; });
  int wrong = wrong_gathered(p, seed);
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong +=
        std::abs(y.get(static_cast<std::int64_t>(i)) - expected[i].value) > 1e-14 * expected[i].magnitude;
  return wrong;
}

int wrong_products(const PackedRows& p, std::uint64_t seed) {
  const GuardedBuffer data = values(p, p.packs * p.rows * p.width, seed),
                      weight = values(p, p.packs * p.entries, seed + 1);
  const Numbers source(p, p.index_stride, p.rows, seed), target(p, p.target_stride, p.count, seed + 1);
  GuardedBuffer y(p.type, p.packs * p.count * p.width);
  y.fill_bits();
  run_kernel(*require_kernel(prepare_sparse_product(p)),
             {data.data(), source.data(), target.data(), weight.data()}, {y.data()});
  const auto expected = sums(
      p, data, p.rows, target, [&](std::int64_t e) { return source.get(e); },
      [&](std::int64_t e) { return weight.get(e); });
  return count_wrong(expected, static_cast<double>(2 * p.entries), p.type,
                     [&](std::size_t i) { return y.get(static_cast<std::int64_t>(i)); });
}

TEST(SegmentRows, InF64HaveItsDigits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) EXPECT_EQ(wrong_wide(random_rows(seed), seed), 0) << seed;
  PackedRows p{.packs = 1, .rows = 2, .entries = 2, .width = 2, .count = 2, .type = ElementType::f64};
  EXPECT_EQ(prepare_sparse_product(p).error().reason, "its weights are f32 or bf16");
}

TEST(Segment, AgreesWithNaiveLoops) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      const PackedRows p = random_rows(seed);
      EXPECT_EQ(wrong_gathered(p, seed), 0) << "rows, seed " << seed;
      EXPECT_EQ(wrong_summed(p, seed), 0) << "sums, seed " << seed;
      EXPECT_EQ(wrong_products(p, seed), 0) << "products, seed " << seed;
    }
  });
}

TEST(Segment, AWrongSumIsNoticed) {
  const PackedRows p{.packs = 2, .rows = 5, .entries = 9, .width = 7, .count = 4};
  EXPECT_EQ(wrong_summed(p, 1, 1e-5), 2 * 4 * 7);
}

TEST(Segment, AnIndexOutsideIsNamed) {
  PackedRows p{.packs = 1, .rows = 3, .entries = 2, .width = 1, .count = 3};
  const float data[] = {1, 2, 3}, weight[] = {1, 1};
  const std::int64_t good[] = {0, 2}, bad[] = {0, 3}, below[] = {-2, 0};
  float y[3] = {};
  const auto message = [&](const Prepared& kernel, std::vector<const void*> inputs) -> std::string {
    void* outputs[] = {y};
    std::vector<std::byte> scratch((*kernel)->info().scratch_bytes);
    try {
      (*kernel)->run({.inputs = inputs, .outputs = outputs, .scratch = scratch.data()});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string three = "index 3 is neither a row in [0, 3) nor -1, none";
  EXPECT_EQ(message(prepare_gather_packed(p), {data, bad}), three);
  EXPECT_EQ(message(prepare_segment_sum(p), {data, bad}), three);
  EXPECT_EQ(message(prepare_sparse_product(p), {data, bad, good, weight}), three);
  EXPECT_EQ(message(prepare_sparse_product(p), {data, good, bad, weight}), three);
  EXPECT_NE(message(prepare_gather_packed(p), {data, below}).find("index -2"), std::string::npos);
}

TEST(Segment, WhatItDoesNotKnowIsRefusedByName) {
  const PackedRows p{.packs = 1, .rows = 3, .entries = 2, .width = 1, .count = 3};
  PackedRows whole = p, bytes = p, negative = p, overlapping = p;
  whole.type = ElementType::i32, bytes.index_type = ElementType::u8, negative.count = -1;
  overlapping.target_stride = 1;
  EXPECT_EQ(to_string(prepare_segment_sum(whole).error()),
            "segment sum: rows are i32, none of f32, bf16 and f64");
  EXPECT_EQ(to_string(prepare_gather_packed(bytes).error()),
            "rows of packs: indices must be i32 or i64, not u8");
  EXPECT_EQ(to_string(prepare_sparse_product(negative).error()), "sparse product: an extent is negative");
  EXPECT_EQ(to_string(prepare_sparse_product(overlapping).error()),
            "sparse product: indices of packs overlap");
}

}  // namespace
}  // namespace superstep::kernels
