// One axis of a Resize as a sparse matrix. The formulas are those of the ONNX specification of Resize.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/shape.h"
#include "superstep/base/tensor.h"
#include "superstep/graph/attributes.h"

namespace superstep::op {

struct ResizeAxis {
  std::int64_t input = 1, output = 1;
  double scale = 1;                   // output / input before the output was rounded to a whole number
  double roi_begin = 0, roi_end = 1;  // tf_crop_and_resize: the part taken, as shares of the input
};

struct ResizeTap {
  std::int64_t position;
  double weight;
};
// An output element: the sum of weight * input[position].
struct ResizeRow {
  std::vector<ResizeTap> taps;
  bool outside = false;  // tf_crop_and_resize: takes the extrapolation value instead
};
using ResizeRows = std::vector<ResizeRow>;  // of an axis

// The axes of a Resize node, one for each of x's; null inputs are left out.
std::vector<ResizeAxis> resize_axes(const graph::Attributes& attributes, const Shape& x, const Tensor* roi,
                                    const Tensor* scales, const Tensor* sizes);

std::vector<ResizeRow> resize_rows(const graph::Attributes& attributes, const ResizeAxis& axis);

// True when the rows copy the input as it is.
bool is_identity(const ResizeAxis& axis, const std::vector<ResizeRow>& rows);

// What a Resize, Upsample or superstep.ResizeGradient does along every axis of its result, which are rows of
// its input 0 of shape `x`; no rows where the axis stays as it is. `inputs` are the elements of roi, scales
// and sizes where the operator has them, null elsewhere.
std::vector<ResizeRows> resize_rows_of(std::string_view op, const graph::Attributes& attributes,
                                       const Shape& x, std::span<const Tensor* const> inputs);

// y: x resampled along each axis that has rows, in double and rounded once.
void resample(const Tensor& x, std::span<const ResizeRows> axes, double extrapolation, Tensor& y);

}  // namespace superstep::op
