// Tensors as lines of text, for a program that prints them while it runs.
#pragma once

#include <iosfwd>
#include <string>

#include "superstep/base/shape.h"
#include "superstep/bsp/graph/type.h"

namespace superstep::bsp {

// "title: [1.0000000 2.0000000]": seven digits after the point, rows of a matrix on lines of their own, and
// long dimensions cut to their first and last three elements once there are more than 1,000 elements in all.
void print_tensor(std::ostream& out, const std::string& title, Type type, const Shape& shape,
                  const std::byte* data);

}  // namespace superstep::bsp
