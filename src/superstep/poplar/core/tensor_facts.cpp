// What can be asked of a view, and how it is shown.
#include <iostream>
#include <poplar/Tensor.hpp>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/replicas/replicas.h"

namespace poplar {
namespace core {

const bsp::Tensor& machine_tensor(const Tensor& tensor) { return tensor.data().tensor; }

const bsp::Tensor& single_tensor(const Tensor& tensor) {
  if (tensor.data().replication)
    throw graph_replication_error("tensor " + describe(tensor) +
                                  " is of a replicated graph: take getNonReplicatedTensor of it");
  return machine_tensor(tensor);
}

superstep::Shape machine_shape(ArrayRef<std::size_t> shape) {
  return superstep::Shape(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

std::string describe(const Tensor& tensor) {
  return tensor.valid() ? tensor.getVarStr() + tensor.shapeToString() : std::string("(none)");
}

}  // namespace core

using core::machine_tensor;

bool Tensor::isContiguous() const { return machine_tensor(*this).is_contiguous(); }
bool Tensor::containsAliases() const { return machine_tensor(*this).contains_aliases(); }
bool Tensor::containsConstant() const { return machine_tensor(*this).contains_constant(); }

bool Tensor::constantNumber(double* value) const {
  const core::bsp::Tensor& tensor = machine_tensor(*this);
  if (tensor.num_elements() != 1) return false;
  const core::bsp::Region& place = tensor.view().regions()[0];
  const core::bsp::Variable& variable = tensor.graph()->variable(place.variable);
  if (!variable.constant || variable.replica_index || !variable.initial) return false;
  *value =
      variable.initial->values ? variable.initial->values->at(place.element_offset) : variable.initial->splat;
  return true;
}

bool Tensor::intersectsWith(const Tensor& other) const {
  if (data().replication != other.data().replication)
    return (data().replication ? core::all_parts(*this) : *this)
        .intersectsWith(other.data().replication ? core::all_parts(other) : other);
  const core::bsp::Tensor &a = machine_tensor(*this), &b = machine_tensor(other);
  if (a.graph() != b.graph()) return false;
  std::map<core::bsp::VariableId, std::vector<core::bsp::Interval>> mine, theirs;
  a.view().for_each_interval([&](auto variable, std::int64_t begin, std::int64_t end) {
    mine[variable].push_back({begin, end});
  });
  b.view().for_each_interval([&](auto variable, std::int64_t begin, std::int64_t end) {
    if (mine.contains(variable)) theirs[variable].push_back({begin, end});
  });
  for (auto& [variable, list] : theirs) {
    const core::bsp::IntervalSet left(std::move(mine[variable])), right(std::move(list));
    if (!left.intersection(right).empty()) return true;
  }
  return false;
}

std::vector<Interval> Tensor::getContiguousRegions() const {
  std::vector<Interval> result;
  for (const core::bsp::Interval& interval : machine_tensor(*this).contiguous_regions())
    result.emplace_back(interval.begin, interval.end);
  return result;
}

std::vector<VariableInterval> Tensor::getVarRegions() const {
  std::vector<VariableInterval> result;
  for (const core::bsp::VariableInterval& region : machine_tensor(*this).variable_regions())
    result.emplace_back(VariableRef(static_cast<std::uint32_t>(region.variable.index())),
                        Interval(static_cast<std::size_t>(region.interval.begin),
                                 static_cast<std::size_t>(region.interval.end)));
  return result;
}

std::string Tensor::shapeToString() const { return fmt::format("{{{}}}", fmt::join(shape(), ",")); }
std::string Tensor::getVarStr() const { return machine_tensor(*this).name(); }
std::string Tensor::getDebugStr() const {
  return fmt::format("{}{} {}", getVarStr(), shapeToString(), elementType().toString());
}
void Tensor::dump() const { std::cerr << *this << "\n"; }
void Tensor::dumpRegions() const { outputRegions(std::cerr); }
void Tensor::outputRegions(std::ostream& out) const {
  for (const VariableInterval& region : getVarRegions())
    out << "variable " << region.var.getId() << " " << region.interval << "\n";
}

bool Tensor::operator==(const Tensor& other) const {
  if (!valid() || !other.valid()) return valid() == other.valid();
  const core::bsp::Tensor &a = machine_tensor(*this), &b = machine_tensor(other);
  return a.graph() == b.graph() && data().replication == other.data().replication &&
         elementType() == other.elementType() && a.shape() == b.shape() &&
         getVarRegions() == other.getVarRegions();
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << (tensor.valid() ? tensor.getDebugStr() : std::string("(none)"));
}

}  // namespace poplar
