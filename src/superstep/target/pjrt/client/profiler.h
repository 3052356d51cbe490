// The profiler that some plug-ins bring with them, as an extension of their interface: what the device did,
// as the plug-in records it.
#pragma once

#include <string>

#include "superstep/target/pjrt/client/library.h"

namespace superstep::target::pjrt {

// Records from here to stop().
class DeviceTrace {
 public:
  static bool is_offered(const Library& library);
  // Throws Error: unsupported where none is offered, else the plug-in's words.
  explicit DeviceTrace(const Library& library);
  ~DeviceTrace();
  DeviceTrace(const DeviceTrace&) = delete;
  DeviceTrace& operator=(const DeviceTrace&) = delete;

  // Once. What was recorded: a protobuf, XSpace, that TensorBoard and XProf open (*.xplane.pb).
  std::string stop();

 private:
  template <class Args>
  void call(abi::PluginError* (*function)(Args*), Args& args, std::string_view doing) const;
  [[noreturn]] void raise(abi::PluginError* error, std::string_view doing) const;

  const Library& library_;
  const abi::ProfilerApi* api_;
  abi::PluginProfiler* profiler_ = nullptr;
};

}  // namespace superstep::target::pjrt
