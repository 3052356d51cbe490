// What an estimator of a vertex's cost can ask of it: sizes and values of its fields.
#ifndef poplar_VertexIntrospector_hpp
#define poplar_VertexIntrospector_hpp

#include <cstddef>
#include <memory>
#include <poplar/StringRef.hpp>
#include <poplar/Target.hpp>
#include <poplar/VectorLayout.hpp>
#include <string>
#include <vector>
#if __cplusplus >= 201703L
#include <optional>  // estimators use it without including it
#endif

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct VertexFacts;
struct FieldFacts;
}  // namespace core

class SizeT {
 public:
  explicit SizeT(std::size_t count) : size_(count) {}
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
};

class FieldData {
 public:
  const std::string& name() const;
  unsigned rank() const;     // 0 of a number or an element, 1 of a vector, 2 of a list of vectors
  std::size_t size() const;  // elements of a vector, vectors of a list, 1 of a number
  // Of vector i of a list; an element of a vector has size 1.
  SizeT operator[](std::size_t i) const { return SizeT(getSizeAtIndex(i)); }
  std::size_t getSizeAtIndex(std::size_t i) const;

  // What the field holds when the program is loaded, where that is known: of numbers and vectors of the
  // vertex's own, and of elements that have an initial value. Else a poplar_error.
  template <class T>
  T getInitialValue(const Target&) const {
    return static_cast<T>(firstInitialValue());
  }
  template <class T>
  std::vector<T> getInitialValues(const Target&) const {
    return Values<T>::of(*this);
  }

  // As the target lays the field out; level 0 is the outer of two.
  layout::Vector getProfilerVectorLayout(std::size_t nestingLevel) const;
  layout::VectorList getProfilerVectorListLayout() const;

  explicit FieldData(std::shared_ptr<const core::FieldFacts> facts);  // of the library

 private:
  std::size_t elementsOf(std::size_t vector) const;
  template <class T>
  struct Values {
    static std::vector<T> of(const FieldData& field) {
      const std::vector<double> values = field.initialValues(0);
      return std::vector<T>(values.begin(), values.end());
    }
  };
  template <class T>
  struct Values<std::vector<T>> {
    static std::vector<std::vector<T>> of(const FieldData& field) {
      std::vector<std::vector<T>> lists;
      for (std::size_t i = 0; i < field.size(); ++i) {
        const std::vector<double> values = field.initialValues(i);
        lists.emplace_back(values.begin(), values.end());
      }
      return lists;
    }
  };
  std::vector<double> initialValues(std::size_t vector) const;  // of a list's vector
  double firstInitialValue() const;

  std::shared_ptr<const core::FieldFacts> facts_;
};

class VertexIntrospector {
 public:
  FieldData getFieldInfo(StringRef field) const;                                  // throws unknown_field
  explicit VertexIntrospector(const core::VertexFacts& facts) : facts_(facts) {}  // of the library

 private:
  const core::VertexFacts& facts_;
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
