// Images and windows over them, as convolutions and pooling see them.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// A micro-batch of images stored [height][width][batch][channels] ("HWNC"): channels are contiguous, the
// micro-batch lies next to them, so that a run of `width` x `batch` positions is one long row of equally
// spaced columns and a convolution becomes a sum of matrix products over it.
//
// Element (h, w, n, c) lies at h * row_stride + (w * batch + n) * column_stride + c. Strides larger than the
// dense ones (see dense_image) let a kernel write one part of a concatenation, or read a crop.
// A matrix of `batch` rows and `channels` columns is an image of height and width 1; a sequence one of
// height 1. A volume is an image of `planes` planes, one below the other without a gap: height counts the
// rows of all of them, so that whatever looks at positions one by one need not know of planes.
struct Image {
  std::int64_t height = 1, width = 1, batch = 1, channels = 1;
  std::int64_t column_stride = 1;  // >= channels
  std::int64_t row_stride = 1;     // >= width * batch * column_stride, unless height is 1
  ElementType type = ElementType::f32;
  std::int64_t planes = 1;  // divides height

  std::int64_t rows() const { return height / planes; }   // of a plane
  std::int64_t columns() const { return width * batch; }  // of one row
  std::int64_t positions() const { return height * width * batch; }
  std::int64_t element_count() const { return positions() * channels; }
  std::int64_t offset(std::int64_t h, std::int64_t w) const {
    return h * row_stride + w * batch * column_stride;
  }
  // Rows follow each other without a gap, so that all positions are one row of equally spaced columns.
  bool rows_join() const { return height == 1 || row_stride == columns() * column_stride; }
};

Image dense_image(std::int64_t height, std::int64_t width, std::int64_t batch, std::int64_t channels,
                  ElementType type = ElementType::f32);

// The elements from the first to the last one, gaps included: what a buffer for the image must hold.
std::int64_t extent_of(const Image& image);

// What is wrong with an image (a negative extent, overlapping rows), or an empty text.
std::string fault_of(const Image& image);

// A window that slides over an image: output row o, tap k reads input row
// o * stride_h + k * dilation_h - pad_top, and nothing where that lies outside the image (zero padding). The
// padding at the bottom and at the right follows from the output's extents. Over a volume it goes along the
// planes as well, and rows are those of a plane. Taps are numbered (kd * height + kh) * width + kw.
struct Window {
  std::int64_t height = 1, width = 1;  // taps
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_left = 0;
  std::int64_t depth = 1, stride_d = 1, dilation_d = 1, pad_front = 0;

  std::int64_t taps() const { return depth * height * width; }
  bool is_pointwise() const {
    return taps() == 1 && stride_d == 1 && stride_h == 1 && stride_w == 1 && pad_front == 0 && pad_top == 0 &&
           pad_left == 0;
  }
  friend bool operator==(const Window&, const Window&) = default;
};

std::string fault_of(const Window& window);
// The same of a window of `groups` groups that slides over x and makes y.
std::string fault_of(const Image& x, const Image& y, const Window& window, std::int64_t groups);
// Why a kernel of windows over single planes cannot serve these; empty when it can.
std::string volume_fault(const Image& x, const Image& y, const Window& window);

// Half-open range of taps of one axis whose input lies inside [0, input) at output position `o`.
struct TapRange {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const TapRange&, const TapRange&) = default;
};
TapRange valid_taps(std::int64_t o, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                    std::int64_t pad, std::int64_t input);

// Half-open range of output positions o in [0, output) at which tap `k` reads inside [0, input).
TapRange valid_outputs(std::int64_t k, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                       std::int64_t input, std::int64_t output);

}  // namespace superstep::kernels
