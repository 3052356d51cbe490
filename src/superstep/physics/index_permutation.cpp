#include "superstep/physics/index_permutation.h"

#include "superstep/base/random.h"

namespace superstep::data {

IndexPermutation::IndexPermutation(std::uint64_t seed, std::uint64_t count, std::uint32_t purpose)
    : seed_(seed), count_(count), purpose_(purpose) {
  while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < count) ++half_bits_;
}

std::uint64_t IndexPermutation::shuffle_once(std::uint64_t value) const {
  constexpr std::uint32_t rounds = 6;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const auto mixed = philox({static_cast<std::uint32_t>(right), round, purpose_, 0x5eed},
                              {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    const std::uint64_t next = left ^ (mixed[0] & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t IndexPermutation::operator()(std::uint64_t position) const {
  std::uint64_t value = shuffle_once(position);
  while (value >= count_) value = shuffle_once(value);
  return value;
}

}  // namespace superstep::data
