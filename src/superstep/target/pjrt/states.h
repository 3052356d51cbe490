// The states of a program on the devices that share it. Several programs may take the same states in turn.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/pjrt/spread.h"

namespace superstep::target::pjrt {

class DeviceStates {
 public:
  struct Slot {
    std::string name;
    graph::ValueType type;
    int axis = stablehlo::whole;
    std::vector<Buffer> buffers;  // by device
  };

  // Copies the graph's states to the devices; `axes` as in stablehlo::Sharding.
  DeviceStates(const graph::Graph& graph, const std::vector<int>& axes, const Place& place);

  std::size_t size() const { return slots_.size(); }
  Slot& at(std::size_t index) { return slots_[index]; }
  const Slot& at(std::size_t index) const { return slots_[index]; }
  std::size_t bytes() const;  // on one device

  std::vector<std::string> names() const;
  // By name: throw Error (invalid_argument) on one that is not there, with the nearest.
  Tensor read(std::string_view name) const;
  void write(std::string_view name, const Tensor& value);
  // How often one was written: by who sets it, not by runs.
  std::uint64_t settings() const { return settings_; }

  // After an error in the midst of a run what the devices held is lost: read() and require() throw from then
  // on.
  void lose() { lost_ = true; }
  void keep() { lost_ = false; }
  void require() const;

 private:
  const Slot& slot(std::string_view name) const;

  Place place_;
  std::deque<Slot> slots_;
  std::uint64_t settings_ = 0;
  bool lost_ = false;
};

}  // namespace superstep::target::pjrt
