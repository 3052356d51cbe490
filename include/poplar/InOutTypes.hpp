// What a vertex reads and writes: fields that refer to elements of tensors.
#ifndef poplar_InOutTypes_hpp
#define poplar_InOutTypes_hpp

#include <cstddef>
#include <poplar/FieldTypes.hpp>

namespace poplar {

// One element. The engine puts in where it is.
template <class T>
class Input {
 public:
  using value_type = T;
  operator const T&() const { return *element_; }
  const T& operator*() const { return *element_; }
  const T* operator->() const { return element_; }

 private:
  const T* element_;
};

template <class T>
class Output {
 public:
  using value_type = T;
  T& operator*() const { return *element_; }
  T* operator->() const { return element_; }
  operator T&() const { return *element_; }
  const Output& operator=(const T& value) const {
    *element_ = value;
    return *this;
  }

 private:
  T* element_;
};

template <class T>
class InOut {
 public:
  using value_type = T;
  T& operator*() const { return *element_; }
  T* operator->() const { return element_; }
  operator T&() const { return *element_; }
  const InOut& operator=(const T& value) const {
    *element_ = value;
    return *this;
  }

 private:
  T* element_;
};

// Vectors. `x[i]`, `x.size()` and `x->size()` are the same of each.
template <class T, VectorLayout L, unsigned A, bool I>
class Input<Vector<T, L, A, I>> {
 public:
  using value_type = T;
  // Sources bind an element of a field to a T&; what is written there is undefined.
  T& operator[](std::size_t i) { return vector_[i]; }
  const T& operator[](std::size_t i) const { return vector_[i]; }
  unsigned size() const { return vector_.size(); }
  const T* data() const { return vector_.data(); }
  const T* begin() const { return vector_.begin(); }
  const T* end() const { return vector_.end(); }
  const Input& operator*() const { return *this; }
  const Input* operator->() const { return this; }

 private:
  Vector<T, L, A, I> vector_;
};

template <class T, VectorLayout L, unsigned A, bool I>
class Output<Vector<T, L, A, I>> : public Vector<T, L, A, I> {
 public:
  const Output& operator*() const { return *this; }
  const Output* operator->() const { return this; }
};

template <class T, VectorLayout L, unsigned A, bool I>
class InOut<Vector<T, L, A, I>> : public Vector<T, L, A, I> {
 public:
  const InOut& operator*() const { return *this; }
  const InOut* operator->() const { return this; }
};

template <class T, VectorListLayout L, unsigned A, bool I>
class Input<VectorList<T, L, A, I>> {
 public:
  // Elements of an input are not written.
  using value_type = Input<Vector<T, VectorLayout::SPAN, A, I>>;
  const value_type& operator[](std::size_t i) const { return vectors_[i]; }
  unsigned size() const { return count_; }
  const value_type* begin() const { return vectors_; }
  const value_type* end() const { return vectors_ + count_; }
  const Input* operator->() const { return this; }

 private:
  value_type* vectors_;
  unsigned count_;
};

template <class T, VectorListLayout L, unsigned A, bool I>
class Output<VectorList<T, L, A, I>> : public VectorList<T, L, A, I> {
 public:
  const Output* operator->() const { return this; }
};

template <class T, VectorListLayout L, unsigned A, bool I>
class InOut<VectorList<T, L, A, I>> : public VectorList<T, L, A, I> {
 public:
  const InOut* operator->() const { return this; }
};

}  // namespace poplar

#endif
