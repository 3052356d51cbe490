// A dense, row-major host tensor: element type, shape and 64-byte aligned memory shared by copies.
//
// Copying a Tensor copies the handle, not the elements: treat a tensor that has been handed out as
// immutable, or clone() it. Used for constants, initial values, reference evaluation and data on its way
// in and out; compiled plans have arenas of their own.
//
// A tensor can be a recipe: its elements are made when somebody first reads them, or straight into the memory
// where they are wanted (copy_to), and then the tensor never takes up room of its own. The initial values of
// a model are such: a graph is built for several batches before one of them is compiled.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/shape.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

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
  // Elements made by `fill`, which writes all of them (byte_count() bytes), gives the same every time, and
  // may be called by any thread, more than once. Without `fill` they are zero.
  using Fill = std::function<void(std::byte* elements)>;
  static Tensor generated(ElementType type, Shape shape, Fill fill = {});
  // Elements in memory that somebody else fills and may change later; `memory` is kept alive. byte_count()
  // bytes, aligned for the element type.
  static Tensor over(ElementType type, Shape shape, std::shared_ptr<std::byte> memory);

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::int64_t element_count() const { return shape_.element_count(); }
  std::size_t byte_count() const { return static_cast<std::size_t>(element_count()) * size_in_bytes(type_); }

  std::byte* bytes() { return elements(); }
  const std::byte* bytes() const { return elements(); }

  // Writes the elements to `target`, byte_count() bytes; does not make those of a recipe for this tensor.
  void copy_to(std::byte* target) const;
  // A recipe for zeros that nobody has asked for elements: memory that is zero already holds them.
  bool is_zeros_unmade() const;

  // The elements; throws Error when T is not the element type.
  template <class T>
  std::span<T> as() {
    require(element_type_of<T>);
    return {reinterpret_cast<T*>(elements()), static_cast<std::size_t>(element_count())};
  }
  template <class T>
  std::span<const T> as() const {
    require(element_type_of<T>);
    return {reinterpret_cast<const T*>(elements()), static_cast<std::size_t>(element_count())};
  }

  // One element as a double, whatever the type.
  double at(std::int64_t index) const;
  void set(std::int64_t index, double value);

  Tensor clone() const;
  Tensor reshaped(Shape shape) const;        // shares memory; the element count must agree
  Tensor converted(ElementType type) const;  // a copy; rounds to nearest, ties to even

 private:
  // Shared by copies. `made` is null as long as the elements are a recipe.
  struct Storage {
    virtual ~Storage() = default;
    virtual std::byte* make() = 0;
    std::atomic<std::byte*> made = nullptr;
  };
  struct Memory;
  struct Recipe;

  Tensor(ElementType type, Shape shape, std::shared_ptr<Storage> storage)
      : type_(type), shape_(std::move(shape)), storage_(std::move(storage)) {}

  std::byte* elements() const {
    std::byte* made = storage_->made.load(std::memory_order_acquire);
    return made ? made : storage_->make();
  }
  const Recipe* unmade() const;  // null when the elements are there
  void require(ElementType type) const;

  ElementType type_;
  Shape shape_;
  std::shared_ptr<Storage> storage_;
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

#pragma GCC visibility pop
