#include "superstep/target/pjrt/client/profiler.h"

#include <fmt/format.h>

#include "superstep/base/error.h"

namespace superstep::target::pjrt {
namespace {

const abi::ProfilerApi* profiler_of(const Library& library) {
  const auto* const extension =
      reinterpret_cast<const abi::ProfilerExtension*>(library.extension(abi::ExtensionKind::profiler));
  if (!extension || extension->base.struct_size < sizeof(abi::ProfilerExtension)) return nullptr;
  const abi::ProfilerApi* const api = extension->api;
  return api && api->struct_size >= sizeof(abi::ProfilerApi) && api->collect ? api : nullptr;
}

// ProfileOptions of the profiler's protobufs: field 2, what the host does (2: its larger parts); field 3,
// what the device does; field 5, the version of these options.
constexpr char options[] = {0x10, 2, 0x18, 1, 0x28, 1};

}  // namespace

bool DeviceTrace::is_offered(const Library& library) { return profiler_of(library) != nullptr; }

DeviceTrace::DeviceTrace(const Library& library) : library_(library), api_(profiler_of(library)) {
  if (!api_)
    throw Error(ErrorCode::unsupported, "records no trace: it has no profiler", library.name(),
                "profile without one; or use a plug-in of a device");
  abi::ProfilerCreateArgs create{.options = options, .options_size = sizeof options};
  call(api_->create, create, "making its profiler");
  profiler_ = create.profiler;
  abi::ProfilerArgs start{.profiler = profiler_};
  call(api_->start, start, "starting its profiler");
}

DeviceTrace::~DeviceTrace() {
  if (!profiler_) return;
  abi::ProfilerArgs args{.struct_size = sizeof(abi::ProfilerArgs), .profiler = profiler_};
  abi::PluginError* const error = api_->destroy(&args);
  if (!error) return;
  abi::PluginErrorArgs gone{.struct_size = sizeof(abi::PluginErrorArgs), .error = error};
  api_->error_destroy(&gone);
}

// Asked for the length first. The second call fills our memory, or says where the plug-in's own is.
std::string DeviceTrace::stop() {
  abi::ProfilerArgs args{.profiler = profiler_};
  call(api_->stop, args, "stopping its profiler");
  abi::ProfilerCollectArgs collect{.profiler = profiler_};
  call(api_->collect, collect, "asking how much its profiler recorded");
  std::string text(collect.size, '\0');
  auto* const own = reinterpret_cast<std::uint8_t*>(text.data());
  collect.buffer = own;
  call(api_->collect, collect, "reading what its profiler recorded");
  if (collect.buffer && collect.buffer != own)
    text.assign(reinterpret_cast<const char*>(collect.buffer), collect.size);
  return text;
}

template <class Args>
void DeviceTrace::call(abi::PluginError* (*function)(Args*), Args& args, std::string_view doing) const {
  args.struct_size = sizeof(Args);
  if (abi::PluginError* const error = function(&args)) raise(error, doing);
}

void DeviceTrace::raise(abi::PluginError* error, std::string_view doing) const {
  abi::PluginErrorMessageArgs message{.struct_size = sizeof message, .error = error};
  api_->error_message(&message);
  const std::string text =
      message.message ? std::string(message.message, message.message_size) : std::string("it gave no reason");
  abi::PluginErrorArgs gone{.struct_size = sizeof gone, .error = error};
  api_->error_destroy(&gone);
  throw Error(ErrorCode::io, fmt::format("{}: {}", doing, text), library_.name(), "profile without a trace");
}

}  // namespace superstep::target::pjrt
