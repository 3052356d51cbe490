// Parts of a file that are wanted one after another, read in few pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/file/packing/content.h"

namespace superstep::data {

// Of one reader's own: not thread-safe.
class RunBytes {
 public:
  explicit RunBytes(const Content& file) : file_(file) {}

  // The bytes [begin, begin + size) of the file, valid until the next call. What is not held is read together
  // with what follows it up to `run_end()`, where that is not far: samples that are wanted next.
  template <class RunEnd>
  std::span<const std::byte> part(std::uint64_t begin, std::uint64_t size, const RunEnd& run_end) {
    if (begin < begin_ || begin + size > begin_ + bytes_.size()) {
      const std::uint64_t end = run_end(), run = end > begin ? end - begin : 0;
      bytes_.resize(static_cast<std::size_t>(std::max(size, std::min(run, most))));
      begin_ = begin;
      file_.read(begin, bytes_);
    }
    return std::span(bytes_).subspan(static_cast<std::size_t>(begin - begin_),
                                     static_cast<std::size_t>(size));
  }

  static constexpr std::uint64_t most = 256 << 10;  // stays in a processor's cache: chosen

 private:
  const Content& file_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace superstep::data
