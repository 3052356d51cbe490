// One axis of a Resize as a sparse matrix. The formulas are those of the ONNX specification of Resize.
#pragma once

#include <string>
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

// The axes of a Resize node, one for each of x's; null inputs are left out.
std::vector<ResizeAxis> resize_axes(const graph::Attributes& attributes, const Shape& x, const Tensor* roi,
                                    const Tensor* scales, const Tensor* sizes);

std::vector<ResizeRow> resize_rows(const graph::Attributes& attributes, const ResizeAxis& axis);

// True when the rows copy the input as it is.
bool is_identity(const ResizeAxis& axis, const std::vector<ResizeRow>& rows);

}  // namespace superstep::op
