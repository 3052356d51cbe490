// Kernels that can make a range of their result alone, so that several run one behind the other on a piece
// of their tensors that stays in the caches (bands.h).
#pragma once

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Tensors are lines of units of equal size, one behind the other: rows of planes, elements.
class RangeKernel : public Kernel {
 public:
  using Kernel::Kernel;

  virtual std::int64_t units() const = 0;  // of the result; 0: ranges cannot be made alone
  // Whether unit u of the result is made of unit u of this input and of no other unit of it.
  virtual bool reads_units(std::size_t input) const = 0;
  // Whether this output is a line of units, of which a range is written and nothing else.
  virtual bool writes_units(std::size_t output) const = 0;
  // Ranges that cover all units write, in any order, the bits that run() writes.
  virtual void run_range(const Arguments& arguments, PartRange units) const = 0;
};

}  // namespace superstep::kernels
