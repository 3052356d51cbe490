#include "tests/cpu_kernels/check.h"

#include "superstep/base/error.h"

namespace superstep::kernels {

void run_kernel(const Kernel& kernel, std::vector<const void*> inputs, std::vector<void*> outputs) {
  ASSERT_EQ(inputs.size(), kernel.info().inputs) << kernel.info().name;
  ASSERT_EQ(outputs.size(), kernel.info().outputs) << kernel.info().name;
  // A multiple of the alignment, so that the guard page keeps the start aligned.
  const std::size_t bytes = (kernel.info().scratch_bytes + 63) / 64 * 64;
  GuardedBuffer scratch(ElementType::u8, static_cast<std::int64_t>(bytes));
  kernel.run({inputs, outputs, scratch.data()});
}

KernelPointer require_kernel(Prepared prepared) {
  if (!prepared) throw Error(ErrorCode::internal, to_string(prepared.error()));
  return std::move(*prepared);
}

}  // namespace superstep::kernels
