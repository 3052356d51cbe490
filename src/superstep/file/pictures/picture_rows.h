// Inside of the pictures' layer: pictures as rows of arrays.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "superstep/file/pictures/picture.h"
#include "superstep/file/source/request.h"

namespace superstep::data::pictures {

// The array that pictures become: the one of this name that is wanted, else the first of that shape that is
// not `taken`. Throws Error (unsupported) where none is wanted that a picture can become.
SourceArray picture_array(const SourceRequest& request, const std::string& name,
                          const std::string& taken = {});
// One whole number, in 64 bits whatever is wanted: classes are more than a byte holds. It has the name of the
// wanted array of this name, else of a wanted one of one integer where `any`.
SourceArray number_array(const SourceRequest& request, const std::string& name, bool any);

// Writes a picture into a row of such an array.
void put_picture(const Picture& picture, const SourceArray& array, std::byte* to);
// The same of a mask, ones and zeros.
void put_mask(const Picture& mask, int threshold, const SourceArray& array, std::byte* to);

// The rows that can be read, ascending, found on all processors, with signs of life on the terminal; what the
// others say is noted. `read` throws Error where a row cannot be read.
std::vector<std::int64_t> readable(std::int64_t rows, const std::function<void(std::int64_t row)>& read,
                                   std::vector<std::string>& notes);

}  // namespace superstep::data::pictures
