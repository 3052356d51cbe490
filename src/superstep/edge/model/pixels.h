// Pixels of detectors as the numbers that models take.
#pragma once

#include <span>

#include "superstep/base/element_type.h"

namespace superstep::edge {

// f32 = scale x pixel. Of unsigned whole numbers the largest of the type means "no data", as detectors have
// it, and becomes 0 where `marks_gaps`. `pixels` need not be aligned.
void convert_pixels(ElementType element, std::span<const std::byte> pixels, float scale, bool marks_gaps,
                    std::span<float> values);

}  // namespace superstep::edge
