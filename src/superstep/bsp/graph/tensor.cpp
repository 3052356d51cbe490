#include "superstep/bsp/graph/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "superstep/bsp/graph/graph_data.h"

namespace superstep::bsp {
namespace {

[[noreturn]] void refuse(const Tensor& tensor, const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message,
              fmt::format("tensor {}{}", tensor.name(), tensor.shape_to_string()));
}

std::vector<std::int64_t> extents_of(const Tensor& tensor) { return tensor.shape().extents(); }

}  // namespace

Tensor::Tensor(const GraphData* graph, Type type, Shape shape, View view)
    : graph_(graph), type_(type), shape_(std::move(shape)), view_(std::make_shared<View>(std::move(view))) {}

Tensor Tensor::with(Shape shape, View view) const {
  return Tensor(graph_, type_, std::move(shape), std::move(view));
}

Tensor Tensor::reshaped(Shape shape) const {
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

std::int64_t Tensor::dim(int axis) const { return shape_[checked_axis(axis, "dim")]; }

int Tensor::checked_axis(int axis, const char* operation) const {
  if (!valid())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} of a tensor that is not there", operation));
  if (axis < 0 || axis >= rank())
    refuse(*this,
           fmt::format("{}: there is no dimension {} in a tensor of rank {}", operation, axis, rank()));
  return axis;
}

Tensor Tensor::operator[](std::int64_t index) const {
  checked_axis(0, "index");
  if (index < 0 || index >= shape_[0])
    refuse(*this, fmt::format("index {} lies outside the first dimension", index));
  std::vector<std::int64_t> rest(shape_.begin() + 1, shape_.end());
  return with(Shape(std::move(rest)), view_->slice(shape_, 0, index, index + 1));
}

Tensor Tensor::index(std::span<const std::int64_t> indices) const {
  Tensor result = *this;
  for (const std::int64_t i : indices) result = result[i];
  return result;
}

Tensor Tensor::slice(std::int64_t begin, std::int64_t end, int axis) const {
  checked_axis(axis, "slice");
  if (begin < 0 || begin > end || end > shape_[axis])
    refuse(*this, fmt::format("slice [{}, {}) lies outside dimension {}", begin, end, axis));
  if (begin == 0 && end == shape_[axis]) return *this;
  std::vector<std::int64_t> extents = extents_of(*this);
  extents[static_cast<std::size_t>(axis)] = end - begin;
  return with(Shape(std::move(extents)), view_->slice(shape_, axis, begin, end));
}

Tensor Tensor::slice(std::span<const std::int64_t> begin, std::span<const std::int64_t> end) const {
  if (begin.size() != end.size() || static_cast<int>(begin.size()) > rank())
    refuse(*this, "slice: as many begins as ends, and no more than dimensions");
  Tensor result = *this;
  for (std::size_t i = 0; i < begin.size(); ++i) result = result.slice(begin[i], end[i], static_cast<int>(i));
  return result;
}

std::vector<Tensor> Tensor::slices(std::span<const Interval> intervals, int axis) const {
  std::vector<Tensor> result;
  for (const Interval& interval : intervals) result.push_back(slice(interval, axis));
  return result;
}

Tensor Tensor::reshape(Shape shape) const {
  if (!valid()) throw Error(ErrorCode::invalid_argument, "reshape of a tensor that is not there");
  if (shape.element_count() != num_elements())
    refuse(*this, fmt::format("reshape to {}: {} elements are not {}", to_string(shape), num_elements(),
                              shape.element_count()));
  return reshaped(std::move(shape));
}

Tensor Tensor::reshape_partial(int begin, int end, const Shape& shape) const {
  if (begin < 0 || begin > end || end > rank())
    refuse(*this, fmt::format("reshape_partial: dimensions [{}, {}) are not there", begin, end));
  std::vector<std::int64_t> extents(shape_.begin(), shape_.begin() + begin);
  extents.insert(extents.end(), shape.begin(), shape.end());
  extents.insert(extents.end(), shape_.begin() + end, shape_.end());
  return reshape(Shape(std::move(extents)));
}

Tensor Tensor::flatten() const { return reshape(Shape{num_elements()}); }

Tensor Tensor::flatten(int begin, int end) const {
  std::int64_t count = 1;
  for (int i = std::max(begin, 0); i < std::min(end, rank()); ++i) count *= shape_[i];
  return reshape_partial(begin, end, Shape{count});
}

Tensor Tensor::dim_shuffle(std::span<const int> permutation) const {
  std::vector<int> sorted(permutation.begin(), permutation.end()), expected(static_cast<std::size_t>(rank()));
  std::sort(sorted.begin(), sorted.end());
  std::iota(expected.begin(), expected.end(), 0);
  if (sorted != expected)
    refuse(*this, fmt::format("dim_shuffle: [{}] is not a permutation of the dimensions",
                              fmt::join(permutation, ",")));
  std::vector<std::int64_t> extents;
  for (const int axis : permutation) extents.push_back(shape_[axis]);
  return with(Shape(std::move(extents)), view_->shuffle(shape_, permutation));
}

Tensor Tensor::dim_shuffle(std::initializer_list<int> permutation) const {
  return dim_shuffle(std::span<const int>(permutation.begin(), permutation.size()));
}

Tensor Tensor::dim_shuffle_partial(std::span<const int> source, std::span<const int> destination) const {
  std::vector<int> permutation(static_cast<std::size_t>(rank()), -1);
  std::set<int> moved;
  if (source.size() != destination.size())
    refuse(*this, "dim_shuffle_partial: as many sources as destinations");
  for (std::size_t i = 0; i < source.size(); ++i) {
    permutation[static_cast<std::size_t>(checked_axis(destination[i], "dim_shuffle_partial"))] =
        checked_axis(source[i], "dim_shuffle_partial");
    moved.insert(source[i]);
  }
  int next = 0;
  for (int& axis : permutation) {
    if (axis >= 0) continue;
    while (moved.contains(next)) ++next;
    axis = next++;
  }
  return dim_shuffle(permutation);
}

Tensor Tensor::dim_roll(int from, int to) const {
  const int source[] = {from}, destination[] = {to};
  return dim_shuffle_partial(source, destination);
}

Tensor Tensor::transpose() const {
  std::vector<int> permutation(static_cast<std::size_t>(rank()));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  return dim_shuffle(permutation);
}

Tensor Tensor::broadcast(std::int64_t times, int axis) const {
  checked_axis(axis, "broadcast");
  if (times < 0) refuse(*this, fmt::format("broadcast {} times", times));
  std::vector<std::int64_t> extents = extents_of(*this);
  extents[static_cast<std::size_t>(axis)] *= times;
  return with(Shape(std::move(extents)), view_->broadcast(shape_, axis, times));
}

Tensor Tensor::expand(std::span<const int> axes) const {
  std::vector<int> sorted(axes.begin(), axes.end());
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<std::int64_t> extents = extents_of(*this);
  for (const int axis : sorted) {
    if (axis < 0 || axis > rank())
      refuse(*this, fmt::format("expand: there is no place {} for a dimension", axis));
    extents.insert(extents.begin() + axis, 1);
  }
  return reshape(Shape(std::move(extents)));
}

Tensor Tensor::expand(std::initializer_list<int> axes) const {
  return expand(std::span<const int>(axes.begin(), axes.size()));
}

Tensor Tensor::squeeze() const {
  std::vector<std::int64_t> extents;
  for (const std::int64_t extent : shape_)
    if (extent != 1) extents.push_back(extent);
  return reshape(Shape(std::move(extents)));
}

Tensor Tensor::squeeze(std::span<const int> axes) const {
  std::vector<std::int64_t> extents = extents_of(*this);
  std::vector<int> sorted(axes.begin(), axes.end());
  std::sort(sorted.rbegin(), sorted.rend());
  for (const int axis : sorted) {
    if (dim(axis) != 1) refuse(*this, fmt::format("squeeze: dimension {} is not one", axis));
    extents.erase(extents.begin() + axis);
  }
  return reshape(Shape(std::move(extents)));
}

Tensor Tensor::sub_sample(std::int64_t step, int axis) const {
  checked_axis(axis, "sub_sample");
  if (step < 1) refuse(*this, fmt::format("sub_sample: a step of {}", step));
  if (step == 1 || num_elements() == 0) return *this;
  std::vector<std::int64_t> extents = extents_of(*this);
  std::int64_t& extent = extents[static_cast<std::size_t>(axis)];
  extent = (extent + step - 1) / step;
  return with(Shape(std::move(extents)), view_->sub_sample(shape_, axis, step));
}

Tensor Tensor::upsample(std::int64_t scale, int axis, UpsampleMethod) const {
  checked_axis(axis, "upsample");
  if (scale < 1) refuse(*this, fmt::format("upsample: a scale of {}", scale));
  std::vector<std::int64_t> extents = extents_of(*this);
  extents[static_cast<std::size_t>(axis)] *= scale;
  return with(Shape(std::move(extents)), view_->repeat(shape_, axis, scale));
}

Tensor Tensor::reverse(int axis) const {
  checked_axis(axis, "reverse");
  return with(shape_, view_->reverse(shape_, axis));
}

Tensor Tensor::reinterpret(Type type) const {
  if (!is_device_type(type) || size_in_bytes(type) != size_in_bytes(type_))
    refuse(*this,
           fmt::format("reinterpret: {} is not of the size of {}", device_name(type), device_name(type_)));
  Tensor result = *this;
  result.type_ = type;
  return result;
}

bool Tensor::contains_aliases() const { return view_->contains_aliases(); }

bool Tensor::contains_constant() const {
  for (const Region& region : view_->regions())
    if (graph_->variable(region.variable).constant) return true;
  return false;
}

bool Tensor::is_parallel_writeable() const { return !contains_constant() && !contains_aliases(); }
bool Tensor::is_contiguous() const { return view_->is_contiguous(); }

std::vector<VariableInterval> Tensor::variable_regions() const {
  std::vector<VariableInterval> result;
  const auto put = [&](VariableId variable, std::int64_t begin, std::int64_t end) {
    if (!result.empty() && result.back().variable == variable && result.back().interval.end == begin)
      result.back().interval.end = end;
    else
      result.push_back({variable, {begin, end}});
  };
  for (const Run& run : view_->runs())
    if (run.stride == 1)
      put(run.variable, run.element, run.element + run.length);
    else
      for (std::int64_t i = 0; i < run.length; ++i)
        put(run.variable, run.element + i * run.stride, run.element + i * run.stride + 1);
  return result;
}

std::vector<Interval> Tensor::contiguous_regions() const {
  std::vector<Interval> result;
  std::int64_t begin = 0;
  for (const VariableInterval& region : variable_regions()) {
    result.push_back({begin, begin + region.interval.size()});
    begin += region.interval.size();
  }
  return result;
}

std::string Tensor::name() const {
  if (!valid()) return "(none)";
  if (view_->regions().empty()) return "(empty)";
  std::vector<std::string> names;
  for (const Region& region : view_->regions()) {
    const std::string& name = graph_->variable(region.variable).name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (names.size() == 4) break;
  }
  if (names.size() == 4) names.back() = "...";
  return fmt::format("{}", fmt::join(names, "+"));
}

Tensor concat(std::span<const Tensor> tensors, int axis) {
  if (tensors.empty()) throw Error(ErrorCode::invalid_argument, "concat of no tensors");
  const Tensor& first = tensors[0];
  first.checked_axis(axis, "concat");
  std::vector<std::int64_t> extents = first.shape().extents();
  extents[static_cast<std::size_t>(axis)] = 0;
  std::vector<const View*> views;
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) {
    bool fits = tensor.valid() && tensor.rank() == first.rank() &&
                tensor.element_type() == first.element_type() && tensor.graph() == first.graph();
    for (int i = 0; fits && i < first.rank(); ++i) fits = i == axis || tensor.shape()[i] == first.shape()[i];
    if (!fits)
      refuse(first, fmt::format("concat along {}: {} {}{} does not go with {}", axis,
                                device_name(tensor.element_type()), tensor.name(), tensor.shape_to_string(),
                                device_name(first.element_type())));
    extents[static_cast<std::size_t>(axis)] += tensor.shape()[axis];
    views.push_back(&tensor.view());
    shapes.push_back(tensor.shape());
  }
  return first.with(Shape(std::move(extents)), View::concat(views, shapes, axis));
}

Tensor concat(const Tensor& a, const Tensor& b, int axis) {
  const Tensor both[] = {a, b};
  return concat(both, axis);
}

Tensor append(const Tensor& a, const Tensor& b, int axis) {
  return concat(a, b.rank() + 1 == a.rank() ? b.expand({axis}) : b, axis);
}

}  // namespace superstep::bsp
