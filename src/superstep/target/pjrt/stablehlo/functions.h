// Functions of elements that StableHLO has no operation for, made of those that it has. Operands are f32 or
// f64.
#pragma once

#include "superstep/target/pjrt/stablehlo/emitter.h"

namespace superstep::target::stablehlo {

Value sigmoid(Emitter& emit, const Value& x);
Value softplus(Emitter& emit, const Value& x);  // log(1 + e^x) without overflow
// To a few last bits, also in the tails.
Value erf(Emitter& emit, const Value& x);
Value erfc(Emitter& emit, const Value& x);

// A conversion as Cast has it: to integers by cutting the fraction off, within their range, NaN to 0; to
// truth by whether it is not 0.
Value cast(Emitter& emit, const Value& x, ElementType to);

}  // namespace superstep::target::stablehlo
