// Views: ranges are checked here, with the exceptions of the public header; the rest is the machine's.
#include <poplar/Tensor.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/types.h"

namespace poplar {
namespace {

using core::guarded;
using core::machine_shape;
using core::machine_tensor;

std::int64_t number(std::size_t value) { return static_cast<std::int64_t>(value); }
std::size_t count(std::int64_t value) { return static_cast<std::size_t>(value); }

[[noreturn]] void outside(const Tensor& tensor, const std::string& what) {
  throw index_error(what + ": tensor " + core::describe(tensor));
}

int checked_dimension(const Tensor& tensor, unsigned dimension, const char* operation) {
  if (dimension >= tensor.rank())
    outside(tensor, fmt::format("{}: there is no dimension {} in a tensor of rank {}", operation, dimension,
                                tensor.rank()));
  return static_cast<int>(dimension);
}

Tensor like(const Tensor& tensor, core::bsp::Tensor view) {
  const core::TensorData& old = tensor.data();
  return Tensor(std::make_shared<const core::TensorData>(
      core::TensorData{old.state, std::move(view), old.type, old.replication}));
}

std::vector<int> axes(ArrayRef<unsigned> dimensions) { return {dimensions.begin(), dimensions.end()}; }
std::vector<int> axes(ArrayRef<std::size_t> dimensions) { return {dimensions.begin(), dimensions.end()}; }

}  // namespace

Tensor::Tensor() = default;
Tensor::~Tensor() = default;
Tensor::Tensor(const Tensor&) = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) & = default;
Tensor& Tensor::operator=(Tensor&&) & noexcept = default;
Tensor::Tensor(std::shared_ptr<const core::TensorData> data) : data_(std::move(data)) {}

const core::TensorData& Tensor::data() const {
  if (!data_) throw poplar_error("a tensor that is not there: make it by Graph::addVariable");
  return *data_;
}

Type Tensor::elementType() const { return data().type; }
unsigned Tensor::rank() const { return static_cast<unsigned>(machine_tensor(*this).rank()); }
std::size_t Tensor::numElements() const { return count(machine_tensor(*this).num_elements()); }
std::size_t Tensor::dim(unsigned i) const {
  return count(machine_tensor(*this).shape()[checked_dimension(*this, i, "dim")]);
}
std::vector<std::size_t> Tensor::shape() const {
  const superstep::Shape& shape = machine_tensor(*this).shape();
  return {shape.begin(), shape.end()};
}

Tensor Tensor::operator[](std::size_t i) const& {
  checked_dimension(*this, 0, "operator[]");
  if (i >= dim(0)) outside(*this, fmt::format("index {} lies outside the first dimension", i));
  return like(*this, machine_tensor(*this)[number(i)]);
}

Tensor Tensor::index(ArrayRef<std::size_t> indices) const {
  Tensor result = *this;
  for (const std::size_t i : indices) result = result[i];
  return result;
}

Tensor Tensor::slice(std::size_t begin, std::size_t end, unsigned dimension) const {
  const int axis = checked_dimension(*this, dimension, "slice");
  if (begin > end || end > dim(dimension))
    outside(*this, fmt::format("slice [{}, {}) lies outside dimension {}", begin, end, dimension));
  return like(*this, machine_tensor(*this).slice(number(begin), number(end), axis));
}

Tensor Tensor::slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const {
  if (begin.size() != end.size() || begin.size() > rank())
    outside(*this,
            fmt::format("slice: {} begins and {} ends of {} dimensions", begin.size(), end.size(), rank()));
  Tensor result = *this;
  for (std::size_t i = 0; i < begin.size(); ++i)
    result = result.slice(begin[i], end[i], static_cast<unsigned>(i));
  return result;
}

std::vector<Tensor> Tensor::slices(ArrayRef<Interval> intervals, unsigned dimension) const {
  const bool one = dimension == 0 && rank() == 1 && numElements() == 1;
  std::vector<Tensor> result;
  for (const Interval& interval : intervals) {
    const bool beyond = interval.begin() < interval.end() && interval.end() > 1;
    result.push_back(one && beyond ? broadcast(static_cast<unsigned>(interval.size()), 0)
                                   : slice(interval, dimension));
  }
  return result;
}

std::vector<Tensor> Tensor::slices(const std::vector<std::vector<Interval>>& intervals,
                                   unsigned dimension) const {
  std::vector<Tensor> result;
  for (const std::vector<Interval>& list : intervals) {
    const std::vector<Tensor> parts = slices(ArrayRef<Interval>(list), dimension);
    result.push_back(parts.empty() ? slice(0, 0, dimension) : concat(parts, dimension));
  }
  return result;
}

std::vector<Tensor> Tensor::slices(ArrayRef<unsigned> indices, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const unsigned i : indices) result.push_back(slice(i, std::size_t{i} + 1, dimension));
  return result;
}

Tensor Tensor::flatten() const {
  return guarded([&] { return like(*this, machine_tensor(*this).flatten()); });
}
Tensor Tensor::flatten(unsigned begin, unsigned end) const {
  if (begin > end || end > rank())
    outside(*this, fmt::format("flatten: dimensions [{}, {}) are not there", begin, end));
  return guarded([&] {
    return like(*this, machine_tensor(*this).flatten(static_cast<int>(begin), static_cast<int>(end)));
  });
}
Tensor Tensor::reshape(ArrayRef<std::size_t> shape) const {
  return guarded([&] { return like(*this, machine_tensor(*this).reshape(machine_shape(shape))); });
}
Tensor Tensor::reshapePartial(unsigned begin, unsigned end, ArrayRef<std::size_t> shape) const {
  if (begin > end || end > rank())
    outside(*this, fmt::format("reshapePartial: dimensions [{}, {}) are not there", begin, end));
  return guarded([&] {
    return like(*this, machine_tensor(*this).reshape_partial(static_cast<int>(begin), static_cast<int>(end),
                                                             machine_shape(shape)));
  });
}
Tensor Tensor::dimShuffle(ArrayRef<unsigned> permutation) const {
  return guarded([&] { return like(*this, machine_tensor(*this).dim_shuffle(axes(permutation))); });
}
Tensor Tensor::dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const {
  for (const unsigned dimension : source) checked_dimension(*this, dimension, "dimShufflePartial");
  for (const unsigned dimension : destination) checked_dimension(*this, dimension, "dimShufflePartial");
  return guarded([&] {
    return like(*this, machine_tensor(*this).dim_shuffle_partial(axes(source), axes(destination)));
  });
}
Tensor Tensor::dimRoll(unsigned from, unsigned to) const {
  const int source = checked_dimension(*this, from, "dimRoll");
  const int destination = checked_dimension(*this, to, "dimRoll");
  return guarded([&] { return like(*this, machine_tensor(*this).dim_roll(source, destination)); });
}
Tensor Tensor::transpose() const {
  return guarded([&] { return like(*this, machine_tensor(*this).transpose()); });
}
Tensor Tensor::expand(ArrayRef<std::size_t> indices) const {
  for (const std::size_t i : indices)
    if (i > rank()) outside(*this, fmt::format("expand: there is no place {} for a dimension", i));
  return guarded([&] { return like(*this, machine_tensor(*this).expand(axes(indices))); });
}
Tensor Tensor::squeeze() const {
  return guarded([&] { return like(*this, machine_tensor(*this).squeeze()); });
}
Tensor Tensor::squeeze(ArrayRef<std::size_t> indices) const {
  for (const std::size_t i : indices) checked_dimension(*this, static_cast<unsigned>(i), "squeeze");
  return guarded([&] { return like(*this, machine_tensor(*this).squeeze(axes(indices))); });
}
Tensor Tensor::broadcast(unsigned n, unsigned dimension) const {
  const int axis = checked_dimension(*this, dimension, "broadcast");
  return guarded([&] { return like(*this, machine_tensor(*this).broadcast(n, axis)); });
}
Tensor Tensor::upsample(unsigned scale, unsigned dimension, UpsampleMethod) const {
  const int axis = checked_dimension(*this, dimension, "upsample");
  return guarded([&] { return like(*this, machine_tensor(*this).upsample(scale, axis)); });
}
Tensor Tensor::subSample(unsigned stride, unsigned dimension) const {
  const int axis = checked_dimension(*this, dimension, "subSample");
  return guarded([&] { return like(*this, machine_tensor(*this).sub_sample(stride, axis)); });
}
Tensor Tensor::reverse(unsigned dimension) const {
  const int axis = checked_dimension(*this, dimension, "reverse");
  return guarded([&] { return like(*this, machine_tensor(*this).reverse(axis)); });
}
Tensor Tensor::reinterpret(const Type& type) const {
  return guarded([&] {
    const core::TensorData& old = data();
    core::TensorData changed{old.state, old.tensor.reinterpret(core::machine_type(type)), type,
                             old.replication};
    return Tensor(std::make_shared<const core::TensorData>(std::move(changed)));
  });
}

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension) {
  if (tensors.empty()) throw poplar_error("concat of no tensors");
  const int axis = checked_dimension(tensors[0], dimension, "concat");
  std::vector<core::bsp::Tensor> parts;
  for (const Tensor& tensor : tensors) {
    if (tensor.elementType() != tensors[0].elementType())
      throw type_error(fmt::format("concat: {} is {}, {} is {}", core::describe(tensors[0]),
                                   tensors[0].elementType().toString(), core::describe(tensor),
                                   tensor.elementType().toString()));
    if (tensor.data().replication != tensors[0].data().replication)
      throw graph_replication_error(
          fmt::format("concat: one of {} and {} is of a replicated graph: take getNonReplicatedTensor of it",
                      core::describe(tensors[0]), core::describe(tensor)));
    parts.push_back(machine_tensor(tensor));
  }
  return guarded([&] { return like(tensors[0], core::bsp::concat(parts, axis)); });
}

Tensor concat(const Tensor& first, const Tensor& second, unsigned dimension) {
  const Tensor both[] = {first, second};
  return concat(ArrayRef<Tensor>(both, 2), dimension);
}

Tensor append(const Tensor& first, const Tensor& second, unsigned dimension) {
  return concat(first, second.rank() + 1 == first.rank() ? second.expand({dimension}) : second, dimension);
}
Tensor append(const Tensor& first, const Tensor& second) { return append(first, second, 0); }

}  // namespace poplar
