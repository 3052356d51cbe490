// The last resort: the reference evaluation of an operator, in the plan's memory where that is dense, else
// between copies in and out of it.
#include <cstring>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/target.h"

namespace superstep::target::cpu {
namespace {

struct Port {
  graph::ValueType type;
  Strides strides;

  bool is_dense() const { return strides == type.shape.row_major_strides(); }
  // The memory itself, which others own.
  Tensor over(const void* memory) const {
    auto* bytes = const_cast<std::byte*>(static_cast<const std::byte*>(memory));
    return Tensor::over(type.element, type.shape, std::shared_ptr<std::byte>(bytes, [](std::byte*) {}));
  }
};

// Visits every element of a strided tensor: f(position in row-major order, offset in elements).
template <class F>
void visit(const Port& port, F&& f) {
  const Shape& shape = port.type.shape;
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0);
  std::int64_t offset = 0;
  for (std::int64_t position = 0; position < shape.element_count(); ++position) {
    f(position, offset);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis);
      offset += port.strides[at];
      if (++index[at] < shape[axis]) break;
      offset -= port.strides[at] * shape[axis];
      index[at] = 0;
    }
  }
}

kernels::KernelInfo info_of(std::size_t inputs, std::size_t outputs, op::Cost cost) {
  kernels::KernelInfo info;
  info.name = reference_kernel;
  info.flops = cost.flops;
  info.bytes = cost.bytes;
  info.inputs = inputs;
  info.outputs = outputs;
  return info;
}

class ReferenceKernel : public kernels::Kernel {
 public:
  ReferenceKernel(const op::Definition& definition, graph::Attributes attributes,
                  std::vector<std::optional<Port>> inputs, std::vector<std::optional<Port>> outputs,
                  op::Cost cost)
      : Kernel(info_of(inputs.size(), outputs.size(), cost)),
        definition_(definition),
        attributes_(std::move(attributes)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  void run(const kernels::Arguments& arguments) const override {
    std::vector<Tensor> inputs, outputs;
    std::size_t slot = 0;
    for (const auto& port : inputs_)
      inputs.push_back(port ? gather(*port, arguments.inputs[slot++]) : Tensor());
    std::size_t written = 0;
    for (const auto& port : outputs_)
      outputs.push_back(port ? zeros(*port, arguments.outputs[written++]) : Tensor());
    op::EvaluateContext context{.attributes = attributes_, .inputs = {}, .outputs = {}};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      context.inputs.push_back(inputs_[i] ? &inputs[i] : nullptr);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      context.outputs.push_back(outputs_[i] ? &outputs[i] : nullptr);
    definition_.evaluate(context);
    slot = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs_[i]) scatter(*outputs_[i], outputs[i], arguments.outputs[slot++]);
  }

 private:
  static Tensor zeros(const Port& port, void* memory) {
    if (!port.is_dense()) return Tensor(port.type.element, port.type.shape);
    Tensor tensor = port.over(memory);
    if (tensor.byte_count() > 0) std::memset(memory, 0, tensor.byte_count());
    return tensor;
  }

  static Tensor gather(const Port& port, const void* memory) {
    if (port.is_dense()) return port.over(memory);
    Tensor tensor(port.type.element, port.type.shape);
    const std::size_t size = size_in_bytes(port.type.element);
    const auto* source = static_cast<const std::byte*>(memory);
    visit(port, [&](std::int64_t position, std::int64_t offset) {
      std::memcpy(tensor.bytes() + static_cast<std::size_t>(position) * size,
                  source + offset * static_cast<std::int64_t>(size), size);
    });
    return tensor;
  }

  static void scatter(const Port& port, const Tensor& tensor, void* memory) {
    if (tensor.bytes() == memory) return;
    const std::size_t size = size_in_bytes(port.type.element);
    auto* target = static_cast<std::byte*>(memory);
    visit(port, [&](std::int64_t position, std::int64_t offset) {
      std::memcpy(target + offset * static_cast<std::int64_t>(size),
                  tensor.bytes() + static_cast<std::size_t>(position) * size, size);
    });
  }

  const op::Definition& definition_;
  graph::Attributes attributes_;
  std::vector<std::optional<Port>> inputs_, outputs_;
};

}  // namespace

void lower_by_reference(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const op::Definition& definition = op::get(node.op);
  std::vector<std::optional<Port>> inputs, outputs;
  std::vector<DraftOperand> reads, writes;
  for (ValueId value : node.inputs) {
    if (!value.valid()) {
      inputs.emplace_back();
      continue;
    }
    inputs.push_back(
        Port{{lowering.element_in_memory(value), lowering.shape(value)}, lowering.view(value).strides});
    reads.push_back(lowering.read(value));
  }
  for (ValueId value : node.outputs) {
    if (!value.valid()) {
      outputs.emplace_back();
      continue;
    }
    outputs.push_back(Port{lowering.type(value), lowering.view(value).strides});
    writes.push_back(lowering.write(value));
  }
  auto kernel = std::make_unique<ReferenceKernel>(definition, node.attributes, std::move(inputs),
                                                  std::move(outputs), op::cost(lowering.graph(), node));
  lowering.emit(node.op, node.name, std::move(kernel), std::move(reads), std::move(writes));
}

}  // namespace superstep::target::cpu
