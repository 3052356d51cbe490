// Which token follows: the likeliest, or one that is drawn.
#pragma once

#include <cstdint>
#include <span>

#include "superstep/base/random.h"

namespace superstep::language {

struct SamplingSettings {
  double temperature = 0;  // scores are divided by it; 0: always the likeliest
  std::int64_t top_k = 0;  // of so many of the likeliest; 0: of all
  double top_p = 1;        // of the fewest likeliest whose probabilities add to this
  std::uint64_t seed = 1;
};

class Sampler {
 public:
  // Throws Error (invalid_argument) naming the setting that is out of its range.
  explicit Sampler(const SamplingSettings& settings);

  // The same settings and scores give the same tokens. Throws Error (diverged) where a score is no number.
  std::int32_t next(std::span<const float> scores);

 private:
  SamplingSettings settings_;
  RandomStream random_;
};

}  // namespace superstep::language
