// A device behind a plug-in as a machine file: its constants measured now, on programs whose data stay there.
#pragma once

#include <functional>
#include <string>

#include "superstep/lab/machine/host_machine.h"

namespace superstep::lab {

struct DeviceMachineSettings {
  std::string id = "device-local";
  std::string target;  // "cuda", "pjrt:PATH"; the time of a call is what its executables take
  // Sizes end where one product takes longer, and streams are of so many bytes: of an accelerator, whose
  // rates are reached late, and within minutes on a processor (chosen).
  double longest_product = 0.05;  // s
  std::size_t stream_bytes = std::size_t{256} << 20;
  std::function<void(const std::string& what)> progress = {};
};

// Products by size and type, memory, the start of a kernel, a call, the way to and from the host. Takes about
// a minute. What a plug-in does not say, nor a measurement here, is written as a guess (kind GU). Throws what
// compilation throws.
HostMachine measure_device(const DeviceMachineSettings& settings);

}  // namespace superstep::lab
