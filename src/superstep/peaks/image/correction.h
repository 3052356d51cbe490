// What is done to the pixels of a frame before spots are looked for: dark, flat field, pixels without data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "superstep/base/element_type.h"

namespace superstep::peaks {

// (counts - dark) * gain by pixel, row-major; an empty list means 0, 1 and none.
struct Correction {
  int height = 0, width = 0;
  std::vector<float> dark, gain;
  std::vector<std::uint8_t> bad;  // not 0: the pixel has no data

  std::size_t pixels() const { return static_cast<std::size_t>(height) * static_cast<std::size_t>(width); }
};

struct CorrectionFiles {
  std::filesystem::path dark, flat, mask;  // empty: none
};

// Frames of the files, of height x width pixels each; of several frames in a file the mean is taken. The gain
// is the mean of the flat field (less the dark) over it; where that is not positive the pixel is bad. In a
// mask a pixel that is not 0 is bad. Throws Error naming the file: another size, no number, no pixel left.
Correction read_correction(const CorrectionFiles& files, int height, int width);

// The largest value of a type of whole numbers, infinity and NaN say that a pixel has no data, as detectors
// write them.
template <class T>
bool is_no_data(T value) {
  if constexpr (std::is_integral_v<T>)
    return value == std::numeric_limits<T>::max();
  else
    return !(static_cast<float>(value) - static_cast<float>(value) == 0.0f);
}

// A frame as it was read, and its corrected values; those of pixels without data are NaN.
class Frame {
 public:
  Frame(ElementType type, const std::byte* pixels, const Correction& correction)
      : type_(type), pixels_(pixels), correction_(&correction) {}

  ElementType type() const { return type_; }
  const std::byte* pixels() const { return pixels_; }
  const Correction& correction() const { return *correction_; }
  int height() const { return correction_->height; }
  int width() const { return correction_->width; }
  // From pixel `first` on.
  void values(std::size_t first, std::span<float> to) const;

 private:
  ElementType type_;
  const std::byte* pixels_;
  const Correction* correction_;
};

// Throws Error (unsupported) for pixels that are no numbers a detector gives: booleans, 64 bits.
void require_pixels(ElementType type, const std::string& where);

// What `body` does with the type of the pixels: one of those that require_pixels() takes.
template <class Body>
void for_pixels(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::u8: return body.template operator()<std::uint8_t>();
    case ElementType::i8: return body.template operator()<std::int8_t>();
    case ElementType::u16: return body.template operator()<std::uint16_t>();
    case ElementType::i16: return body.template operator()<std::int16_t>();
    case ElementType::u32: return body.template operator()<std::uint32_t>();
    case ElementType::i32: return body.template operator()<std::int32_t>();
    case ElementType::f32: return body.template operator()<float>();
    case ElementType::f64: return body.template operator()<double>();
    default: throw Error(ErrorCode::internal, "pixels of this type were not refused");
  }
}

}  // namespace superstep::peaks
