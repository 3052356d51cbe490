// Means over the parts of a batch that several runs, or micro-batches in step, work on.
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/plan/join.h"

namespace superstep::target::cpu {
namespace {

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
  lowering.emit(node.op, node.name, prepare_mean_of_parts(count),
                {lowering.read(node.inputs[0]), Operand{Space::run, 0, 0}},
                {lowering.write(node.outputs[0])});
  return {};
}

constexpr Lowerer lowerers[] = {{"superstep.PartsMean", "mean over parts", lower_parts_mean}};

}  // namespace

extern constinit const LowererFamily parts_lowerers{lowerers};

}  // namespace superstep::target::cpu
