// A PJRT plug-in that computes nothing: each result of a program is a copy of the argument with its number.
// The environment variable FAKE_PJRT says what goes wrong:
//   old, other_major   a version that nobody understands
//   short              a table that ends before programs can be run
//   empty, nothing     no table; no device
//   no_client          the client is refused, with words
//   throws             the client is refused by an exception
//   no_memory          copies to the device find no room
//   dies:N             the device is lost in the N-th run
//   bad_program        compilations are refused
//   profiler, profiler_fails   it has a profiler, and says what programs cost; whose recording fails
//   ahead, too_large   programs for a device that is not there are compiled; or find no room on it
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/target/pjrt/client/pjrt_abi.h"

namespace abi = superstep::target::pjrt::abi;
using abi::Function;

namespace superstep::target::pjrt::abi {
struct PjrtError {
  int code;
  std::string text;
};
struct PjrtBuffer {
  std::string bytes;
};
struct PjrtLoadedExecutable {
  std::size_t results, runs;
};
struct PjrtClient {
  int unused;
};
struct PjrtDevice {
  int unused;
};
struct PjrtDeviceDescription {
  int unused;
};
struct PjrtExecutable {
  std::size_t results;
};
}  // namespace superstep::target::pjrt::abi

namespace {

std::string_view fault() {
  const char* const value = std::getenv("FAKE_PJRT");
  return value ? value : "";
}

abi::PjrtError* error(int code, std::string text) { return new abi::PjrtError{code, std::move(text)}; }

abi::PjrtClient client;
abi::PjrtDevice device;
abi::PjrtDeviceDescription description;
abi::PjrtDevice* devices[] = {&device};

void error_destroy(abi::ErrorArgs* args) { delete args->error; }
void error_message(abi::ErrorMessageArgs* args) {
  args->message = args->error->text.data();
  args->message_size = args->error->text.size();
}
abi::PjrtError* error_code(abi::ErrorCodeArgs* args) {
  args->code = args->error->code;
  return nullptr;
}
abi::PjrtError* initialize(abi::PluginInitializeArgs*) { return nullptr; }

abi::PjrtError* client_create(abi::ClientCreateArgs* args) {
  if (fault() == "no_client") return error(9, "No visible GPU devices.");
  if (fault() == "throws") throw std::runtime_error("the card is not there");
  args->client = &client;
  return nullptr;
}
abi::PjrtError* client_devices(abi::ClientDevicesArgs* args) {
  args->devices = devices;
  args->count = fault() == "nothing" ? 0 : 1;
  return nullptr;
}
abi::PjrtError* device_description(abi::DeviceDescriptionArgs* args) {
  args->description = &description;
  return nullptr;
}
abi::PjrtError* description_kind(abi::DescriptionTextArgs* args) {
  static constexpr std::string_view kind = "a fake";
  args->text = kind.data();
  args->text_size = kind.size();
  return nullptr;
}

std::size_t count_of(std::string_view text, std::string_view wanted) {
  std::size_t count = 0;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1))
    ++count;
  return count;
}

// The results are the types between "-> (" and ")" of the first function.
abi::PjrtError* compile(abi::ClientCompileArgs* args) {
  if (fault() == "bad_program") return error(3, "error: expected ':' at line 1");
  std::string_view text(args->program->code, args->program->code_size);
  text = text.substr(text.find("-> (") + 4);
  args->executable = new abi::PjrtLoadedExecutable{count_of(text.substr(0, text.find(')')), "tensor<"), 0};
  return nullptr;
}
abi::PjrtError* loaded_destroy(abi::LoadedArgs* args) {
  delete args->executable;
  return nullptr;
}

std::size_t size_of(abi::BufferType type) {
  switch (type) {
    case abi::BufferType::f64:
    case abi::BufferType::s64:
    case abi::BufferType::u64: return 8;
    case abi::BufferType::f32:
    case abi::BufferType::s32:
    case abi::BufferType::u32: return 4;
    case abi::BufferType::truth:
    case abi::BufferType::s8:
    case abi::BufferType::u8: return 1;
    default: return 2;
  }
}

abi::PjrtError* buffer_from_host(abi::BufferFromHostArgs* args) {
  if (fault() == "no_memory") return error(8, "Out of memory while trying to allocate 4 bytes.");
  std::size_t bytes = size_of(args->type);
  for (std::size_t i = 0; i < args->rank; ++i) bytes *= static_cast<std::size_t>(args->extents[i]);
  args->buffer = new abi::PjrtBuffer{std::string(static_cast<const char*>(args->data), bytes)};
  args->done_with_host = nullptr;
  return nullptr;
}
abi::PjrtError* buffer_to_host(abi::BufferToHostArgs* args) {
  std::memcpy(args->target, args->source->bytes.data(), args->target_size);
  args->event = nullptr;
  return nullptr;
}
abi::PjrtError* buffer_destroy(abi::BufferArgs* args) {
  delete args->buffer;
  return nullptr;
}

abi::PjrtError* execute(abi::ExecuteArgs* args) {
  const std::string_view which = fault();
  const std::size_t last = which.starts_with("dies:") ? std::stoul(std::string(which.substr(5))) : 0;
  if (++args->executable->runs == last) return error(14, "the device fell off the bus");
  for (std::size_t i = 0; i < args->executable->results; ++i)
    args->results[0][i] = new abi::PjrtBuffer{args->arguments[0][i]->bytes};
  args->complete_events[0] = nullptr;
  return nullptr;
}

// --- compiling for a device that is not there

abi::PjrtError* topology_create(abi::TopologyCreateArgs* args) {
  const std::string_view name(args->name, args->name_size);
  if (!name.starts_with("v5e:")) return error(3, "no such topology: " + std::string(name));
  args->topology = reinterpret_cast<abi::PjrtTopology*>(&client);
  return nullptr;
}
abi::PjrtError* topology_destroy(abi::TopologyArgs*) { return nullptr; }
abi::PjrtError* compile_ahead(abi::CompileArgs* args) {
  if (fault() == "too_large") return error(8, "Ran out of memory in memory space hbm.");
  args->executable = new abi::PjrtExecutable{1};
  return nullptr;
}
abi::PjrtError* executable_destroy(abi::ExecutableArgs* args) {
  delete args->executable;
  return nullptr;
}
abi::PjrtError* memory_stats(abi::ExecutableMemoryStatsArgs* args) {
  args->argument_bytes = 1000;
  args->output_bytes = 400;
  args->alias_bytes = 300;
  args->temporary_bytes = 20;
  args->code_bytes = 7;
  return nullptr;
}
// Asked for its length first, then for its text.
abi::PjrtError* optimized_program(abi::OptimizedProgramArgs* args) {
  static constexpr std::string_view text =
      R"({"estimated_cycles":"1200","other":1} {"estimated_cycles":"34"})";
  if (args->program->code) std::memcpy(args->program->code, text.data(), text.size());
  args->program->code_size = text.size();
  return nullptr;
}

// --- costs and a profiler

abi::PjrtError* loaded_executable(abi::LoadedExecutableArgs* args) {
  args->executable = new abi::PjrtExecutable{args->loaded->results};
  return nullptr;
}
abi::PjrtError* cost_analysis(abi::CostAnalysisArgs* args) {
  static abi::NamedValue properties[2];
  properties[0].name = "flops";
  properties[0].name_size = 5;
  properties[0].kind = abi::NamedValue::Kind::number;
  properties[0].number = 12;
  properties[1].name = "steps";
  properties[1].name_size = 5;
  properties[1].kind = abi::NamedValue::Kind::integer;
  properties[1].integer = 3;
  args->count = 2;
  args->properties = properties;
  return nullptr;
}

// Between start and stop it writes a letter for each.
std::string recorded;
void profiler_error_destroy(abi::PluginErrorArgs* args) {
  delete reinterpret_cast<std::string*>(args->error);
}
void profiler_error_message(abi::PluginErrorMessageArgs* args) {
  const auto* const text = reinterpret_cast<const std::string*>(args->error);
  args->message = text->data();
  args->message_size = text->size();
}
abi::PluginError* profiler_create(abi::ProfilerCreateArgs* args) {
  recorded = std::string(args->options, args->options_size).find('\x18') == std::string::npos ? "?" : "c";
  args->profiler = reinterpret_cast<abi::PluginProfiler*>(&recorded);
  return nullptr;
}
abi::PluginError* profiler_destroy(abi::ProfilerArgs*) { return nullptr; }
abi::PluginError* profiler_start(abi::ProfilerArgs*) {
  recorded += 's';
  return nullptr;
}
abi::PluginError* profiler_stop(abi::ProfilerArgs*) {
  recorded += 'e';
  if (fault() == "profiler_fails")
    return reinterpret_cast<abi::PluginError*>(new std::string("the recorder is out of tape"));
  return nullptr;
}
abi::PluginError* profiler_collect(abi::ProfilerCollectArgs* args) {
  if (args->buffer) std::memcpy(args->buffer, recorded.data(), recorded.size());
  args->size = recorded.size();
  return nullptr;
}

void* profiler_extension() {
  static const abi::ProfilerApi api{.struct_size = sizeof(abi::ProfilerApi),
                                    .error_destroy = profiler_error_destroy,
                                    .error_message = profiler_error_message,
                                    .create = profiler_create,
                                    .destroy = profiler_destroy,
                                    .start = profiler_start,
                                    .stop = profiler_stop,
                                    .collect = profiler_collect};
  static abi::ProfilerExtension profiler{{sizeof(abi::ProfilerExtension)}, &api};
  // Of another kind, before it in the list.
  static abi::ExtensionBase first{sizeof(abi::ExtensionBase), static_cast<abi::ExtensionKind>(4),
                                  &profiler.base};
  return &first;
}

constexpr std::size_t functions = 97;
struct Table {
  std::size_t struct_size = offsetof(abi::Api, functions) + functions * sizeof(void*);
  void* extension = nullptr;
  abi::Version version{{sizeof(abi::Version)}, 0, 81};
  void* entries[functions] = {};

  template <class Called>
  void set(Function function, Called* called) {
    entries[static_cast<std::size_t>(function)] = reinterpret_cast<void*>(called);
  }
};

Table table_with(std::string_view which) {
  Table table;
  table.set(Function::error_destroy, error_destroy);
  table.set(Function::error_message, error_message);
  table.set(Function::error_code, error_code);
  table.set(Function::plugin_initialize, initialize);
  table.set(Function::client_create, client_create);
  table.set(Function::client_addressable_devices, client_devices);
  table.set(Function::client_compile, compile);
  table.set(Function::device_description, device_description);
  table.set(Function::description_kind, description_kind);
  table.set(Function::loaded_destroy, loaded_destroy);
  table.set(Function::loaded_execute, execute);
  table.set(Function::buffer_from_host, buffer_from_host);
  table.set(Function::buffer_to_host, buffer_to_host);
  table.set(Function::buffer_destroy, buffer_destroy);
  table.set(Function::topology_create, topology_create);
  table.set(Function::topology_destroy, topology_destroy);
  table.set(Function::compile, compile_ahead);
  table.set(Function::executable_destroy, executable_destroy);
  if (which == "ahead" || which == "too_large") {  // of what is loaded it keeps no count
    table.set(Function::executable_memory_stats, memory_stats);
    table.set(Function::executable_optimized_program, optimized_program);
  }
  if (which.starts_with("profiler")) {
    table.extension = profiler_extension();
    table.set(Function::loaded_executable, loaded_executable);
    table.set(Function::executable_cost_analysis, cost_analysis);
  }
  if (which == "old") table.version.minor = 12;
  if (which == "other_major") table.version.major = 1;
  if (which == "short")
    table.struct_size =
        offsetof(abi::Api, functions) + static_cast<std::size_t>(Function::loaded_execute) * sizeof(void*);
  return table;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const void* GetPjrtApi() {
  if (fault() == "empty") return nullptr;
  static Table table;
  table = table_with(fault());
  return &table;
}
