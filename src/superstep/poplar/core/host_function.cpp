// Functions of the host: their inputs leave by streams, their outputs come by streams.
#include <poplar/Engine.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/bsp/compile/executable_data.h"
#include "superstep/poplar/core/engine_data.h"
#include "superstep/poplar/core/guard.h"

namespace poplar {
namespace {

std::string stream_name(const std::string& handle, const char* way, std::size_t number) {
  return fmt::format("{}/{}{}", handle, way, number);
}

// What one replica's call has gathered so far.
struct HostCall {
  Engine::HostCallback function;
  std::vector<std::vector<std::byte>> inputs, outputs;
  std::size_t arrived = 0;

  void arrive(std::size_t number, const void* data) {
    std::memcpy(inputs[number].data(), data, inputs[number].size());
    if (++arrived == inputs.size()) run();
  }
  void run() {
    arrived = 0;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const auto& input : inputs) from.push_back(input.data());
    for (auto& output : outputs) to.push_back(output.data());
    function(ArrayRef<const void*>(from), ArrayRef<void*>(to));
  }
};

std::vector<std::vector<std::byte>> buffers_of(const core::EngineData& data, const std::string& handle,
                                               const char* way) {
  std::vector<std::vector<std::byte>> buffers;
  for (const core::bsp::StreamData& stream : data.executable->executable.data().streams)
    if (stream.handle == stream_name(handle, way, buffers.size()))
      buffers.emplace_back(static_cast<std::size_t>(stream.elements) * size_in_bytes(stream.type));
  return buffers;
}

}  // namespace

HostFunction Graph::addHostFunction(StringRef handle, ArrayRef<HostFunction::Argument> inputs,
                                    ArrayRef<HostFunction::Argument> outputs) {
  std::vector<std::uint32_t> from, to;
  for (const auto& [type, elements] : inputs)
    from.push_back(addDeviceToHostFIFO(stream_name(handle, "input", from.size()), type, elements).getId());
  for (const auto& [type, elements] : outputs)
    to.push_back(addHostToDeviceFIFO(stream_name(handle, "output", to.size()), type, elements).getId());
  if (from.empty() && to.empty())
    throw poplar_error("the function of the host '" + handle.cloneAsString() +
                       "' takes nothing and gives nothing");
  return HostFunction(handle, std::move(from), std::move(to));
}

void Engine::connectHostFunction(StringRef handle, unsigned replica, HostCallback function) {
  const std::string name = handle;
  auto call = std::make_shared<HostCall>();
  call->function = std::move(function);
  call->inputs = buffers_of(*data_, name, "input");
  call->outputs = buffers_of(*data_, name, "output");
  if (call->inputs.empty() && call->outputs.empty())
    throw stream_connection_error("there is no function of the host '" + name + "'");
  for (std::size_t i = 0; i < call->inputs.size(); ++i)
    connectStreamToCallback(stream_name(name, "input", i), replica,
                            [call, i](void* data) { call->arrive(i, data); });
  for (std::size_t i = 0; i < call->outputs.size(); ++i)
    connectStreamToCallback(stream_name(name, "output", i), replica, [call, i](void* data) {
      if (call->inputs.empty() && i == 0) call->run();
      std::memcpy(data, call->outputs[i].data(), call->outputs[i].size());
    });
}

}  // namespace poplar
