// Convolutions and dense layers: forward, gradient by the input, gradient by the weights.
//
// With images stored HWNC (image.h) a convolution is a sum over the window's taps of matrix products
//   y[c_out, column] += sum over c_in of w[kh, kw][c_in, c_out] * x[c_in, column shifted by the tap]
// Only taps that lie inside the image are multiplied: padding costs nothing and is exact.
//
// A dense layer is a convolution of an image of height and width 1; the layer behind a Flatten of
// [N, C, H, W] is one whose window covers the whole image (height H, width W, no padding): its ONNX weight
// matrix [out][C * H * W] is the convolution's weight tensor as it stands. A transposed convolution is the
// input gradient of the convolution with x and y exchanged.
//
// Slots
//   forward:          inputs x, packed weights, epilogue operands...; outputs y, epilogue outputs...
//   input gradient:   inputs dy, packed weights, epilogue operands...; outputs dx, epilogue outputs...
//   weight gradient:  inputs x, dy; output dw: f32 and accumulated into, so that it is cleared once before
//                     the first micro-batch. It is in the layout info().weights (unpack it with
//                     prepare_unpack of weights.h).
// y, dx and the epilogue's operands may be the same tensor (residual in place: add with y's own strides);
// otherwise nothing may overlap.
#pragma once

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// x and y share the micro-batch. groups divides both channel counts; groups = c_in is depthwise.
// Types: x, y and the packed weights all f32; or x (y for the gradients' dy) and weights bf16 with the
// result f32 or bf16. Accumulation is in f32.
struct Convolution {
  Image x, y;
  Window window;
  std::int64_t groups = 1;
  bool accumulate = false;        // add to what y (forward) or dx holds, before the epilogue
  bool constant_weights = false;  // packed once and for all: what packing takes need not be won back
  Epilogue epilogue;              // forward: on y; input gradient: on dx; weight gradient: must be empty
};

const ImplementationList<Convolution>& convolution_forward();
const ImplementationList<Convolution>& convolution_input_gradient();
const ImplementationList<Convolution>& convolution_weight_gradient();

// What is wrong with the description itself, whatever the implementation; empty when nothing is.
std::string fault_of(const Convolution& convolution);

// Multiply-adds of one pass over one micro-batch, valid taps only; the same for all three passes.
double multiply_adds(const Convolution& convolution);

// y [batch, out] = x [batch, in] times weights, as a convolution.
Convolution dense_layer(std::int64_t batch, std::int64_t in, std::int64_t out,
                        ElementType type = ElementType::f32);

}  // namespace superstep::kernels
