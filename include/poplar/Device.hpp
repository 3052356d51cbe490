// A device that programs are loaded onto. There is no hardware behind it: a model answers.
#ifndef poplar_Device_hpp
#define poplar_Device_hpp

#include <memory>
#include <poplar/Target.hpp>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct DeviceData;
}

class Device {
 public:
  Device();
  ~Device();
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  unsigned getId() const;
  const Target& getTarget() const;
  bool attach() const;  // true: a model is always free
  void detach() const;
  bool isAttached() const;
  bool supportsRemoteBuffers() const;
  Device createVirtualDevice(unsigned tilesPerIPU);  // the first tiles of every chip
  // There is no simulator of instructions here: a poplar_error.
  static Device createSimulatorDevice(const Target& target, const OptionFlags& options = {});
  static Device createCPUDevice(unsigned numIPUs = 1);

  explicit Device(std::shared_ptr<core::DeviceData> data);  // of the library

 private:
  std::shared_ptr<core::DeviceData> data_;
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
