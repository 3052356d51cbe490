// Finds devices: those of type IPU are modelled chips, and a line to standard error says so.
#ifndef poplar_DeviceManager_hpp
#define poplar_DeviceManager_hpp

#include <cstddef>
#include <poplar/Device.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/TargetType.hpp>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

// The environment variable SUPERSTEP_POPLAR_DEVICES says which chips there are: gc2, gc200, bow, or none;
// gc200 without it.
class DeviceManager {
 public:
  DeviceManager() = default;
  static DeviceManager createDeviceManager() { return DeviceManager(); }

  std::size_t getNumDevices() const;
  std::vector<Device> getDevices(const OptionFlags& options = {}) const;
  // Of so many chips, 1, 2, 4 ... 64; none for another number.
  std::vector<Device> getDevices(TargetType type, unsigned numIPUs, const OptionFlags& options = {}) const;
  Device getDevice(unsigned id, const OptionFlags& options = {}) const;
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
