// The element types that operators take, by name and as a list.
#pragma once

#include <span>
#include <string_view>

#include "superstep/base/element_type.h"
#include "superstep/op/core/traits.h"

namespace superstep::op {

struct TypeClass {
  std::string_view name;  // "floating", "any"
  std::span<const ElementType> types;
};

const TypeClass* element_types(Elements elements);  // null for what is not stated

}  // namespace superstep::op
