// Means over the parts of a batch that several runs work on, in the middle of a run.
#include <cstring>

#include "superstep/target/cpu/lowering.h"
#include "superstep/target/cpu/run_info.h"

namespace superstep::target::cpu {
namespace {

kernels::KernelInfo info_for(std::size_t count) {
  kernels::KernelInfo info;
  info.name = "mean over parts";
  info.flops = static_cast<double>(count);
  info.bytes = static_cast<double>(2 * count * sizeof(float));
  info.inputs = 2;
  info.outputs = 1;
  return info;
}

class PartsMeanKernel : public kernels::Kernel {
 public:
  explicit PartsMeanKernel(std::size_t count) : Kernel(info_for(count)), count_(count) {}
  void run(const kernels::Arguments& arguments) const override {
    auto* const y = static_cast<float*>(arguments.outputs[0]);
    std::memcpy(y, arguments.inputs[0], count_ * sizeof(float));
    const auto& run = *static_cast<const RunInfo*>(arguments.inputs[1]);
    if (run.exchange) run.exchange->average_over_span({y, count_});
  }

 private:
  std::size_t count_;
};

// The reference evaluation knows of one part: a training step must not come to it unnoticed.
Lowered without_kernel(const Lowering& lowering, const Node& node) {
  if (!lowering.graph().updates().empty())
    throw Error(ErrorCode::unsupported, "only row-major f32 values are averaged over parts", node.name);
  return refuse("mean over parts", "not a row-major f32 tensor");
}

Lowered lower_parts_mean(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  if (lowering.section() != Section::body) return refuse("mean over parts", "the same in every part");
  for (const ValueId value : {node.inputs[0], node.outputs[0]})
    if (lowering.type(value).element != ElementType::f32 || !lowering.is_row_major(value))
      return without_kernel(lowering, node);
  const auto count = static_cast<std::size_t>(lowering.shape(node.inputs[0]).element_count());
  lowering.emit(node.op, node.name, std::make_unique<PartsMeanKernel>(count),
                {lowering.read(node.inputs[0]), Operand{Space::run, 0, 0}},
                {lowering.write(node.outputs[0])});
  return {};
}

constexpr Lowerer lowerers[] = {{"superstep.PartsMean", "mean over parts", lower_parts_mean}};

}  // namespace

std::span<const Lowerer> parts_lowerers() { return lowerers; }

}  // namespace superstep::target::cpu
