// Which element types operators take.
#pragma once

#include <span>
#include <string_view>

#include "superstep/base/element_type.h"

namespace superstep::op {

// Of the data inputs of an operator (not of indices, shapes or axes); of one without data inputs, of its
// result.
struct TypeClass {
  std::string_view name;  // "floating", "any"
  std::span<const ElementType> types;
};

const TypeClass* element_types(std::string_view op);  // null for a name without a row

}  // namespace superstep::op
