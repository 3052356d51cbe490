// Numbers of a file in another unit: arrays that are multiplied and shifted as they are read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// scale x value + offset, by the name that the array has where it is read.
struct Scaling {
  enum class Kind {
    factor,
    logarithm,  // log(1 + value), for counts
    unit,       // each row from 0 to 1, by its own least and largest value
  };
  std::string array;
  Kind kind = Kind::factor;
  // One, or one for each index of the first axis of a row (the channels of a picture).
  std::vector<double> scale{1}, offset{0};
  bool required = true;  // data without such an array are refused

  friend bool operator==(const Scaling&, const Scaling&) = default;
};

// "x=0.1", "x=log", "x=unit", "image=4.4,4.5,4.4" beside "x=-3": in the order in which arrays are first
// named. Throws Error (invalid_argument) naming the option: what is no such text, an array named twice, a
// factor of 0.
std::vector<Scaling> scalings_from_text(std::span<const std::string> scales,
                                        std::span<const std::string> offsets);

// "multiplied by 0.1, then -3 added".
std::string to_string(const Scaling& scaling);

// `values` of one row; as many as are a multiple of the channels. A logarithm that does not exist is NaN or
// infinite.
void scale_row(const Scaling& scaling, std::span<double> values);

// The value that becomes `scaled`, where all elements of a row are treated alike and each alone; else none.
std::optional<double> unscaled(const Scaling& scaling, double scaled);

// f32 of what f32 holds exactly (u16 and shorter, f16, bf16, f32), else f64, so that whole numbers stay what
// they are.
ElementType scaled_type(ElementType stored);

// The source with these arrays scaled, which is told in its notes. An array without a name, alone, is the
// only one that is named. Throws Error: not_found (no such array, and it is required), bad_file (as many
// channels as it has not).
std::unique_ptr<SampleSource> scaled_source(std::unique_ptr<SampleSource> source,
                                            std::span<const Scaling> scalings);

// Throws Error (invalid_argument) where an array is to be scaled that nobody reads.
void require_read(std::span<const Scaling> scalings, std::span<const std::string> names,
                  const std::string& where);

}  // namespace superstep::data
