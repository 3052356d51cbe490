#include "superstep/target/ipu/vertex.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <new>

#include "superstep/base/error.h"

namespace superstep::target::ipu {
namespace {

struct OperatorVertex {
  const OperatorPart* part;
  bsp::Piece pieces[max_operands];
};

void bind_piece(void* field, std::span<const bsp::Piece> pieces) {
  *static_cast<bsp::Piece*>(field) = pieces[0];
}

void compute(void* object, unsigned worker) {
  if (worker != 0) return;  // on the host one evaluation does the work of all contexts
  const OperatorVertex& vertex = *static_cast<const OperatorVertex*>(object);
  const OperatorPart& part = *vertex.part;
  std::vector<Tensor> inputs(part.inputs.size()), outputs(part.outputs.size());
  op::EvaluateContext context{part.attributes, {}, {}};
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Operand& operand = part.inputs[i];
    context.inputs.push_back(operand.present ? &inputs[i] : nullptr);
    if (!operand.present) continue;
    if (operand.known) {
      inputs[i] = *operand.known;
      continue;
    }
    inputs[i] = Tensor(operand.type.element, operand.type.shape);
    if (inputs[i].byte_count() > 0)
      std::memcpy(inputs[i].bytes(), vertex.pieces[next].data, inputs[i].byte_count());
    ++next;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = Tensor(part.outputs[i].type.element, part.outputs[i].type.shape);
    context.outputs.push_back(part.outputs[i].present ? &outputs[i] : nullptr);
  }
  part.definition->evaluate(context);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (part.outputs[i].present) {
      if (outputs[i].byte_count() > 0)
        std::memcpy(vertex.pieces[next].data, outputs[i].bytes(), outputs[i].byte_count());
      ++next;
    }
}

}  // namespace

std::string input_field(std::size_t i) { return fmt::format("in{}", i); }
std::string output_field(std::size_t i) { return fmt::format("out{}", i); }

bsp::VertexClass operator_vertex(std::string name, std::shared_ptr<const OperatorPart> part,
                                 std::uint64_t cycles, std::uint64_t flops) {
  bsp::VertexClass vertex;
  vertex.name = std::move(name);
  vertex.kind = bsp::VertexKind::multi;
  const auto add = [&](std::string field, const graph::ValueType& type, bsp::FieldDirection direction) {
    if (vertex.fields.size() == max_operands)
      throw Error(ErrorCode::unsupported, fmt::format("more than {} operands", max_operands), vertex.name);
    bsp::FieldInfo info;
    info.name = std::move(field);
    info.direction = direction;
    info.type = type.element;
    info.offset = offsetof(OperatorVertex, pieces) + vertex.fields.size() * sizeof(bsp::Piece);
    info.bind = bind_piece;
    vertex.fields.push_back(std::move(info));
  };
  for (std::size_t i = 0; i < part->inputs.size(); ++i)
    if (part->inputs[i].present && !part->inputs[i].known)
      add(input_field(i), part->inputs[i].type, bsp::FieldDirection::input);
  for (std::size_t i = 0; i < part->outputs.size(); ++i)
    if (part->outputs[i].present) add(output_field(i), part->outputs[i].type, bsp::FieldDirection::output);
  vertex.object_bytes = sizeof(OperatorVertex);
  vertex.object_alignment = alignof(OperatorVertex);
  vertex.construct = [](void* memory, const void* context) {
    new (memory) OperatorVertex{static_cast<const OperatorPart*>(context), {}};
  };
  vertex.destroy = [](void* memory) { static_cast<OperatorVertex*>(memory)->~OperatorVertex(); };
  vertex.compute = compute;
  vertex.context = std::move(part);
  vertex.cycles = [cycles, flops](const bsp::VertexFields&, const bsp::Target&) {
    return bsp::PerfEstimate(cycles, flops);
  };
  return vertex;
}

}  // namespace superstep::target::ipu
