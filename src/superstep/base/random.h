// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011). A stream is a function of (seed, index, purpose) alone, so that sample 7 of seed 1 is the
// same bits whichever thread makes it, in whatever order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace superstep {

class RandomStream {
 public:
  // `index` is the sample (or element) the stream belongs to; `purpose` separates streams of one sample.
  explicit RandomStream(std::uint64_t seed, std::uint64_t index = 0, std::uint32_t purpose = 0);

  // What follows is what a new stream gives after so many 32-bit words (of 2^34 before they repeat).
  void seek(std::uint64_t word);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  double uniform();                         // [0, 1), 53 bits
  double uniform(double low, double high);  // [low, high)
  // What as many calls of uniform(low, high) give, rounded to f32; faster.
  void fill_uniform(std::span<float> values, double low, double high);
  std::uint64_t below(std::uint64_t bound);  // [0, bound), unbiased; bound > 0
  double normal();                           // mean 0, variance 1 (Box-Muller)
  std::uint64_t poisson(double mean);        // exact; Knuth below 10, Hoermann's PTRS above

 private:
  void refill();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  bool has_spare_ = false;
  double spare_ = 0;
};

// One Philox4x32-10 block; exposed for kernels that address numbers directly.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

}  // namespace superstep
