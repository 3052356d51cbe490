// The binary interface of PJRT plug-ins, as far as it is called here: our own declarations of its layout
// (OpenXLA's xla/pjrt/c/pjrt_c_api.h, versions 0.54 and later; a test compares them with that header where it
// was fetched).
//
// A plug-in is a shared library with one symbol, GetPjrtApi, which gives a table: its size, the version, and
// functions in a fixed order. Functions are only ever appended, and so are members of their arguments, whose
// first member says how far the caller knows them. All but two functions return an error, null where there is
// none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace superstep::target::pjrt::abi {

// Things of the plug-in's, held by pointer alone.
struct PjrtError;
struct PjrtEvent;
struct PjrtClient;
struct PjrtDevice;
struct PjrtMemory;
struct PjrtDeviceDescription;
struct PjrtTopology;
struct PjrtExecutable;
struct PjrtLoadedExecutable;
struct PjrtBuffer;

// What every structure of arguments begins with.
struct Head {
  std::size_t struct_size = 0;
  void* extension = nullptr;
};

// The functions' places in the table.
enum class Function : std::uint8_t {
  error_destroy = 0,
  error_message = 1,
  error_code = 2,
  plugin_initialize = 3,
  plugin_attributes = 4,
  event_destroy = 5,
  event_await = 8,
  client_create = 10,
  client_platform_name = 12,
  client_platform_version = 14,
  client_addressable_devices = 16,
  client_compile = 20,
  buffer_from_host = 22,
  description_kind = 26,
  description_text = 28,
  device_description = 29,
  device_memory_stats = 34,
  executable_destroy = 40,
  executable_output_count = 44,
  executable_code_size = 45,
  executable_cost_analysis = 46,
  executable_optimized_program = 48,
  loaded_destroy = 50,
  loaded_executable = 51,
  loaded_execute = 55,
  buffer_destroy = 58,
  buffer_to_host = 70,
  topology_create = 82,
  topology_destroy = 83,
  topology_descriptions = 86,
  compile = 89,
  executable_memory_stats = 96,
};

struct Version {
  Head head;
  int major = 0, minor = 0;
};

struct Api {
  std::size_t struct_size;
  void* extension;
  Version version;
  void* functions[1];  // as many as struct_size says
};

struct ErrorArgs {  // destroy
  Head head;
  PjrtError* error = nullptr;
};
struct ErrorMessageArgs {
  Head head;
  const PjrtError* error = nullptr;
  const char* message = nullptr;
  std::size_t message_size = 0;
};
struct ErrorCodeArgs {
  Head head;
  const PjrtError* error = nullptr;
  int code = 0;
};

struct NamedValue {
  enum class Kind : int { text = 0, integer = 1, integers = 2, number = 3, truth = 4 };
  Head head;
  const char* name = nullptr;
  std::size_t name_size = 0;
  Kind kind = Kind::text;
  union {
    const char* text = nullptr;
    std::int64_t integer;
    const std::int64_t* integers;
    float number;
    bool truth;
  };
  std::size_t value_size = 1;
};

struct PluginInitializeArgs {
  Head head;
};
struct PluginAttributesArgs {
  Head head;
  const NamedValue* attributes = nullptr;
  std::size_t count = 0;
};

struct EventArgs {  // destroy, await
  Head head;
  PjrtEvent* event = nullptr;
};

struct ClientCreateArgs {
  Head head;
  const NamedValue* options = nullptr;
  std::size_t option_count = 0;
  void* key_value_get = nullptr;
  void* key_value_get_argument = nullptr;
  void* key_value_put = nullptr;
  void* key_value_put_argument = nullptr;
  PjrtClient* client = nullptr;
  void* key_value_try_get = nullptr;
  void* key_value_try_get_argument = nullptr;
};
struct ClientTextArgs {  // platform's name, version
  Head head;
  PjrtClient* client = nullptr;
  const char* text = nullptr;
  std::size_t text_size = 0;
};
struct ClientDevicesArgs {
  Head head;
  PjrtClient* client = nullptr;
  PjrtDevice* const* devices = nullptr;
  std::size_t count = 0;
};

struct DeviceDescriptionArgs {
  Head head;
  PjrtDevice* device = nullptr;
  PjrtDeviceDescription* description = nullptr;
};
struct DescriptionTextArgs {  // kind, text
  Head head;
  PjrtDeviceDescription* description = nullptr;
  const char* text = nullptr;
  std::size_t text_size = 0;
};
struct OptionalCount {
  std::int64_t value = 0;
  bool is_set = false;
};
struct DeviceMemoryStatsArgs {
  Head head;
  PjrtDevice* device = nullptr;
  std::int64_t bytes_in_use = 0;
  OptionalCount peak_bytes_in_use, allocations, largest_allocation, bytes_limit, bytes_reserved,
      peak_bytes_reserved, bytes_reservable_limit, largest_free_block, pool_bytes, peak_pool_bytes;
};

struct Program {
  Head head;
  char* code = nullptr;
  std::size_t code_size = 0;
  const char* format = nullptr;
  std::size_t format_size = 0;
};
struct ClientCompileArgs {
  Head head;
  PjrtClient* client = nullptr;
  const Program* program = nullptr;
  const char* options = nullptr;
  std::size_t options_size = 0;
  PjrtLoadedExecutable* executable = nullptr;
};

enum class BufferType : int {
  invalid = 0,
  truth = 1,
  s8 = 2,
  s16 = 3,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  u16 = 7,
  u32 = 8,
  u64 = 9,
  f16 = 10,
  f32 = 11,
  f64 = 12,
  bf16 = 13,
};
enum class HostBuffer : int { read_during_call = 0, read_until_done = 1, zero_copy = 2 };

struct TiledLayout {
  Head head;
  const std::int64_t* minor_to_major = nullptr;
  std::size_t minor_to_major_size = 0;
  const std::int64_t* tile_extents = nullptr;
  const std::size_t* tile_ranks = nullptr;
  std::size_t tile_count = 0;
};
struct MemoryLayout {
  enum class Kind : int { tiled = 0, strides = 1 };
  Head head;
  TiledLayout tiled;  // in the place of a union that it fills
  Kind kind = Kind::tiled;
};
struct BufferFromHostArgs {
  Head head;
  PjrtClient* client = nullptr;
  const void* data = nullptr;
  BufferType type = BufferType::invalid;
  const std::int64_t* extents = nullptr;
  std::size_t rank = 0;
  const std::int64_t* byte_strides = nullptr;
  std::size_t byte_stride_count = 0;
  HostBuffer semantics = HostBuffer::read_during_call;
  PjrtDevice* device = nullptr;
  PjrtMemory* memory = nullptr;
  MemoryLayout* layout = nullptr;
  PjrtEvent* done_with_host = nullptr;
  PjrtBuffer* buffer = nullptr;
};
struct BufferArgs {  // destroy
  Head head;
  PjrtBuffer* buffer = nullptr;
};
struct BufferToHostArgs {
  Head head;
  PjrtBuffer* source = nullptr;
  MemoryLayout* layout = nullptr;
  void* target = nullptr;
  std::size_t target_size = 0;
  PjrtEvent* event = nullptr;
};

struct ExecutableArgs {  // destroy
  Head head;
  PjrtExecutable* executable = nullptr;
};
struct LoadedArgs {  // destroy
  Head head;
  PjrtLoadedExecutable* executable = nullptr;
};
struct LoadedExecutableArgs {
  Head head;
  PjrtLoadedExecutable* loaded = nullptr;
  PjrtExecutable* executable = nullptr;
};
struct OutputCountArgs {
  Head head;
  PjrtExecutable* executable = nullptr;
  std::size_t count = 0;
};
struct CodeSizeArgs {
  Head head;
  PjrtExecutable* executable = nullptr;
  std::int64_t bytes = 0;
};
struct CostAnalysisArgs {
  Head head;
  PjrtExecutable* executable = nullptr;
  std::size_t count = 0;
  const NamedValue* properties = nullptr;
};
struct OptimizedProgramArgs {
  Head head;
  PjrtExecutable* executable = nullptr;
  Program* program = nullptr;
};
struct ExecutableMemoryStatsArgs {
  Head head;
  PjrtExecutable* executable = nullptr;
  std::int64_t code_bytes = 0, argument_bytes = 0, output_bytes = 0, alias_bytes = 0, temporary_bytes = 0;
  std::int64_t host_code_bytes = 0, host_argument_bytes = 0, host_output_bytes = 0, host_alias_bytes = 0,
               host_temporary_bytes = 0;
  std::int64_t peak_bytes = 0;
};

struct ExecuteOptions {
  Head head;
  void* send_callbacks = nullptr;
  void* receive_callbacks = nullptr;
  std::size_t send_count = 0, receive_count = 0;
  int launch = 0;
  const std::int64_t* kept_inputs = nullptr;  // indices of inputs that are not donated
  std::size_t kept_input_count = 0;
  void* context = nullptr;
  const char* call_location = nullptr;
  std::size_t task_count = 0;
  int* tasks = nullptr;
  std::int64_t* incarnations = nullptr;
};
struct ExecuteArgs {
  Head head;
  PjrtLoadedExecutable* executable = nullptr;
  ExecuteOptions* options = nullptr;
  PjrtBuffer* const* const* arguments = nullptr;  // [device][argument]
  std::size_t device_count = 0, argument_count = 0;
  PjrtBuffer** const* results = nullptr;  // [device][result]; filled
  PjrtEvent** complete_events = nullptr;  // [device]; filled
  PjrtDevice* device = nullptr;
};

struct TopologyCreateArgs {
  Head head;
  const char* name = nullptr;
  std::size_t name_size = 0;
  const NamedValue* options = nullptr;
  std::size_t option_count = 0;
  PjrtTopology* topology = nullptr;
};
struct TopologyArgs {  // destroy
  Head head;
  PjrtTopology* topology = nullptr;
};
struct TopologyDescriptionsArgs {
  Head head;
  const PjrtTopology* topology = nullptr;
  PjrtDeviceDescription* const* descriptions = nullptr;
  std::size_t count = 0;
};
struct CompileArgs {
  Head head;
  const PjrtTopology* topology = nullptr;
  const Program* program = nullptr;
  const char* options = nullptr;
  std::size_t options_size = 0;
  PjrtClient* client = nullptr;
  PjrtExecutable* executable = nullptr;
};

// --- extensions: a list that the table begins with, each with its kind

enum class ExtensionKind : int { profiler = 1 };
struct ExtensionBase {
  std::size_t struct_size = 0;
  ExtensionKind kind = ExtensionKind::profiler;
  const ExtensionBase* next = nullptr;
};

// The profiler's own small interface (xla/backends/profiler/plugin/profiler_c_api.h): errors of its own.
struct PluginError;
struct PluginProfiler;
struct PluginErrorArgs {  // destroy
  std::size_t struct_size = 0;
  void* unused = nullptr;
  PluginError* error = nullptr;
};
struct PluginErrorMessageArgs {
  std::size_t struct_size = 0;
  void* unused = nullptr;
  const PluginError* error = nullptr;
  const char* message = nullptr;
  std::size_t message_size = 0;
};
struct ProfilerCreateArgs {
  std::size_t struct_size = 0;
  const char* options = nullptr;
  std::size_t options_size = 0;
  PluginProfiler* profiler = nullptr;
};
struct ProfilerArgs {  // destroy, start, stop
  std::size_t struct_size = 0;
  PluginProfiler* profiler = nullptr;
};
struct ProfilerCollectArgs {
  std::size_t struct_size = 0;
  PluginProfiler* profiler = nullptr;
  std::uint8_t* buffer = nullptr;  // null: only the size is asked for
  std::size_t size = 0;
};
struct ProfilerApi {
  std::size_t struct_size = 0;
  void* unused = nullptr;
  void (*error_destroy)(PluginErrorArgs*) = nullptr;
  void (*error_message)(PluginErrorMessageArgs*) = nullptr;
  void* error_code = nullptr;
  PluginError* (*create)(ProfilerCreateArgs*) = nullptr;
  PluginError* (*destroy)(ProfilerArgs*) = nullptr;
  PluginError* (*start)(ProfilerArgs*) = nullptr;
  PluginError* (*stop)(ProfilerArgs*) = nullptr;
  PluginError* (*collect)(ProfilerCollectArgs*) = nullptr;
};
struct ProfilerExtension {
  ExtensionBase base;
  const ProfilerApi* api = nullptr;
};

}  // namespace superstep::target::pjrt::abi
