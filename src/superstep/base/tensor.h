// A dense, row-major host tensor: element type, shape and 64-byte aligned memory shared by copies.
//
// Copying a Tensor copies the handle, not the elements: treat a tensor that has been handed out as
// immutable, or clone() it. Used for constants, initial values, reference evaluation and data on its way
// in and out; compiled plans have arenas of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/shape.h"

namespace superstep {

class Tensor {
 public:
  Tensor() : Tensor(ElementType::f32, Shape{0}) {}
  Tensor(ElementType type, Shape shape);  // elements are zero

  template <class T>
  static Tensor from(Shape shape, const std::vector<T>& values);
  template <class T>
  static Tensor scalar(T value);
  // Every element set to `value`, converted to `type`.
  static Tensor full(ElementType type, Shape shape, double value);

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::int64_t element_count() const { return shape_.element_count(); }
  std::size_t byte_count() const { return static_cast<std::size_t>(element_count()) * size_in_bytes(type_); }

  std::byte* bytes() { return data_.get(); }
  const std::byte* bytes() const { return data_.get(); }

  // The elements; throws Error when T is not the element type.
  template <class T>
  std::span<T> as() {
    require(element_type_of<T>);
    return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(element_count())};
  }
  template <class T>
  std::span<const T> as() const {
    require(element_type_of<T>);
    return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(element_count())};
  }

  // One element as a double, whatever the type.
  double at(std::int64_t index) const;
  void set(std::int64_t index, double value);

  Tensor clone() const;
  Tensor reshaped(Shape shape) const;        // shares memory; the element count must agree
  Tensor converted(ElementType type) const;  // a copy; rounds to nearest, ties to even

 private:
  void require(ElementType type) const;

  ElementType type_;
  Shape shape_;
  std::shared_ptr<std::byte> data_;
};

template <class T>
Tensor Tensor::from(Shape shape, const std::vector<T>& values) {
  Tensor tensor(element_type_of<T>, std::move(shape));
  if (static_cast<std::int64_t>(values.size()) != tensor.element_count())
    throw Error(ErrorCode::invalid_argument, "a tensor of shape " + to_string(tensor.shape()) + " needs " +
                                                 std::to_string(tensor.element_count()) + " values, not " +
                                                 std::to_string(values.size()));
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

template <class T>
Tensor Tensor::scalar(T value) {
  Tensor tensor(element_type_of<T>, Shape{});
  tensor.as<T>()[0] = value;
  return tensor;
}

}  // namespace superstep
