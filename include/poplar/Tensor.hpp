// Tensors: expressions that say which elements of which variables are meant. They hold no data.
#ifndef poplar_Tensor_hpp
#define poplar_Tensor_hpp

#include <cstddef>
#include <memory>
#include <ostream>
#include <poplar/ArrayRef.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/Interval.hpp>
#include <poplar/TensorCloneMethod.hpp>
#include <poplar/Type.hpp>
#include <poplar/VariableMappingMethod.hpp>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct TensorData;
}

// A value. Every operation throws index_error where an index, an interval or a dimension lies outside, and
// poplar_error where something else does not fit; both name the tensor and its shape. A default-constructed
// tensor is not valid().
class Tensor {
 public:
  Tensor();
  ~Tensor();
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&) &;
  Tensor& operator=(Tensor&&) & noexcept;

  bool valid() const { return data_ != nullptr; }
  Type elementType() const;
  std::vector<std::size_t> shape() const;
  std::size_t dim(unsigned i) const;
  unsigned rank() const;
  std::size_t numElements() const;

  Tensor operator[](std::size_t i) const&;  // drops the first dimension
  Tensor index(ArrayRef<std::size_t> indices) const;
  Tensor slice(std::size_t begin, std::size_t end, unsigned dimension) const;
  Tensor slice(std::size_t begin, std::size_t end) const { return slice(begin, end, 0); }
  Tensor slice(const Interval& region, unsigned dimension = 0) const {
    return slice(region.begin(), region.end(), dimension);
  }
  // Vectors that are shorter than the rank leave the other dimensions whole.
  Tensor slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const;
  // A tensor of one element in one dimension has it in every interval: programs take the same intervals of
  // tensors and of numbers that stand for all elements.
  std::vector<Tensor> slices(ArrayRef<Interval> intervals, unsigned dimension = 0) const;
  // Each inner list is joined to one tensor.
  std::vector<Tensor> slices(const std::vector<std::vector<Interval>>& intervals,
                             unsigned dimension = 0) const;
  std::vector<Tensor> slices(ArrayRef<unsigned> indices, unsigned dimension = 0) const;

  Tensor flatten() const;
  Tensor flatten(unsigned dimBegin, unsigned dimEnd) const;
  Tensor reshape(ArrayRef<std::size_t> shape) const;
  Tensor reshapePartial(unsigned beginIndex, unsigned endIndex, ArrayRef<std::size_t> newDims) const;
  Tensor dimShuffle(ArrayRef<unsigned> permutation) const;
  Tensor dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const;
  Tensor dimRoll(unsigned dimIdx, unsigned newIdx = 0) const;
  Tensor transpose() const;
  Tensor expand(ArrayRef<std::size_t> indices) const;  // a 1 before each of these dimensions
  Tensor squeeze() const;                              // drops every dimension of 1
  Tensor squeeze(ArrayRef<std::size_t> indices) const;
  Tensor broadcast(unsigned n, unsigned dimension) const;                            // 0 1 0 1
  Tensor upsample(unsigned scale, unsigned dimension, UpsampleMethod method) const;  // 0 0 1 1
  Tensor subSample(unsigned stride, unsigned dimension) const;
  Tensor reverse(unsigned dimension) const;
  Tensor reinterpret(const Type& type) const;  // of the same size

  bool isContiguous() const;
  bool containsAliases() const;  // some element stands at two places
  bool containsConstant() const;
  bool isParallelWriteable() const { return !containsAliases() && !containsConstant(); }
  // The number that a constant of one element is; false where the tensor is none.
  template <class T>
  bool getConstantValue(T* value) const {
    double number = 0;
    if (!constantNumber(&number)) return false;
    *value = static_cast<T>(number);
    return true;
  }
  bool intersectsWith(const Tensor& other) const;
  std::vector<Interval> getContiguousRegions()
      const;  // of the flattened tensor: runs that follow in one variable
  std::vector<VariableInterval> getVarRegions() const;

  std::string shapeToString() const;  // "{4,4}"
  std::string getVarStr() const;      // names of its variables
  std::string getDebugStr() const;
  void dump() const;                            // to standard error
  void dumpRegions() const;                     // to standard error
  void outputRegions(std::ostream& out) const;  // a line for each region

  bool operator==(const Tensor& other) const;  // the same view
  bool operator!=(const Tensor& other) const { return !(*this == other); }

  explicit Tensor(std::shared_ptr<const core::TensorData> data);  // of the library
  const core::TensorData& data() const;                           // throws poplar_error where there is none

 private:
  bool constantNumber(double* value) const;
  std::shared_ptr<const core::TensorData> data_;
};

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// An order of elements that a tensor is simple in, and back.
class TensorRearranger {
 public:
  TensorRearranger() : forward_(), backward_() {}
  Tensor rearrange(const Tensor& tensor) const { return ordered(tensor, forward_); }
  Tensor undoRearrangement(const Tensor& tensor) const { return ordered(tensor, backward_); }
  explicit TensorRearranger(const std::vector<Interval>& order);  // of the library

 private:
  static Tensor ordered(const Tensor& tensor, const std::vector<Interval>& order);
  std::vector<Interval> forward_, backward_;
};

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension = 0);
Tensor concat(const Tensor& first, const Tensor& second, unsigned dimension = 0);
// `second` has a dimension less, or an extent of its own along `dimension`.
Tensor append(const Tensor& first, const Tensor& second, unsigned dimension);
Tensor append(const Tensor& first, const Tensor& second);

}  // namespace poplar

#pragma GCC visibility pop

#endif
