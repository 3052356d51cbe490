// Element types under the names that the Open Inference Protocol has for them.
#pragma once

#include <string_view>

#include "superstep/base/element_type.h"

namespace superstep::edge {

const char* datatype_of(ElementType type);  // "FP32", "INT64", "BOOL"

}  // namespace superstep::edge
