// Types of the fields of a vertex.
#ifndef poplar_FieldTypes_hpp
#define poplar_FieldTypes_hpp

#include <cstddef>
#include <poplar/VectorLayout.hpp>

namespace poplar {

template <class T>
class Input;

namespace layout_detail {
// On the device these layouts have a pointer and no count.
constexpr bool has_size(VectorLayout layout) {
  return layout == VectorLayout::SPAN || layout == VectorLayout::SHORT_SPAN;
}
// What an element of a vector is to a vertex: of an Input nothing is written.
template <class T>
struct Element {
  using reference = T&;
};
template <class T>
struct Element<Input<T>> {
  using reference = const Input<T>&;
};
}  // namespace layout_detail

// A vector: a field of this type is the vertex's own, set by setInitialValue; within Input, Output or InOut
// it refers to elements of a tensor.
template <class T, VectorLayout L = VectorLayout::SPAN, unsigned MinAlign = alignof(T),
          bool Interleaved = false>
class Vector {
 public:
  using value_type = T;
  typename layout_detail::Element<T>::reference operator[](std::size_t i) const { return elements_[i]; }
  unsigned size() const {
    static_assert(layout_detail::has_size(L), "a vector of this layout has no size on the device");
    return count_;
  }
  T* data() const { return elements_; }
  T* begin() const { return elements_; }
  T* end() const {
    static_assert(layout_detail::has_size(L), "a vector of this layout has no end on the device");
    return elements_ + count_;
  }
  T& operator*() const { return *elements_; }
  const Vector* operator->() const { return this; }

 private:
  T* elements_;
  unsigned count_;
};

// Vectors of several lengths in one field: Input<VectorList<float, VectorListLayout::DELTAN>>.
template <class T, VectorListLayout L, unsigned MinAlign = alignof(T), bool Interleaved = false>
class VectorList {
 public:
  using value_type = Vector<T, VectorLayout::SPAN, MinAlign, Interleaved>;
  const value_type& operator[](std::size_t i) const { return vectors_[i]; }
  unsigned size() const { return count_; }
  const value_type* begin() const { return vectors_; }
  const value_type* end() const { return vectors_ + count_; }
  const VectorList* operator->() const { return this; }

 private:
  value_type* vectors_;
  unsigned count_;
};

}  // namespace poplar

#endif
