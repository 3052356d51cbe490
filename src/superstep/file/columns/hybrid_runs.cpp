#include "superstep/file/columns/hybrid_runs.h"

#include <algorithm>
#include <cstring>

namespace superstep::data::columns {

std::uint64_t bits_of(std::span<const std::byte> bytes, std::size_t bit, int width) {
  if (width == 0) return 0;
  const std::size_t first = bit / 8;
  const int inside = static_cast<int>(bit % 8);
  std::uint64_t low = 0;
  const std::size_t there = first < bytes.size() ? std::min<std::size_t>(8, bytes.size() - first) : 0;
  if (there > 0) std::memcpy(&low, bytes.data() + first, there);
  std::uint64_t value = low >> inside;
  if (inside + width > 64 && first + 8 < bytes.size())
    value |= std::to_integer<std::uint64_t>(bytes[first + 8]) << (64 - inside);
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

bool HybridRuns::next_run() {
  std::uint64_t head = 0;
  for (int shift = 0;; shift += 7) {
    if (at_ == bytes_.size() || shift > 35) return false;
    const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
    head |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  packed_ = head & 1;
  if (packed_) {
    // Eight numbers at a time; of the last ones the bytes that are not needed may not be there.
    const std::uint64_t bytes = (head >> 1) * static_cast<std::uint64_t>(width_);
    const std::size_t there = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, bytes_.size() - at_));
    bit_ = 8 * at_;
    left_ = width_ == 0 ? static_cast<std::size_t>(8 * (head >> 1))
                        : 8 * there / static_cast<std::size_t>(width_);
    at_ += there;
  } else {
    left_ = static_cast<std::size_t>(head >> 1);
    const auto size = static_cast<std::size_t>((width_ + 7) / 8);
    if (bytes_.size() - at_ < size) return false;
    value_ = static_cast<std::uint32_t>(bits_of(bytes_.subspan(at_, size), 0, static_cast<int>(8 * size)));
    if (width_ < 32 && value_ >> width_ != 0) return false;
    at_ += size;
  }
  return true;
}

bool HybridRuns::take(std::span<std::uint32_t> to) {
  while (!to.empty()) {
    if (left_ == 0 && !next_run()) return false;
    const std::size_t some = std::min(left_, to.size());
    if (packed_) {
      for (std::size_t i = 0; i < some; ++i, bit_ += static_cast<std::size_t>(width_))
        to[i] = static_cast<std::uint32_t>(bits_of(bytes_, bit_, width_));
    } else {
      std::fill_n(to.begin(), some, value_);
    }
    left_ -= some;
    to = to.subspan(some);
  }
  return true;
}

}  // namespace superstep::data::columns
