// Angles of rotary positions (J. Su et al., arXiv 2104.09864), and how they are stretched for longer texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace superstep::language {

struct RotaryScaling {
  enum class Kind : std::uint8_t { none, linear, llama3 } kind = Kind::none;
  double factor = 1;  // linear: all angles divided by it (S. Chen et al., arXiv 2306.15595)
  // llama3: turns longer than original_length / low are divided by the factor, those shorter than
  // original_length / high stay, between them the two are mixed (as Llama 3.1 is configured).
  double low = 1, high = 4, original_length = 8192;
  bool operator==(const RotaryScaling&) const = default;
};

// The radians by which pair i of a head turns at each position, i in [0, head size / 2).
std::vector<double> rotary_frequencies(std::int64_t head_size, double base,
                                       const RotaryScaling& scaling = {});

// "none", "linear:4", "llama3:8,1,4,8192" (factor, low, high, original length). Throws Error
// (invalid_argument) on anything else.
RotaryScaling rotary_scaling_from_text(const std::string& text);

}  // namespace superstep::language
