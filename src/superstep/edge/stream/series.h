// Which frames of a series came: what is there twice, and what is missing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace superstep::edge {

class Series {
 public:
  explicit Series(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void announce(std::uint64_t frames) { announced_ = frames; }
  std::uint64_t announced() const { return announced_; }

  bool add(std::uint64_t number);  // false: it was there already
  bool has(std::uint64_t number) const {
    return number < end_ && (words_[number / word_bits] >> number % word_bits & 1) != 0;
  }
  std::uint64_t end() const { return end_; }  // beyond the largest that came
  std::uint64_t seen() const { return seen_; }
  // Announced ones that did not come; where nothing was announced, gaps before the last that did.
  std::uint64_t missing() const { return expected() - seen_of_expected(); }
  // The same as ranges [first, last], the first `most` of them.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing_ranges(std::size_t most) const;

 private:
  static constexpr std::uint64_t word_bits = 64;
  std::uint64_t expected() const;
  std::uint64_t seen_of_expected() const;
  std::uint64_t next(std::uint64_t from, bool there) const;

  std::string name_;
  std::uint64_t announced_ = 0, seen_ = 0, end_ = 0;
  std::vector<std::uint64_t> words_;  // of bits by number, as far as the largest that came
};

}  // namespace superstep::edge
