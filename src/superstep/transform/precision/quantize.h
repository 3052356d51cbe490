// Products and convolutions on bytes, after training: static quantisation by calibrated ranges.
//
// Following B. Jacob et al., "Quantization and training of neural networks for efficient
// integer-arithmetic-only inference", arXiv:1712.05877, and H. Wu et al., "Integer quantization for deep
// learning inference: principles and empirical evaluation", arXiv:2004.09602: weights symmetric in i8, a
// scale an output channel; activations in u8, one scale and zero point a tensor; sums in i32; biases and
// everything else in f32.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::transform {

// What a value's elements span; the calibration decides how much of the tails is left out.
struct ValueRange {
  double low = 0, high = 0;
  // Of every channel that products sum the mean, over samples and positions; empty: not known.
  std::vector<double> means = {};
};
using RangeTable = std::map<std::string, ValueRange, std::less<>>;  // by the value's name

struct QuantizeOptions {
  // Products that sum fewer channels, or give fewer, stay in f32: they gain nothing, and in the layer before
  // the outputs rounding costs most. Where the channels of a picture come not in fours, those under a row of
  // the window are summed together.
  std::int64_t least_summed = 16, least_given = 8;
  // Results of products that stay in f32 all the same, by name: a target that would be slower on bytes says
  // so (target::Target::slow_on_bytes).
  std::set<std::string, std::less<>> kept;
  // May products that stay off bytes be multiplied in bf16, where the target gains by it
  // (target::Target::faster_in_bf16)? Otherwise they are in f32, as ONNX's operators on bytes have it.
  bool beside_bf16 = false;
};

// How real numbers of a range become u8: x = (q - zero_point) * scale. Zero is exact. An empty range gives
// scale 1.
struct ByteScale {
  float scale = 1;
  std::int32_t zero_point = 0;
};
ByteScale byte_scale(const ValueRange& range);

// The values whose ranges quantize() asks for: what the products that it would take read. The weights of a
// product must be a constant or a state, as the graph stores it.
std::vector<graph::ValueId> values_to_calibrate(const graph::Graph& model,
                                                const QuantizeOptions& options = {});

// The axis of the channels of such a value: 1 of images that convolutions read, else the last.
int channel_axis(const graph::Graph& model, graph::ValueId value);

// Those products themselves.
std::vector<graph::NodeId> products_to_quantize(const graph::Graph& model,
                                                const QuantizeOptions& options = {});

// The model with those products on bytes. Weights are taken from the data of states and constants: set
// trained ones before. In ONNX's operators,
//   Conv         QuantizeLinear, ConvInteger, DequantizeLinear, Add of the bias
//   Gemm, MatMul QuantizeLinear, MatMulInteger, DequantizeLinear, Add of the bias
//                rows of a length that is no multiple of four with Pad behind QuantizeLinear, and weights of
//                zero
//   ConvTranspose, where it is a convolution to blocks (transform/transposed_convolution.h): the same as
//                Conv, then DepthToSpace
// Where products on bytes alone read an activation, what moves or compares its elements (ByteMoves) runs on
// bytes too, and QuantizeLinear stands before it.
// Where the means of what a product reads are known, what the rounding of its weights adds in the mean is
// taken off each channel, where a bias or a normalisation stands anyway. Values without a range in the table
// stay in f32. Inputs, outputs and states stay what they are. Throws Error (invalid_argument) naming a range
// that is not finite or upside down.
graph::Graph quantize(const graph::Graph& model, const RangeTable& ranges,
                      const QuantizeOptions& options = {});

}  // namespace superstep::transform
