// Frames of X-ray detectors as files: where their numbers lie.
//   EDF  European Data Format of the ESRF: a header in braces, numbers; several frames in a file
//   CBF  miniCBF of Dectris: a text, numbers packed by differences ("byte offset", the Crystallographic
//   Binary
//        File's own; H. J. Bernstein and A. P. Hammersley, International Tables for Crystallography G, 2.3)
//   IMG  SMV of ADSC and others: a header in braces that says how long it is, numbers
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/system/stable_file.h"

namespace superstep::data {

struct Frame {
  ElementType type = ElementType::u16;
  std::int64_t height = 0, width = 0;
  std::uint64_t begin = 0, size = 0;  // of its bytes in the file
  bool swapped = false;               // big-endian
  bool packed = false;                // by differences

  std::size_t unpacked_bytes() const {
    return static_cast<std::size_t>(height * width) * size_in_bytes(type);
  }
};

// Whether a file begins as one of them does.
bool is_frame_file(const std::filesystem::path& path);

// All frames of a file. Throws Error: bad_file (what is wrong, or cut short), unsupported (another packing,
// another type of numbers, which it names).
std::vector<Frame> frames_of(const StableFile& file);

// The numbers of a frame, unpacked_bytes() of them. Throws Error (bad_file, io).
void read_frame(const StableFile& file, const Frame& frame, std::span<std::byte> to);

}  // namespace superstep::data
