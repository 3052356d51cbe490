#include "superstep/edge/stream/series.h"

#include <algorithm>
#include <bit>

#include "superstep/edge/stream/frame.h"

namespace superstep::edge {

bool is_series_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= most_name_bytes && !name.starts_with('.') &&
         std::ranges::all_of(name, good);
}

bool Series::add(std::uint64_t number) {
  if (has(number)) return false;
  end_ = std::max(end_, number + 1);
  words_.resize((end_ + word_bits - 1) / word_bits);
  words_[number / word_bits] |= std::uint64_t{1} << number % word_bits;
  ++seen_;
  return true;
}

std::uint64_t Series::expected() const { return announced_ > 0 ? std::min(announced_, most_frames) : end_; }

std::uint64_t Series::seen_of_expected() const {
  if (end_ <= expected()) return seen_;
  std::uint64_t count = 0;
  const std::uint64_t whole = expected() / word_bits;
  for (std::uint64_t i = 0; i < whole; ++i) count += static_cast<std::uint64_t>(std::popcount(words_[i]));
  for (std::uint64_t number = whole * word_bits; number < expected(); ++number) count += has(number);
  return count;
}

// The first number from there on that came, or did not; the end where there is none before it. A word at a
// time: a series of millions of frames that never came is one that anybody may announce.
std::uint64_t Series::next(std::uint64_t from, bool there) const {
  while (from < end_) {
    const std::uint64_t word = words_[from / word_bits];
    const std::uint64_t left = (there ? word : ~word) >> from % word_bits;
    if (left != 0) return std::min(end_, from + static_cast<std::uint64_t>(std::countr_zero(left)));
    from = (from / word_bits + 1) * word_bits;
  }
  return end_;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Series::missing_ranges(std::size_t most) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::uint64_t first = next(0, false); first < expected() && ranges.size() < most;) {
    const std::uint64_t came = first < end_ ? next(first, true) : end_;
    const std::uint64_t after = came < end_ ? std::min(came, expected()) : expected();
    ranges.emplace_back(first, after - 1);
    first = came < end_ ? next(came, false) : expected();
  }
  return ranges;
}

}  // namespace superstep::edge
