#include "superstep/target/ipu/place/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/target/ipu/cut/channel_group.h"

namespace superstep::target::ipu {
namespace {

constexpr std::int64_t least_spread_elements = 4;  // of a value on a tile

}  // namespace

std::string label_of(const graph::Value& value, const std::string& maker) {
  const std::string_view number = std::string_view(value.name).substr(value.name.empty() ? 0 : 1);
  const bool numbered = value.name.starts_with('v') && !number.empty() &&
                        std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return numbered ? maker + "/result" : value.name;
}

bsp::Tensor Values::plain_variable(const std::string& name, const graph::ValueType& type) {
  if (!bsp::is_device_type(type.element))
    throw Error(ErrorCode::unsupported, fmt::format("a tile does not have {}", name_of(type.element)),
                "value " + name, "use f32 or f16");
  return device_.add_variable(type.element, type.shape, name);
}

bsp::Tensor Values::grouped_variable(const std::string& name, const graph::ValueType& type) {
  // [N, C / g, positions, g] on the machine, seen as [N, C, positions].
  std::vector<std::int64_t> extents{type.shape[0], type.shape[1] / channel_group};
  std::vector<int> order{0, 1, type.shape.rank()};
  for (int axis = 2; axis < type.shape.rank(); ++axis) {
    extents.push_back(type.shape[axis]);
    order.push_back(axis);
  }
  extents.push_back(channel_group);
  return plain_variable(name, {type.element, Shape(extents)}).dim_shuffle(order).reshape(type.shape);
}

void Values::add_waiting(graph::ValueId id, const bsp::Tensor& tensor) {
  tensors_[id] = tensor;
  waiting_.insert(id);
}

void Values::add_view(graph::ValueId id, const bsp::Tensor& tensor, graph::ValueId of) {
  tensors_[id] = tensor;
  if (is_waiting(of)) views_[id] = viewed_value(of);
}

graph::ValueId Values::viewed_value(graph::ValueId id) const {
  const auto found = views_.find(id);
  return found == views_.end() ? id : found->second;
}

bsp::Tensor Values::tensor(graph::ValueId id) {
  const auto found = tensors_.find(id);
  if (found != tensors_.end()) return found->second;
  const graph::Value& value = graph_.value(id);
  if (value.kind != graph::ValueKind::constant)
    throw Error(ErrorCode::internal, "a value is used before it is made", "value " + value.name);
  if (!bsp::is_device_type(value.type.element)) plain_variable(value.name, value.type);  // says why
  add_waiting(id, device_.add_constant(value.data, value.name));
  return tensors_[id];
}

void Values::place(graph::ValueId id, const bsp::Tensor& flat, Spread spread) {
  for_each_box(spread, [&](const std::vector<AxisRange>& ranges, std::uint32_t tile) {
    device_.set_tile_mapping(sliced(flat, ranges), tile);
  });
  waiting_.erase(viewed_value(id));
  spreads_[id] = std::move(spread);
}

void Values::place_evenly(graph::ValueId id) {
  id = viewed_value(id);
  device_.map_linearly(tensors_.at(id), least_spread_elements);
  waiting_.erase(id);
}

void Values::place_all_waiting() {
  while (!waiting_.empty()) place_evenly(*waiting_.begin());
}

void Values::place_waiting(const bsp::Tensor& tensor) {
  std::set<bsp::VariableId> variables;
  for (const bsp::Region& region : tensor.view().regions()) variables.insert(region.variable);
  std::vector<graph::ValueId> found;
  for (const graph::ValueId id : waiting_) {
    const auto regions = tensors_.at(id).view().regions();
    if (!regions.empty() && variables.contains(regions[0].variable)) found.push_back(id);
  }
  for (const graph::ValueId id : found) place_evenly(id);
}

bool Values::shares_variable(graph::ValueId a, graph::ValueId b) const {
  const auto first = tensors_.find(a), second = tensors_.find(b);
  if (first == tensors_.end() || second == tensors_.end()) return false;
  const auto regions = first->second.view().regions(), others = second->second.view().regions();
  return std::ranges::any_of(regions, [&](const bsp::Region& region) {
    return std::ranges::any_of(others,
                               [&](const bsp::Region& other) { return region.variable == other.variable; });
  });
}

std::optional<graph::ValueId> Values::replaced_by(graph::ValueId next) const {
  const auto found = replaced_.find(next);
  return found == replaced_.end() ? std::nullopt : std::optional(found->second);
}

const Spread* Values::spread(graph::ValueId id) const {
  const auto found = spreads_.find(id);
  return found == spreads_.end() ? nullptr : &found->second;
}

bsp::Tensor sliced(bsp::Tensor tensor, const std::vector<AxisRange>& ranges) {
  for (const AxisRange& range : ranges)
    if (range.range.size() < tensor.shape()[range.axis] || range.range.begin > 0)
      tensor = tensor.slice(range.range, range.axis);
  return tensor;
}

void for_each_box(const Spread& spread,
                  const std::function<void(const std::vector<AxisRange>&, std::uint32_t)>& f) {
  std::vector<AxisRange> ranges(spread.bounds.size());
  for (std::size_t box = 0; box < spread.tiles.size(); ++box) {
    std::size_t rest = box;
    for (std::size_t axis = spread.bounds.size(); axis-- > 0;) {
      const Bounds& along = spread.bounds[axis];
      const std::size_t k = rest % (along.size() - 1);
      rest /= along.size() - 1;
      ranges[axis] = {static_cast<int>(axis), {along[k], along[k + 1]}};
    }
    f(ranges, spread.tiles[box]);
  }
}

}  // namespace superstep::target::ipu
