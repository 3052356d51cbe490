#include "superstep/target/pjrt/client/client.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/target/pjrt/client/quiet.h"

namespace superstep::target::pjrt {
namespace {

using abi::Function;

abi::BufferType type_of(ElementType element) {
  switch (element) {
    case ElementType::f64: return abi::BufferType::f64;
    case ElementType::f32: return abi::BufferType::f32;
    case ElementType::f16: return abi::BufferType::f16;
    case ElementType::bf16: return abi::BufferType::bf16;
    case ElementType::i64: return abi::BufferType::s64;
    case ElementType::i32: return abi::BufferType::s32;
    case ElementType::i16: return abi::BufferType::s16;
    case ElementType::i8: return abi::BufferType::s8;
    case ElementType::u64: return abi::BufferType::u64;
    case ElementType::u32: return abi::BufferType::u32;
    case ElementType::u16: return abi::BufferType::u16;
    case ElementType::u8: return abi::BufferType::u8;
    case ElementType::boolean: return abi::BufferType::truth;
  }
  return abi::BufferType::invalid;
}

// Numbers of protobufs: seven bits a byte, the low ones first; the last byte has its high bit clear.
void append_varint(std::string& text, std::size_t number) {
  for (; number >= 128; number /= 128) text += static_cast<char>(number % 128 + 128);
  text += static_cast<char>(number);
}
void append_number(std::string& text, std::size_t field, std::size_t number) {
  append_varint(text, field * 8);  // wire type 0
  append_varint(text, number);
}

// Dense and row-major, whatever tiles the device has.
struct RowMajor {
  std::vector<std::int64_t> order;
  abi::MemoryLayout layout;

  explicit RowMajor(int rank) : order(static_cast<std::size_t>(rank)) {
    std::iota(order.rbegin(), order.rend(), 0);
    layout.head.struct_size = sizeof layout;
    layout.tiled.head.struct_size = sizeof layout.tiled;
    layout.tiled.minor_to_major = order.data();
    layout.tiled.minor_to_major_size = order.size();
  }
};

}  // namespace

abi::Program program_of(const std::string& text) {
  static constexpr char format[] = "mlir";
  abi::Program program;
  program.head.struct_size = sizeof program;
  program.code = const_cast<char*>(text.data());  // read alone
  program.code_size = text.size();
  program.format = format;
  program.format_size = sizeof format - 1;
  return program;
}

// CompileOptionsProto of XLA: field 3, the build options, with num_replicas (4), num_partitions (5) and,
// where the compiler is to divide the program, use_spmd_partitioning (6); field 4,
// compile_portable_executable.
std::string compile_options(const CompiledFor& compiled_for) {
  std::string build;
  append_number(build, 4, 1);
  append_number(build, 5, compiled_for.devices);
  if (compiled_for.devices > 1) append_number(build, 6, 1);
  std::string options = "\x1a";
  append_varint(options, build.size());
  options += build;
  if (compiled_for.any) append_number(options, 4, 1);
  return options;
}

MemoryNeed memory_need(const Library& library, const Compiled& compiled) {
  abi::ExecutableMemoryStatsArgs args{.executable = compiled.get()};
  library.call(Function::executable_memory_stats, args, "asking what memory a program takes");
  return {args.argument_bytes, args.output_bytes, args.alias_bytes, args.temporary_bytes, args.code_bytes};
}

std::size_t output_count(const Library& library, const Compiled& compiled) {
  abi::OutputCountArgs args{.executable = compiled.get()};
  library.call(Function::executable_output_count, args, "asking how many results a program has");
  return args.count;
}

std::vector<Property> cost_analysis(const Library& library, const Compiled& compiled) {
  if (!library.has(Function::executable_cost_analysis)) return {};
  abi::CostAnalysisArgs args{.executable = compiled.get()};
  try {
    library.call(Function::executable_cost_analysis, args, "asking what a program costs");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) return {};  // the function says that it is not there
    throw;
  }
  std::vector<Property> properties;
  for (std::size_t i = 0; i < args.count; ++i) {
    const abi::NamedValue& value = args.properties[i];
    const bool number = value.kind == abi::NamedValue::Kind::number;
    if (number || value.kind == abi::NamedValue::Kind::integer)
      properties.push_back({{value.name, value.name_size},
                            number ? static_cast<double>(value.number) : static_cast<double>(value.integer)});
  }
  return properties;
}

std::string optimized_program(const Library& library, const Compiled& compiled) {
  abi::Program program;
  program.head.struct_size = sizeof program;
  abi::OptimizedProgramArgs args{.executable = compiled.get(), .program = &program};
  library.call(Function::executable_optimized_program, args, "asking how long its compiled program is");
  std::string text(program.code_size, '\0');
  program.code = text.data();
  library.call(Function::executable_optimized_program, args, "reading its compiled program");
  return text;
}

const Client& Client::of(const Library& library) {
  static std::mutex mutex;
  static auto& clients = *new std::map<const Library*, std::unique_ptr<Client>>;  // plug-ins outlive main
  const std::lock_guard lock(mutex);
  std::unique_ptr<Client>& client = clients[&library];
  if (!client) {
    const Quiet quiet;
    abi::ClientCreateArgs args;
    library.call(Function::client_create, args, "looking for its devices");
    client.reset(new Client(library, args.client));
  }
  return *client;
}

Client::Client(const Library& library, abi::PjrtClient* client) : library_(library), client_(client) {
  abi::ClientDevicesArgs args{.client = client_};
  library_.call(Function::client_addressable_devices, args, "listing its devices");
  devices_.assign(args.devices, args.devices + args.count);
  if (devices_.empty())
    throw Error(ErrorCode::unsupported, "it finds no device", library_.name(),
                "see whether the device and its driver are there");
}

std::string Client::text(Function function) const {
  abi::ClientTextArgs args{.client = client_};
  library_.call(function, args, "asking what it is");
  return {args.text, args.text_size};
}

std::string Client::platform() const { return text(Function::client_platform_name); }
std::string Client::platform_version() const { return text(Function::client_platform_version); }

abi::PjrtDeviceDescription* Client::description(std::size_t device) const {
  abi::DeviceDescriptionArgs args{.device = devices_[device]};
  library_.call(Function::device_description, args, "asking for a device's description");
  return args.description;
}

std::string Client::device_kind(std::size_t device) const {
  abi::DescriptionTextArgs args{.description = description(device)};
  library_.call(Function::description_kind, args, "asking for a device's kind");
  return {args.text, args.text_size};
}

std::optional<DeviceMemory> Client::device_memory(std::size_t device) const {
  abi::DeviceMemoryStatsArgs args{.device = devices_[device]};
  try {
    library_.call(Function::device_memory_stats, args, "asking for a device's memory");
  } catch (const Error&) {
    return std::nullopt;  // many do not keep count
  }
  const auto read = [](const abi::OptionalCount& count) {
    return count.is_set ? std::optional(count.value) : std::nullopt;
  };
  return DeviceMemory{args.bytes_in_use, read(args.peak_bytes_in_use), read(args.bytes_limit)};
}

Loaded Client::compile(const std::string& text, const CompiledFor& compiled_for) const {
  const abi::Program program = program_of(text);
  const std::string options = compile_options(compiled_for);
  abi::ClientCompileArgs args{
      .client = client_, .program = &program, .options = options.data(), .options_size = options.size()};
  const Quiet quiet;
  library_.call(Function::client_compile, args, "compiling the program");
  return {library_, args.executable};
}

Compiled Client::compiled_of(const Loaded& loaded) const {
  abi::LoadedExecutableArgs args{.loaded = loaded.get()};
  library_.call(Function::loaded_executable, args, "asking for the compiled program");
  return {library_, args.executable};
}

Client::Upload Client::upload(const Tensor& tensor, std::size_t device) const {
  const std::vector<std::int64_t>& extents = tensor.shape().extents();
  abi::BufferFromHostArgs args{.client = client_,
                               .data = tensor.bytes(),
                               .type = type_of(tensor.type()),
                               .extents = extents.data(),
                               .rank = extents.size(),
                               .semantics = abi::HostBuffer::read_until_done,
                               .device = devices_[device]};
  library_.call(Function::buffer_from_host, args, "copying to the device");
  return {Buffer(library_, args.buffer), Event(library_, args.done_with_host)};
}

Event Client::download(const Buffer& buffer, Tensor& target) const {
  RowMajor order(target.shape().rank());
  abi::BufferToHostArgs args{.source = buffer.get(),
                             .layout = &order.layout,
                             .target = target.bytes(),
                             .target_size = target.byte_count()};
  library_.call(Function::buffer_to_host, args, "copying from the device");
  return {library_, args.event};
}

void Client::await(const Event& event, std::string_view doing) const {
  if (!event) return;
  abi::EventArgs args{.event = event.get()};
  library_.call(Function::event_await, args, doing);
}

Client::Ran Client::execute(const Loaded& loaded, std::span<const std::vector<abi::PjrtBuffer*>> arguments,
                            std::size_t results, std::optional<std::size_t> device) const {
  abi::ExecuteOptions options;
  options.head.struct_size = sizeof options;
  const std::size_t devices = arguments.size();
  std::vector made(devices, std::vector<abi::PjrtBuffer*>(results, nullptr));
  std::vector<abi::PjrtBuffer* const*> argument_lists;
  std::vector<abi::PjrtBuffer**> result_lists;
  for (std::size_t i = 0; i < devices; ++i) {
    argument_lists.push_back(arguments[i].data());
    result_lists.push_back(made[i].data());
  }
  std::vector<abi::PjrtEvent*> complete(devices, nullptr);
  abi::ExecuteArgs args{.executable = loaded.get(),
                        .options = &options,
                        .arguments = argument_lists.data(),
                        .device_count = devices,
                        .argument_count = arguments.front().size(),
                        .results = result_lists.data(),
                        .complete_events = complete.data(),
                        .device = device ? devices_[*device] : nullptr};
  library_.call(Function::loaded_execute, args, "running the program");
  Ran ran;
  for (const std::vector<abi::PjrtBuffer*>& of_device : made) {
    ran.results.emplace_back();
    for (abi::PjrtBuffer* buffer : of_device) ran.results.back().emplace_back(library_, buffer);
  }
  for (abi::PjrtEvent* event : complete) ran.complete.emplace_back(library_, event);
  return ran;
}

}  // namespace superstep::target::pjrt
