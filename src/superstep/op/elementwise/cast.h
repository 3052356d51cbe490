// Conversion between element types.
#pragma once

#include <optional>

#include "superstep/op/core/definition.h"

namespace superstep::op {

// Floating to floating rounds to nearest, ties to even; floating to integer rounds toward zero, what lies
// outside the range goes to its end and NaN to 0; to bool is "not zero". x itself when it has that type.
Var cast(Var x, ElementType to);
Var bit_cast(Var x, ElementType to);  // the same bits as another type of that size

// The numbers of ONNX's TensorProto.DataType, which attributes such as Cast's `to` hold.
std::int64_t onnx_number(ElementType type);
std::optional<ElementType> element_type_from_onnx(std::int64_t number);

// The element type that an attribute of that kind names; throws Error (unsupported) on one we do not have.
ElementType element_attribute(const Attributes& attributes, std::string_view name, ElementType otherwise);

std::span<const Definition> cast_operators();

}  // namespace superstep::op
