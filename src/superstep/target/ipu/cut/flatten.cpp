#include "superstep/target/ipu/cut/flatten.h"

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"

namespace superstep::target::ipu {
namespace {

bool all_ones(const std::vector<std::int64_t>& values, std::int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == wanted; });
}

// Kernels of one position without padding: output o reads input o x stride.
bool is_pointwise_convolution(const std::vector<op::Window>& windows, bool may_stride) {
  return windows.size() > 1 && std::all_of(windows.begin(), windows.end(), [&](const op::Window& window) {
           return window.kernel == 1 && window.pad_begin == 0 && window.pad_end == 0 &&
                  (may_stride || (window.stride == 1 && window.input == window.output));
         });
}

Shape join(const Shape& shape) {
  std::int64_t positions = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) positions *= shape[axis];
  return Shape{shape[0], shape[1], positions};
}

}  // namespace

Shape flattened(const Shape& shape, Flattening flattening) {
  if (flattening == Flattening::all) return Shape{shape.element_count()};
  return flattening == Flattening::positions && shape.rank() > 3 ? join(shape) : shape;
}

FlatOperation::FlatOperation(const Operation& operation, Flattening flattening)
    : whole_(operation), flattening_(flattening), attributes_(*operation.attributes) {
  for (const graph::ValueType* type : operation.inputs)
    inputs_.push_back(type ? Operand{true, *type, {}} : Operand{});
  for (const graph::ValueType* type : operation.outputs)
    outputs_.push_back(type ? Operand{true, *type, {}} : Operand{});
}

std::optional<FlatOperation> FlatOperation::make(const Operation& operation, Flattening flattening) {
  FlatOperation flat(operation, flattening);
  if (flattening == Flattening::positions && !flat.join_positions()) return std::nullopt;
  if (flattening == Flattening::all && !flat.join_all()) return std::nullopt;
  return flat;
}

Operation FlatOperation::operation() const {
  Operation operation = whole_;
  operation.attributes = &attributes_;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    operation.inputs[i] = inputs_[i].present ? &inputs_[i].type : nullptr;
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    operation.outputs[i] = outputs_[i].present ? &outputs_[i].type : nullptr;
  return operation;
}

bsp::Tensor FlatOperation::input(std::size_t i, const bsp::Tensor& tensor) const {
  bsp::Tensor taken = tensor;
  for (std::size_t axis = 0; axis < inputs_[i].strides.size(); ++axis)
    if (inputs_[i].strides[axis] > 1)
      taken = taken.sub_sample(inputs_[i].strides[axis], static_cast<int>(axis) + 2);
  return taken.reshape(inputs_[i].type.shape);
}

bsp::Tensor FlatOperation::output(std::size_t i, const bsp::Tensor& tensor) const {
  return tensor.reshape(outputs_[i].type.shape);
}

bool FlatOperation::join_positions() {
  const std::string& op = whole_.node->op;
  if (op::is_convolution(op::traits_of(op).product_kind)) return join_product();
  if (op == "BatchNormalization" || op == "superstep.ChannelMoments" || op == "superstep.ChannelSums") {
    const Shape x = whole_.input(0);
    if (x.rank() < 4) return false;
    for (std::vector<Operand>* list : {&inputs_, &outputs_})
      for (Operand& operand : *list)
        if (operand.present && operand.type.shape == x) operand.type.shape = join(x);
    return true;
  }
  return is_pointwise(op) && join_broadcast();
}

bool FlatOperation::join_product() {
  const op::ProductKind kind = op::traits_of(whole_.node->op).product_kind;
  const bool gradient = kind == op::ProductKind::weight_gradient,
             transposed = kind == op::ProductKind::transposed_convolution;
  const std::vector<op::Window> windows =
      op::geometry_of(kind, attributes_, whole_.input(0), whole_.input(1), whole_.output()).windows;
  if (!is_pointwise_convolution(windows, !transposed)) return false;
  Shape read = whole_.input(0);
  std::vector<std::int64_t> extents = read.extents();
  for (std::size_t axis = 0; axis < windows.size(); ++axis) {
    inputs_[0].strides.push_back(windows[axis].stride);
    if (!transposed) extents[axis + 2] = windows[axis].output;
  }
  inputs_[0].type.shape = join(Shape(extents));
  inputs_[1].type.shape = join(whole_.input(1));
  outputs_[0].type.shape = join(whole_.output());
  const std::int64_t group = attributes_.integer("group", 1);
  attributes_ = {{"group", group}};
  if (gradient) attributes_.set("kernel_shape", std::vector<std::int64_t>{1});
  return true;
}

// Operands with all positions, or with one for all of them, aligned at the right.
bool FlatOperation::join_broadcast() {
  const Shape out = whole_.output();
  if (out.rank() < 4) return false;
  for (std::vector<Operand>* list : {&inputs_, &outputs_})
    for (Operand& operand : *list) {
      if (!operand.present || operand.type.shape.rank() == 0) continue;
      std::vector<std::int64_t> extents(static_cast<std::size_t>(out.rank() - operand.type.shape.rank()), 1);
      extents.insert(extents.end(), operand.type.shape.begin(), operand.type.shape.end());
      const std::vector<std::int64_t> positions(extents.begin() + 2, extents.end()),
          all(out.begin() + 2, out.end());
      if (positions != all && !all_ones(positions, 1)) return false;
      operand.type.shape = join(Shape(extents));
    }
  return true;
}

bool FlatOperation::join_all() {
  if (!is_pointwise(whole_.node->op)) return false;
  const Shape out = whole_.output();
  for (std::vector<Operand>* list : {&inputs_, &outputs_})
    for (Operand& operand : *list) {
      if (!operand.present) continue;
      if (operand.type.shape == out)
        operand.type.shape = Shape{out.element_count()};
      else if (operand.type.shape.element_count() == 1)
        operand.type.shape = Shape{};
      else
        return false;
    }
  return true;
}

}  // namespace superstep::target::ipu
