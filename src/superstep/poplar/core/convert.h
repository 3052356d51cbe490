// Values of the host's types as elements of a device's type.
#pragma once

#include <optional>
#include <poplar/Type.hpp>
#include <poplar/TypeTraits.hpp>
#include <string>

#include "superstep/base/tensor.h"

namespace poplar::core {

// A tensor of `shape` whose elements are the values at `source`, row-major, or all of them the one there
// (`splat`). Floating-point values round to nearest; to an integer type they are cut towards zero. An integer
// that the type holds neither signed nor unsigned is an overflow_error that names `who`.
superstep::Tensor device_values(const Type& type, superstep::Shape shape, const void* source,
                                const TypeTraits& traits, bool splat, const std::string& who);

// One value for all elements as the machine keeps it; none where that would change it (large integers, some
// NaN): then it goes by device_values.
std::optional<double> device_splat(const Type& type, const void* source, const TypeTraits& traits,
                                   const std::string& who);

}  // namespace poplar::core
