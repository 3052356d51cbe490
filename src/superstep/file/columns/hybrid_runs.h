// Small numbers as Parquet packs them: runs of one number, and numbers of a few bits side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace superstep::data::columns {

// `width` bits, 0 to 32 (parquet-format, Encodings.md: RLE / bit-packing hybrid).
class HybridRuns {
 public:
  HybridRuns(std::span<const std::byte> bytes, int width) : bytes_(bytes), width_(width) {}
  // The next ones. False where the bytes end before, or are none of this kind.
  bool take(std::span<std::uint32_t> to);

 private:
  bool next_run();

  std::span<const std::byte> bytes_;
  int width_;
  std::size_t at_ = 0;
  // The run that is being read: of one number, or packed from this bit on.
  std::size_t left_ = 0, bit_ = 0;
  bool packed_ = false;
  std::uint32_t value_ = 0;
};

// `width` bits at bit `bit`, the lowest first; those behind the end are 0. `width` at most 64.
std::uint64_t bits_of(std::span<const std::byte> bytes, std::size_t bit, int width);

}  // namespace superstep::data::columns
