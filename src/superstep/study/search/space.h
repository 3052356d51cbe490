// What a search varies: parameters with their ranges and choices, and what each trial draws of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace superstep::study {

struct Parameter {
  enum class Kind { choice, whole, real };
  std::string name;  // of an option of superstep train, without its dashes, or of the model
  Kind kind = Kind::choice;
  double low = 0, high = 0;
  bool log = false;                  // drawn evenly in the logarithm
  std::vector<std::string> choices;  // of a choice
  bool of_model = false;             // given as --set NAME=VALUE

  // What is tried at its ends: every choice, or the smallest and the largest value.
  std::vector<std::string> extremes() const;
  // Whether a trial might draw this value.
  bool admits(const std::string& value) const;
};

// "learning-rate=1e-4..1e-2:log", "batch=16,32,64", "width=8..64" (whole numbers where both ends are written
// so), "optimizer=adam". Throws Error (invalid_argument) with the part that is wrong.
Parameter parse_parameter(const std::string& text);

// The value that trial `number` draws for parameter `index` of a search, in words: a function of these and
// the seed alone, so that every process that shares a search draws the same.
std::string drawn(const Parameter& parameter, std::uint64_t seed, std::int64_t number, std::size_t index);

// "1e-4 to 0.01 (log)", "16, 32, 64".
std::string range_words(const Parameter& parameter);

}  // namespace superstep::study
