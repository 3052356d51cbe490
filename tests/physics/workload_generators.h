// What the tests of the workloads' generators share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "superstep/physics/generator.h"

namespace superstep::data {

inline std::unique_ptr<Generator> make_generator(const std::string& name,
                                                 std::vector<std::string> settings = {}) {
  const GeneratorEntry& entry = find_generator(name);
  return entry.make(Options(entry.options, settings));
}

// One field of what generate_in_memory made.
inline const Tensor& field(const Generator& generator, const std::vector<Tensor>& made,
                           std::string_view name) {
  for (std::size_t i = 0; i < made.size(); ++i)
    if (generator.fields()[i].name == name) return made[i];
  throw Error(ErrorCode::internal, "no such field", std::string(name));
}

inline double mean(const Tensor& values) {
  double sum = 0;
  for (std::int64_t i = 0; i < values.element_count(); ++i) sum += values.at(i);
  return sum / static_cast<double>(values.element_count());
}

inline double variance(const Tensor& values) {
  double sum = 0;
  const double middle = mean(values);
  for (std::int64_t i = 0; i < values.element_count(); ++i)
    sum += (values.at(i) - middle) * (values.at(i) - middle);
  return sum / static_cast<double>(values.element_count());
}

inline double mean_square_difference(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) sum += (a.at(i) - b.at(i)) * (a.at(i) - b.at(i));
  return sum / static_cast<double>(a.element_count());
}

inline void expect_same_bytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].byte_count(), b[i].byte_count());
    EXPECT_EQ(std::memcmp(a[i].bytes(), b[i].bytes(), a[i].byte_count()), 0) << "field " << i;
  }
}

// The same samples from one thread, from three, and from a fresh generator asked for the last one alone.
inline void expect_same_bits_on_any_threads(const std::string& name, std::uint64_t count,
                                            const std::vector<std::string>& settings = {}) {
  ThreadPool one(1), three(3);
  const auto generator = make_generator(name, settings), again = make_generator(name, settings);
  const auto made = generate_in_memory(*generator, 11, 0, count, one);
  expect_same_bytes(made, generate_in_memory(*again, 11, 0, count, three));
  const auto fresh = make_generator(name, settings);
  const auto last = generate_in_memory(*fresh, 11, count - 1, 1, one);
  bool another_seed_differs = false;
  const auto other = generate_in_memory(*generator, 12, 0, count, one);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::size_t size = last[i].byte_count();
    EXPECT_EQ(std::memcmp(made[i].bytes() + (count - 1) * size, last[i].bytes(), size), 0) << "field " << i;
    another_seed_differs |= std::memcmp(made[i].bytes(), other[i].bytes(), made[i].byte_count()) != 0;
  }
  EXPECT_TRUE(another_seed_differs);
}

}  // namespace superstep::data
