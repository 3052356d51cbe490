// A shuffle of [0, count) that needs no memory: position i goes to shuffled(i), each value once.
//
// A Feistel network over the smallest even number of bits that holds `count`, walked until it falls inside
// (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002), with Philox as its round function.
#pragma once

#include <cstdint>

namespace superstep::data {

class IndexPermutation {
 public:
  // `count` at least 1. `purpose` separates shuffles of one seed.
  IndexPermutation(std::uint64_t seed, std::uint64_t count, std::uint32_t purpose);
  std::uint64_t operator()(std::uint64_t position) const;  // position < count

 private:
  std::uint64_t shuffle_once(std::uint64_t value) const;

  std::uint64_t seed_, count_;
  std::uint32_t purpose_;
  int half_bits_ = 1;
};

}  // namespace superstep::data
