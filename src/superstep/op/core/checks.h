// What shape rules share: refusals that name the operator's input and say what was expected.
//
// Every function throws Error (bad_graph). Inputs are named as the ONNX specification names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/op/core/definition.h"

namespace superstep::op {

[[noreturn]] void refuse(const std::string& message);

void require_floating(const InferContext& context, std::size_t input, std::string_view name);
void require_integer(const InferContext& context, std::size_t input, std::string_view name);
void require_numeric(const InferContext& context, std::size_t input, std::string_view name);  // no bool
void require_boolean(const InferContext& context, std::size_t input, std::string_view name);
void require_scalar(const InferContext& context, std::size_t input, std::string_view name);  // one element
void require_rank(const InferContext& context, std::size_t input, std::string_view name, int rank);
void require_min_rank(const InferContext& context, std::size_t input, std::string_view name, int rank);
void require_shape(const InferContext& context, std::size_t input, std::string_view name, const Shape& shape);
void require_same_element(const InferContext& context, std::size_t input, std::string_view name,
                          std::size_t like, std::string_view like_name);

// Refuses with `message` unless `holds`.
void require(bool holds, const std::string& message);

// The axis counted from the front; negative axes count from the back.
int checked_axis(std::int64_t axis, int rank, std::string_view what = "axis");
// All of them, sorted; refuses an axis given twice.
std::vector<int> checked_axes(const std::vector<std::int64_t>& axes, int rank,
                              std::string_view what = "axes");

// NumPy's broadcasting of the shapes of all inputs.
Shape broadcast_inputs(const InferContext& context);
Shape checked_broadcast(const Shape& a, const Shape& b, std::string_view what);

std::vector<std::int64_t> integers_of(const Tensor& tensor);  // any integer type
std::int64_t integer_of(const Tensor& tensor);                // of one element

}  // namespace superstep::op
