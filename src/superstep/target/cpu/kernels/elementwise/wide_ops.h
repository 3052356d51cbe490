// Element-wise operations on the types that vector programs do not compute in: integers, which wrap around,
// and f64; selection of elements of any type, and conversions between all types.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

enum class WideOp : std::uint8_t {
  // one operand
  negate,
  absolute,
  sign,
  complement,  // of the bits; integers
  function,    // WideOperation::function; f64
  convert,     // from `type` to `result`: to integers toward zero, within their range, NaN as 0
  // two operands
  add,
  subtract,
  multiply,
  divide,     // integers: toward zero; by zero gives 0
  remainder,  // of a division that truncates; integers: by zero 0
  modulus,    // with the divisor's sign
  least,      // the first where it is NaN
  largest,
  power,       // integers: 0 for negative exponents but of 1
  bits_and,    // integers
  bits_or,     // integers
  bits_xor,    // integers
  shift_left,  // integers; by no shift between 0 and the number of bits: all are shifted out
  shift_right,
  equal,  // the result is bool
  less,
  less_or_equal,
  // three operands: bool ? `type` : `type`
  select,
};

const char* name_of(WideOp op);

// y = op(operands) over `extents`; strides of operands are 0 where they are repeated. Slots: inputs the
// operands; outputs y. y may be an operand of the same strides and element size.
struct WideOperation {
  WideOp op;
  ElementType type = ElementType::i64;    // of the operands; select: of the last two
  ElementType result = ElementType::i64;  // of convert
  double (*function)(double) = nullptr;
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides;  // one list an operand
  std::vector<std::int64_t> y_strides;
};

Prepared prepare(const WideOperation& operation);

}  // namespace superstep::kernels
