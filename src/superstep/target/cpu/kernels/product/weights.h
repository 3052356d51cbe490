// Weights between the order that models store and the order that kernels read. Run once a training step (or
// once, for inference), not once a micro-batch.
#pragma once

#include <cstddef>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// How the model stores them.
enum class WeightOrder {
  out_in_taps,  // [out][in/groups][kd][kh][kw]: ONNX Conv, and Gemm with transB (taps 1 x 1)
  in_out_taps,  // [in][out/groups][kd][kh][kw]: ONNX ConvTranspose and MatMul. `in` and `out` are those of
                // the Convolution that runs: for a transposed convolution use out_in_taps, since there the
                // stored "in" is the output side of the mirrored convolution
};

struct WeightTransfer {
  std::int64_t groups = 1, in = 1, out = 1;  // channels of a group
  std::int64_t kernel_d = 1, kernel_h = 1, kernel_w = 1;
  WeightOrder order = WeightOrder::out_in_taps;
  WeightLayout layout = WeightLayout::taps_in_out;
  ElementType type = ElementType::f32;  // of the packed form: f32 or bf16 (_pairs: bf16 only)

  std::int64_t taps() const { return kernel_d * kernel_h * kernel_w; }
};

// The transfer that belongs to a convolution and the layout its kernel asked for (info().weights).
WeightTransfer weight_transfer(const Convolution& convolution, WeightLayout layout,
                               WeightOrder order = WeightOrder::out_in_taps,
                               ElementType type = ElementType::f32);

std::size_t packed_elements(const WeightTransfer& transfer);  // with what an order of a kernel's own adds

// Whether the packed form is the stored one, element by element: there is nothing to do.
bool is_stored_form(const WeightTransfer& transfer);

// inputs: f32 weights in `order`; outputs: packed weights.
Prepared prepare_pack(const WeightTransfer& transfer);
// inputs: f32 values in `layout` (a weight gradient); outputs: f32 values in `order`. Refuses bf16, and
// orders that are a kernel's own.
Prepared prepare_unpack(const WeightTransfer& transfer);

}  // namespace superstep::kernels
