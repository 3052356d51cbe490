#include "tests/cpu_kernels/support/check.h"

#include "superstep/base/error.h"

namespace superstep::kernels {

void run_kernel(const Kernel& kernel, std::vector<const void*> inputs, std::vector<void*> outputs) {
  ASSERT_EQ(inputs.size(), kernel.info().inputs) << kernel.info().name;
  ASSERT_EQ(outputs.size(), kernel.info().outputs) << kernel.info().name;
  // A multiple of the alignment, so that the guard page keeps the start aligned.
  const std::size_t bytes = (kernel.info().scratch_bytes + 63) / 64 * 64;
  GuardedBuffer scratch(ElementType::u8, static_cast<std::int64_t>(bytes));
  scratch.fill_bits();
  const Arguments arguments{inputs, outputs, scratch.data()};
  // Every other kernel runs in its parts, the last one first.
  static int calls = 0;
  if (++calls % 2 == 0) return kernel.run(arguments);
  for (std::int64_t part = kernel.info().parts; part-- > 0;) kernel.run_part(arguments, part);
}

KernelPointer require_kernel(Prepared prepared) {
  if (!prepared) throw Error(ErrorCode::internal, to_string(prepared.error()));
  return std::move(*prepared);
}

}  // namespace superstep::kernels
