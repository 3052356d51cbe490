#include "superstep/target/ipu/lower/vertex.h"

#include <fmt/format.h>

#include <atomic>
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

void shift(Tensor& places, const PlaceBox& box, std::int64_t (PlaceBox::*map)(std::int64_t) const) {
  for (std::int64_t& place : places.as<std::int64_t>()) place = (box.*map)(place);
}

// Between the operator's order [N, C, positions] and a tile's [N, C / g, positions, g].
template <std::size_t bytes>
void reorder(std::byte* natural, std::byte* grouped, const Shape& shape, std::int64_t g, bool to_natural) {
  std::int64_t positions = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) positions *= shape[axis];
  for (std::int64_t block = 0; block < shape[0] * shape[1] / g; ++block)
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t c = 0; c < g; ++c) {
        std::byte* a = natural + static_cast<std::size_t>((block * g + c) * positions + position) * bytes;
        std::byte* b = grouped + static_cast<std::size_t>((block * positions + position) * g + c) * bytes;
        std::memcpy(to_natural ? a : b, to_natural ? b : a, bytes);
      }
}

void move(Tensor& tensor, std::byte* tile, const Operand& operand, bool from_tile) {
  if (tensor.byte_count() == 0) return;
  auto* data = static_cast<std::byte*>(static_cast<void*>(tensor.bytes()));
  if (operand.channel_group <= 1) {
    std::memcpy(from_tile ? data : tile, from_tile ? tile : data, tensor.byte_count());
    return;
  }
  const Shape& shape = operand.type.shape;
  switch (size_in_bytes(operand.type.element)) {
    case 1: return reorder<1>(data, tile, shape, operand.channel_group, from_tile);
    case 2: return reorder<2>(data, tile, shape, operand.channel_group, from_tile);
    case 4: return reorder<4>(data, tile, shape, operand.channel_group, from_tile);
    default: return reorder<8>(data, tile, shape, operand.channel_group, from_tile);
  }
}

// The tensors of a part. A thread keeps them from vertex to vertex: a superstep has thousands of one class.
struct Workspace {
  std::uint64_t part = 0;  // whose they are; 0: nobody's
  std::vector<Tensor> inputs, outputs;
  std::optional<op::EvaluateContext> context;

  void take(const OperatorPart& owner) {
    part = owner.number;
    inputs.assign(owner.inputs.size(), Tensor());
    outputs.assign(owner.outputs.size(), Tensor());
    context.emplace(owner.attributes, std::vector<const Tensor*>(), std::vector<Tensor*>());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Operand& operand = owner.inputs[i];
      context->inputs.push_back(operand.present ? &inputs[i] : nullptr);
      if (operand.known)
        inputs[i] = *operand.known;
      else if (operand.present)
        inputs[i] = Tensor(operand.type.element, operand.type.shape);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Operand& operand = owner.outputs[i];
      context->outputs.push_back(operand.present ? &outputs[i] : nullptr);
      if (operand.present) outputs[i] = Tensor(operand.type.element, operand.type.shape);
    }
  }
};

void evaluate(const OperatorVertex& vertex, const OperatorPart& part) {
  thread_local Workspace space;
  if (space.part != part.number) space.take(part);
  std::vector<Tensor>&inputs = space.inputs, &outputs = space.outputs;
  std::size_t next = 0;
  const auto piece = [&] { return static_cast<std::byte*>(static_cast<void*>(vertex.pieces[next++].data)); };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (part.inputs[i].present && !part.inputs[i].known) move(inputs[i], piece(), part.inputs[i], true);
  for (Tensor& output : outputs)
    if (output.byte_count() > 0) std::memset(output.bytes(), 0, output.byte_count());
  const bool gradient = part.places && inputs.size() == 2 && part.inputs[1].present;
  if (gradient) shift(inputs[1], *part.places, &PlaceBox::to_part);
  part.evaluate ? part.evaluate(*space.context) : part.definition->evaluate(*space.context);
  if (part.places && !gradient) shift(outputs[1], *part.places, &PlaceBox::to_whole);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (part.outputs[i].present) move(outputs[i], piece(), part.outputs[i], false);
}

void compute(void* object, unsigned worker) {
  if (worker != 0) return;  // on the host one evaluation does the work of all contexts
  const OperatorVertex& vertex = *static_cast<const OperatorVertex*>(object);
  try {
    evaluate(vertex, *vertex.part);
  } catch (const Error& error) {
    throw error.in(vertex.part->node);
  }
}

std::int64_t moved(std::int64_t place, const std::vector<std::int64_t>& from,
                   const std::vector<std::int64_t>& to, const std::vector<std::int64_t>& begin,
                   std::int64_t sign) {
  std::int64_t result = 0, scale = 1;
  for (std::size_t axis = from.size(); axis-- > 0;) {
    result += (place % from[axis] + sign * begin[axis]) * scale;
    place /= from[axis];
    scale *= to[axis];
  }
  return result;
}

}  // namespace

std::int64_t PlaceBox::to_whole(std::int64_t place) const { return moved(place, part, whole, begin, 1); }

std::int64_t PlaceBox::to_part(std::int64_t place) const {
  std::int64_t rest = place;
  bool inside = place >= 0;
  for (std::size_t axis = whole.size(); axis-- > 0; rest /= whole[axis]) {
    const std::int64_t at = rest % whole[axis] - begin[axis];
    inside = inside && at >= 0 && at < part[axis];
  }
  if (!inside || rest != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("index {} of input indices is no place of its own plane", place), {},
                "run it on the cpu target");
  return moved(place, whole, part, begin, -1);
}

std::string input_field(std::size_t i) { return fmt::format("in{}", i); }
std::string output_field(std::size_t i) { return fmt::format("out{}", i); }

bsp::VertexClass operator_vertex(std::string name, OperatorPart given, std::uint64_t cycles,
                                 std::uint64_t flops) {
  static std::atomic<std::uint64_t> parts = 0;
  given.number = ++parts;
  auto part = std::make_shared<const OperatorPart>(std::move(given));
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
  vertex.cycles = [cycles, flops](const bsp::VertexFields&, const bsp::Device&) {
    return bsp::PerfEstimate(cycles, flops);
  };
  return vertex;
}

}  // namespace superstep::target::ipu
