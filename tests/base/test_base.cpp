#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/base/shape.h"
#include "superstep/base/tensor.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"

namespace superstep {
namespace {

TEST(ElementType, HalfRoundTripsEveryValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = f16::widen(static_cast<std::uint16_t>(bits));
    if (std::isnan(wide)) continue;
    ASSERT_EQ(f16::round_from(wide), bits);
  }
}

TEST(ElementType, HalfRoundsTiesToEvenAndOverflows) {
  EXPECT_EQ(f16(1.0f + 0x1p-11f).bits, f16(1.0f).bits);
  EXPECT_EQ(f16(1.0f + 3 * 0x1p-11f).bits, f16(1.0f + 0x1p-9f).bits);
  EXPECT_EQ(f16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(f16(0x1p-25f).bits, 0);
}

TEST(ElementType, Bfloat16KeepsNanAndRoundsToEven) {
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(static_cast<float>(bf16(1.0f + 0x1p-8f)), 1.0f);
  EXPECT_EQ(static_cast<float>(bf16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);
}

TEST(Shape, BroadcastsAndRefuses) {
  EXPECT_EQ(broadcast_shapes({8, 1, 6, 1}, {7, 1, 5}), (Shape{8, 7, 6, 5}));
  EXPECT_THROW(broadcast_shapes({3}, {4}), Error);
  EXPECT_THROW(Shape({-1}), Error);
  EXPECT_THROW(Shape({std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
}

TEST(Tensor, ConvertsWithRoundingAndKeepsLargeIntegers) {
  const Tensor large = Tensor::from<std::int64_t>({1}, {(std::int64_t{1} << 60) + 1});
  EXPECT_EQ(large.converted(ElementType::u64).as<std::uint64_t>()[0], (std::uint64_t{1} << 60) + 1);
  EXPECT_THROW(large.as<float>(), Error);
  EXPECT_THROW(Tensor::from<float>({2, 2}, {1.0f}), Error);
}

TEST(Tensor, ARecipeIsMadeOnceForWhoReadsItAndNotForWhoCopiesIt) {
  int made = 0;
  const Tensor recipe = Tensor::generated(ElementType::i32, {3}, [&made](std::byte* elements) {
    ++made;
    const std::int32_t values[] = {4, 5, 6};
    std::memcpy(elements, values, sizeof values);
  });
  std::int32_t copy[3] = {};
  recipe.copy_to(reinterpret_cast<std::byte*>(copy));
  EXPECT_EQ(copy[2], 6);
  EXPECT_EQ(made, 1);
  const Tensor same = recipe;
  EXPECT_EQ(recipe.at(1), 5);
  EXPECT_EQ(same.as<std::int32_t>().data(), recipe.as<std::int32_t>().data());
  EXPECT_EQ(made, 2);
  EXPECT_EQ(recipe.reshaped({3, 1}).clone().at(0), 4);
  EXPECT_EQ(made, 2);
}

TEST(Tensor, ARecipeIsMadeByOneOfManyThreads) {
  std::atomic<int> made = 0;
  const Tensor recipe = Tensor::generated(ElementType::u8, {1000}, [&](std::byte* elements) {
    ++made;
    for (int i = 0; i < 1000; ++i) elements[i] = static_cast<std::byte>(i % 251);
  });
  ThreadPool pool(4);
  std::atomic<std::int64_t> sum = 0;
  pool.parallel_for(1000, [&](std::int64_t i, int) { sum += static_cast<std::int64_t>(recipe.at(i)); });
  EXPECT_EQ(made, 1);
  std::int64_t expected = 0;
  for (int i = 0; i < 1000; ++i) expected += i % 251;
  EXPECT_EQ(sum, expected);
}

TEST(Tensor, ZerosAreKnownUntilTheyAreMade) {
  const Tensor zeros = Tensor::generated(ElementType::f32, {2});
  EXPECT_TRUE(zeros.is_zeros_unmade());
  EXPECT_FALSE(Tensor(ElementType::f32, {2}).is_zeros_unmade());
  float copy[2] = {1, 1};
  zeros.copy_to(reinterpret_cast<std::byte*>(copy));
  EXPECT_EQ(copy[0] + copy[1], 0);
  EXPECT_EQ(zeros.at(0), 0);
  EXPECT_FALSE(zeros.is_zeros_unmade());
}

TEST(Tensor, CanLieOverMemoryOfSomebodyElse) {
  std::shared_ptr<std::byte> memory(new std::byte[8], std::default_delete<std::byte[]>());
  const Tensor view = Tensor::over(ElementType::i64, {1}, memory);
  const std::int64_t value = 42;
  std::memcpy(memory.get(), &value, sizeof value);
  EXPECT_EQ(view.as<std::int64_t>()[0], 42);
  memory.reset();
  EXPECT_EQ(view.clone().as<std::int64_t>()[0], 42);
}

TEST(Random, SeekingGoesToAWord) {
  RandomStream all(5, 7, 9);
  std::vector<std::uint32_t> words;
  for (int i = 0; i < 23; ++i) words.push_back(all.next_u32());
  for (const std::size_t word : {0u, 1u, 4u, 7u, 22u}) {
    RandomStream stream(5, 7, 9);
    stream.normal();  // leaves a number over, which seeking forgets
    stream.seek(word);
    EXPECT_EQ(stream.next_u32(), words[word]) << word;
  }
}

// Known-answer vectors of Philox4x32-10 from the authors' Random123 distribution.
TEST(Random, PhiloxMatchesPublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, ManyUniformValuesAreThoseOfSingleCalls) {
  for (const int before : {0, 1, 2, 3, 4})
    for (const std::size_t count : {0u, 1u, 2u, 3u, 64u, 65u}) {
      RandomStream one(7, 3), many(7, 3);
      for (int i = 0; i < before; ++i) EXPECT_EQ(one.next_u32(), many.next_u32());
      std::vector<float> values(count);
      many.fill_uniform(values, -0.3, 0.7);
      for (const float value : values) EXPECT_EQ(value, static_cast<float>(one.uniform(-0.3, 0.7)));
      EXPECT_EQ(one.next_u32(), many.next_u32());
    }
}

TEST(Random, PoissonHasItsMomentsOnBothBranches) {
  for (double mean : {0.3, 4.0, 9.9, 10.1, 50.0, 3000.0}) {
    double sum = 0, squares = 0;
    constexpr int count = 40000;
    for (int i = 0; i < count; ++i) {
      RandomStream random(5, static_cast<std::uint64_t>(i));
      const auto value = static_cast<double>(random.poisson(mean));
      sum += value;
      squares += value * value;
    }
    const double measured = sum / count, variance = squares / count - measured * measured;
    EXPECT_NEAR(measured, mean, 5 * std::sqrt(mean / count)) << mean;
    EXPECT_NEAR(variance / mean, 1.0, 5 * std::sqrt((2 + 1 / mean) / count)) << mean;
  }
}

TEST(Text, NearestName) {
  const std::vector<std::string> known{"braggnn", "mlp", "cifar10-cnn"};
  EXPECT_EQ(nearest_name("bragnn", known), "braggnn");
  EXPECT_EQ(nearest_name("transformer", known), std::nullopt);
}

TEST(Text, Quantities) {
  EXPECT_EQ(format_count(33172), "33,172");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_si(104.2e9, "FLOP/s"), "104 GFLOP/s");
  EXPECT_EQ(format_seconds(0.0000123), "12.3 us");
  EXPECT_EQ(format_seconds(125), "2:05 min");
}

TEST(File, AtomicWriteLeavesTheOldFileWhenItFails) {
  const auto folder = std::filesystem::temp_directory_path() / "superstep-test-file";
  make_folder(folder);
  write_file_atomically(folder / "a.txt", "one");
  EXPECT_EQ(read_text_file(folder / "a.txt"), "one");
  EXPECT_THROW(write_file_atomically(folder / "missing" / "a.txt", "two"), Error);
  EXPECT_THROW(write_file_atomically("/dev/full", "two"), Error);
  EXPECT_THROW(read_text_file(folder / "b.txt"), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace superstep
