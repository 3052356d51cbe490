// Tensors of the caller: pointer, extents, strides.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/api/c_guard.h"
#include "superstep/api/ports.h"

static_assert(SUPERSTEP_F64 == static_cast<int>(superstep::ElementType::f64) &&
              SUPERSTEP_F32 == static_cast<int>(superstep::ElementType::f32) &&
              SUPERSTEP_F16 == static_cast<int>(superstep::ElementType::f16) &&
              SUPERSTEP_BF16 == static_cast<int>(superstep::ElementType::bf16) &&
              SUPERSTEP_I64 == static_cast<int>(superstep::ElementType::i64) &&
              SUPERSTEP_I32 == static_cast<int>(superstep::ElementType::i32) &&
              SUPERSTEP_I16 == static_cast<int>(superstep::ElementType::i16) &&
              SUPERSTEP_I8 == static_cast<int>(superstep::ElementType::i8) &&
              SUPERSTEP_U64 == static_cast<int>(superstep::ElementType::u64) &&
              SUPERSTEP_U32 == static_cast<int>(superstep::ElementType::u32) &&
              SUPERSTEP_U16 == static_cast<int>(superstep::ElementType::u16) &&
              SUPERSTEP_U8 == static_cast<int>(superstep::ElementType::u8) &&
              SUPERSTEP_BOOL == static_cast<int>(superstep::ElementType::boolean));

namespace superstep::api {
namespace {

constexpr int most_axes = 64;

std::string place_of(const superstep_tensor& tensor) {
  return tensor.name ? fmt::format("tensor '{}'", tensor.name) : "a tensor without a name";
}

[[noreturn]] void refuse(const superstep_tensor& tensor, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, what, place_of(tensor));
}

ElementType type_of(const superstep_tensor& tensor) {
  if (tensor.element < SUPERSTEP_F64 || tensor.element > SUPERSTEP_BOOL)
    refuse(tensor, fmt::format("there is no element type {}", static_cast<int>(tensor.element)));
  return static_cast<ElementType>(tensor.element);
}

Shape shape_of(const superstep_tensor& tensor) {
  if (tensor.rank < 0 || tensor.rank > most_axes) refuse(tensor, fmt::format("a rank of {}", tensor.rank));
  if (tensor.rank > 0 && !tensor.shape) refuse(tensor, "its shape is a null pointer");
  return Shape(std::vector<std::int64_t>(tensor.shape, tensor.shape + tensor.rank));
}

void check_memory(const superstep_tensor& tensor, const Shape& shape) {
  if (shape.element_count() == 0) return;
  if (!tensor.data) refuse(tensor, "its data is a null pointer");
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % size_in_bytes(type_of(tensor)) != 0)
    refuse(tensor, "its data is not aligned for its elements");
}

// Calls body(place in row-major order, element offset by strides, elements) for every run along the last axis
// of a tensor with at least one axis and one element.
template <class Body>
void for_each_row(const superstep_tensor& tensor, Body&& body) {
  const int last = tensor.rank - 1;
  std::vector<std::int64_t> index(static_cast<std::size_t>(last), 0);
  std::int64_t place = 0;
  for (;;) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < last; ++axis)
      offset += index[static_cast<std::size_t>(axis)] * tensor.strides[axis];
    body(place, offset, tensor.shape[last]);
    place += tensor.shape[last];
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < tensor.shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
    if (axis < 0) return;
  }
}

// `into_caller`: from the row-major elements to the caller's, else the other way.
void copy_strided(std::byte* dense, const superstep_tensor& tensor, std::int64_t elements, bool into_caller) {
  if (elements == 0) return;
  const auto size = static_cast<std::int64_t>(size_in_bytes(type_of(tensor)));
  auto* const caller = static_cast<std::byte*>(tensor.data);
  const std::int64_t step = tensor.strides[tensor.rank - 1];
  for_each_row(tensor, [&](std::int64_t place, std::int64_t offset, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte* const here = dense + (place + i) * size;
      std::byte* const there = caller + (offset + i * step) * size;
      std::memcpy(into_caller ? there : here, into_caller ? here : there, static_cast<std::size_t>(size));
    }
  });
}

Tensor over_caller(const superstep_tensor& tensor, const Shape& shape) {
  auto* const bytes = static_cast<std::byte*>(tensor.data);
  return Tensor::over(type_of(tensor), shape, std::shared_ptr<std::byte>(bytes, [](std::byte*) {}));
}

}  // namespace

bool is_row_major(const superstep_tensor& tensor) {
  if (!tensor.strides) return true;
  std::int64_t stride = 1;
  for (int axis = tensor.rank - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

Tensor input_from(const superstep_tensor& tensor) {
  const Shape shape = shape_of(tensor);
  check_memory(tensor, shape);
  if (shape.element_count() > 0 && is_row_major(tensor)) return over_caller(tensor, shape);
  Tensor copy(type_of(tensor), shape);
  copy_strided(copy.bytes(), tensor, shape.element_count(), false);
  return copy;
}

Tensor output_over(const superstep_tensor& tensor) {
  const Shape shape = shape_of(tensor);
  check_memory(tensor, shape);
  const bool in_place = shape.element_count() > 0 && is_row_major(tensor);
  return in_place ? over_caller(tensor, shape) : Tensor(type_of(tensor), shape);
}

void finish_output(const Tensor& written, const superstep_tensor& tensor) {
  if (written.element_count() == 0 || is_row_major(tensor)) return;
  copy_strided(const_cast<std::byte*>(written.bytes()), tensor, written.element_count(), true);
}

void copy_out(const Tensor& value, const superstep_tensor& into, const std::string& name) {
  Tensor written = output_over(into);
  require_fits({name, value.type(), value.shape()}, written);
  if (value.element_count() == 0) return;
  value.copy_to(written.bytes());
  finish_output(written, into);
}

std::vector<const superstep_tensor*> by_port(const std::vector<Port>& ports, const superstep_tensor* tensors,
                                             std::size_t count, const char* kind) {
  if (count > 0) require(tensors, "tensors");
  std::vector<const superstep_tensor*> places(ports.size(), nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t place = i;
    if (tensors[i].name)
      place = static_cast<std::size_t>(&find_port(ports, tensors[i].name, kind) - ports.data());
    if (place >= ports.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("there are {} {}s, {} are given", ports.size(), kind, count));
    if (places[place])
      throw Error(ErrorCode::invalid_argument, "is given twice",
                  fmt::format("{} '{}'", kind, ports[place].name));
    places[place] = &tensors[i];
  }
  return places;
}

std::vector<Tensor> all_inputs(const std::vector<Port>& ports, const superstep_tensor* tensors,
                               std::size_t count) {
  const auto places = by_port(ports, tensors, count, "input");
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!places[i])
      throw Error(ErrorCode::invalid_argument, "no value is given", fmt::format("input '{}'", ports[i].name));
    values.push_back(input_from(*places[i]));
  }
  return values;
}

void PortList::set(std::vector<Port> ports) {
  ports_ = std::move(ports);
  views_.clear();
  for (const Port& port : ports_)
    views_.push_back({port.name.c_str(), static_cast<superstep_element>(port.element), port.shape.rank(),
                      port.shape.extents().data()});
}

void PortList::give(const superstep_port** ports, std::size_t* count) const {
  require(ports, "ports");
  require(count, "count");
  *ports = views_.data();
  *count = views_.size();
}

}  // namespace superstep::api
