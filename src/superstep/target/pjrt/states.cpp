#include "superstep/target/pjrt/states.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::target::pjrt {
namespace {

std::size_t bytes_of(const graph::ValueType& type) {
  return static_cast<std::size_t>(type.shape.element_count()) * size_in_bytes(type.element);
}

}  // namespace

DeviceStates::DeviceStates(const graph::Graph& graph, const std::vector<int>& axes, const Place& place)
    : place_(place) {
  for (std::size_t i = 0; i < graph.states().size(); ++i) {
    const graph::Value& value = graph.value(graph.states()[i]);
    const int axis = axes.empty() ? stablehlo::whole : axes[i];
    slots_.push_back({value.name, value.type, axis, Sent(place, value.data, axis).buffers()});
  }
}

std::size_t DeviceStates::bytes() const {
  std::size_t bytes = 0;
  for (const Slot& slot : slots_)
    bytes += bytes_of({slot.type.element,
                       stablehlo::piece_shape(slot.type.shape, slot.axis, static_cast<int>(place_.count))});
  return bytes;
}

std::vector<std::string> DeviceStates::names() const {
  std::vector<std::string> names;
  for (const Slot& slot : slots_) names.push_back(slot.name);
  return names;
}

void DeviceStates::require() const {
  if (lost_)
    throw Error(ErrorCode::io, "an earlier run failed, and what the device held is lost",
                place_.client->library().name(), "start again from the last checkpoint: --resume");
}

const DeviceStates::Slot& DeviceStates::slot(std::string_view name) const {
  const auto found = std::ranges::find(slots_, name, &Slot::name);
  if (found != slots_.end()) return *found;
  throw Error(ErrorCode::invalid_argument, "there is no such state", std::string(name),
              unknown_name_hint(name, names()));
}

Tensor DeviceStates::read(std::string_view name) const {
  require();
  const Slot& found = slot(name);
  Tensor tensor(found.type.element, found.type.shape);
  std::vector<const Buffer*> by_device;
  for (const Buffer& buffer : found.buffers) by_device.push_back(&buffer);
  Received received(place_);
  received.add(by_device, tensor, found.axis);
  received.await("copying from the device");
  return tensor;
}

void DeviceStates::write(std::string_view name, const Tensor& value) {
  Slot& found = const_cast<Slot&>(slot(name));
  const graph::ValueType given{value.type(), value.shape()};
  if (given != found.type)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is {}, the model wants {}", to_string(given), to_string(found.type)),
                "state " + found.name);
  found.buffers = Sent(place_, value, found.axis).buffers();
  ++settings_;
}

}  // namespace superstep::target::pjrt
