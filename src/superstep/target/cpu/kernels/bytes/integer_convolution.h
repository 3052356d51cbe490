// Convolutions and dense layers on bytes: y = epilogue(scale[c] * sum of (x - zero point) * w).
//
// x is u8, weights are i8, sums are i32 and exact. Padding stands for the zero point: taps outside the image
// are left out, and so is their share of the zero point's.
//
// Slots: inputs x, packed weights (prepare_byte_pack), scale (f32, a value an output channel; not for an i32
// y), epilogue operands...; outputs y, epilogue outputs...
#pragma once

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"
#include "superstep/target/cpu/kernels/product/weights.h"

namespace superstep::kernels {

struct IntegerConvolution {
  Image x, y;  // x: u8; y: i32 (the sums alone), f32, or u8
  Window window;
  std::int64_t groups = 1;
  std::int32_t zero_point = 0;  // of x
  Epilogue epilogue;            // in f32, before y is made bytes; empty for an i32 y
  // Of a u8 y: round(v / y_scale) + y_zero_point, halves to even, limited to 0..255.
  float y_scale = 1;
  std::int32_t y_zero_point = 0;
};

const ImplementationList<IntegerConvolution>& integer_convolution();

std::string fault_of(const IntegerConvolution& convolution);

// Cycles of one core, finishing included, where products of bytes are multiplied in registers (AVX-512 VNNI);
// infinite elsewhere. Measured on Zen 5, on which the estimate lies within a fifth of the clock for the
// layers of the zoo.
double byte_cycles(const IntegerConvolution& convolution);
// Of bringing so many f32 values to bytes in a pass of its own.
double quantize_cycles(double values);
// Of so many values that bytes leave in memory between two steps which are one in f32.
double apart_cycles(double values);

// y [batch, out] = x [batch, in] times weights, as a convolution.
IntegerConvolution integer_dense_layer(std::int64_t batch, std::int64_t in, std::int64_t out, ElementType y);

// Weights as the kernel reads them: quads (WeightLayout::taps_in_out_quads), then for every group and tap the
// sum over its input channels, an i32 an output channel, which the zero point is multiplied with.
// inputs: i8 weights in `order`; outputs: `byte_pack_bytes` bytes.
Prepared prepare_byte_pack(const IntegerConvolution& convolution, WeightOrder order);
std::size_t byte_pack_bytes(const IntegerConvolution& convolution);

}  // namespace superstep::kernels
