// A tensor of a device program: an expression over variables. Slicing, reshaping, shuffling, broadcasting and
// joining make no data; they say which elements are meant. A tensor is valid while its graph lives.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/shape.h"
#include "superstep/bsp/graph/interval.h"
#include "superstep/bsp/graph/type.h"
#include "superstep/bsp/graph/view.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

struct GraphData;

struct VariableInterval {
  VariableId variable;
  Interval interval;
};

enum class UpsampleMethod { repeat };

class Tensor {
 public:
  Tensor() = default;
  bool valid() const { return view_ != nullptr; }

  Type element_type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t dim(int axis) const;
  std::int64_t num_elements() const { return shape_.element_count(); }

  // Every operation throws Error (invalid_argument), naming the tensor and its shape, when it does not fit.
  Tensor operator[](std::int64_t index) const;  // drops the first dimension
  Tensor index(std::span<const std::int64_t> indices) const;
  Tensor slice(std::int64_t begin, std::int64_t end, int axis = 0) const;
  Tensor slice(Interval interval, int axis = 0) const { return slice(interval.begin, interval.end, axis); }
  Tensor slice(std::span<const std::int64_t> begin, std::span<const std::int64_t> end) const;
  std::vector<Tensor> slices(std::span<const Interval> intervals, int axis = 0) const;
  Tensor reshape(Shape shape) const;
  Tensor reshape_partial(int begin, int end, const Shape& shape) const;  // of dimensions [begin, end)
  Tensor flatten() const;
  Tensor flatten(int begin, int end) const;
  Tensor dim_shuffle(std::span<const int> permutation) const;
  Tensor dim_shuffle(std::initializer_list<int> permutation) const;
  Tensor dim_shuffle_partial(std::span<const int> source, std::span<const int> destination) const;
  Tensor dim_roll(int from, int to = 0) const;
  Tensor transpose() const;  // reverses the order of dimensions
  Tensor broadcast(std::int64_t times, int axis) const;
  Tensor expand(std::span<const int> axes) const;  // a dimension of one before each of these
  Tensor expand(std::initializer_list<int> axes) const;
  Tensor squeeze() const;  // drops every dimension of one
  Tensor squeeze(std::span<const int> axes) const;
  Tensor sub_sample(std::int64_t step, int axis) const;
  Tensor upsample(std::int64_t scale, int axis, UpsampleMethod method = UpsampleMethod::repeat) const;
  Tensor reverse(int axis) const;
  Tensor reinterpret(Type type) const;  // of the same size

  bool contains_aliases() const;  // some element stands at two places
  bool contains_constant() const;
  bool is_parallel_writeable() const;                      // neither aliases nor constants
  bool is_contiguous() const;                              // one interval of one variable, in order
  std::vector<VariableInterval> variable_regions() const;  // in order of places, joined where they continue
  std::vector<Interval> contiguous_regions() const;        // the same, as intervals of the flattened tensor

  std::string name() const;  // of its variables: "weights[0..31]"
  std::string shape_to_string() const { return to_string(shape_); }
  const View& view() const { return *view_; }
  const GraphData* graph() const { return graph_; }

 private:
  friend class Graph;
  friend Tensor concat(std::span<const Tensor> tensors, int axis);
  Tensor(const GraphData* graph, Type type, Shape shape, View view);
  Tensor with(Shape shape, View view) const;
  Tensor reshaped(Shape shape) const;
  int checked_axis(int axis, const char* operation) const;

  const GraphData* graph_ = nullptr;
  Type type_ = Type::f32;
  Shape shape_;
  std::shared_ptr<const View> view_;
};

Tensor concat(std::span<const Tensor> tensors, int axis = 0);
Tensor concat(const Tensor& a, const Tensor& b, int axis = 0);
Tensor append(const Tensor& a, const Tensor& b, int axis = 0);  // b lacks the dimension `axis`, or has it

}  // namespace superstep::bsp

#pragma GCC visibility pop
