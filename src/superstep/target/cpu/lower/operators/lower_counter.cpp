// Sums of 64-bit integers, as counters of steps and samples are: element by element, or one value to all.
#include <cstdint>

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

struct IntegerSum {
  std::int64_t count = 0;
  std::int64_t a_stride = 0, b_stride = 0;  // 0: one value for all
};

kernels::KernelInfo info_of(const IntegerSum& sum) {
  kernels::KernelInfo info;
  info.name = "sum of integers";
  info.bytes = 24 * static_cast<double>(sum.count);
  info.inputs = 2;
  info.outputs = 1;
  return info;
}

class IntegerSumKernel : public kernels::Kernel {
 public:
  explicit IntegerSumKernel(const IntegerSum& sum) : Kernel(info_of(sum)), s_(sum) {}
  // Unsigned: what does not fit wraps around.
  void run(const kernels::Arguments& arguments) const override {
    const auto* a = static_cast<const std::uint64_t*>(arguments.inputs[0]);
    const auto* b = static_cast<const std::uint64_t*>(arguments.inputs[1]);
    auto* y = static_cast<std::uint64_t*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < s_.count; ++i) y[i] = a[i * s_.a_stride] + b[i * s_.b_stride];
  }

 private:
  IntegerSum s_;
};

Lowered lower_sum(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId a = node.inputs[0], b = node.inputs[1], y = node.outputs[0];
  for (const ValueId value : {a, b, y})
    if (lowering.element_in_memory(value) != ElementType::i64 || !lowering.is_row_major(value))
      return refuse("sum of integers", "a tensor is not row-major i64");
  const std::int64_t count = lowering.shape(y).element_count();
  const auto fits = [&](ValueId value) {
    return lowering.shape(value).element_count() == 1 || lowering.shape(value) == lowering.shape(y);
  };
  if (!fits(a) || !fits(b)) return refuse("sum of integers", "an operand is broadcast along some dimensions");
  const auto stride = [&](ValueId value) { return lowering.shape(value).element_count() == 1 ? 0 : 1; };
  lowering.emit(node.op, node.name,
                std::make_unique<IntegerSumKernel>(IntegerSum{count, stride(a), stride(b)}),
                {lowering.read(a), lowering.read(b)}, {lowering.write(y)});
  return {};
}

constexpr Lowerer lowerers[] = {{"Add", "sum of integers", lower_sum}};

}  // namespace

extern constinit const LowererFamily counter_lowerers{lowerers};

}  // namespace superstep::target::cpu
