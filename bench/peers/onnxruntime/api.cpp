#include "api.h"

#include <dlfcn.h>

#include <stdexcept>

namespace superstep::bench::onnxruntime {
namespace {

constexpr std::uint32_t api_version = 5;

// Places in the table.
constexpr int get_error_message = 2, create_environment = 3, create_session = 7, run_session = 9,
              create_options = 10, set_execution_mode = 13, set_optimization_level = 23,
              set_intra_threads = 24, set_inter_threads = 25, input_count = 30, output_count = 31,
              initialized_count = 32, input_type = 33, output_type = 34, initialized_type = 35,
              input_name = 36, output_name = 37, initialized_name = 38, create_tensor = 49, tensor_info = 55,
              element_type = 60, dimension_count = 61, dimensions = 62, symbolic_dimensions = 63,
              create_host_memory = 69, free_memory = 76, default_allocator = 78, release_status = 93,
              release_type = 98, override_dimension = 124, add_config_entry = 130;

constexpr int log_errors = 3, execute_sequentially = 0, optimize_all = 99, arena_allocator = 1,
              default_memory = 0;

struct ApiBase {
  void* const* (*get_api)(std::uint32_t version);
  const char* (*get_version)();
};

const ApiBase& open_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const auto get_base = reinterpret_cast<const ApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  if (!get_base) throw std::runtime_error(path + " has no function OrtGetApiBase");
  return *get_base();
}

}  // namespace

Api::Api(const std::string& path) {
  const ApiBase& base = open_library(path);
  version_ = base.get_version();
  table_ = base.get_api(api_version);
  if (!table_)
    throw std::runtime_error("ONNX Runtime " + version_ + " is too old: it lacks version 5 of its API");
}

void Api::check(Status* status) const {
  if (!status) return;
  const std::string message = function<const char*(const Status*)>(get_error_message)(status);
  function<void(Status*)>(release_status)(status);
  throw std::runtime_error(message);
}

Environment* Api::make_environment() const {
  Environment* environment = nullptr;
  call(create_environment, log_errors, "superstep", &environment);
  return environment;
}

SessionOptions* Api::make_options(int threads,
                                  const std::vector<std::pair<std::string, std::string>>& entries) const {
  SessionOptions* options = nullptr;
  call(create_options, &options);
  call(set_execution_mode, options, execute_sequentially);
  call(set_optimization_level, options, optimize_all);
  call(set_intra_threads, options, threads);
  call(set_inter_threads, options, 1);
  for (const auto& [key, value] : entries) call(add_config_entry, options, key.c_str(), value.c_str());
  return options;
}

void Api::fix_dimension(SessionOptions* options, const std::string& name, std::int64_t extent) const {
  call(override_dimension, options, name.c_str(), extent);
}

Session* Api::make_session(Environment* environment, const std::string& model,
                           SessionOptions* options) const {
  Session* session = nullptr;
  call(create_session, static_cast<const Environment*>(environment), model.c_str(),
       static_cast<const SessionOptions*>(options), &session);
  return session;
}

MemoryInfo* Api::host_memory() const {
  MemoryInfo* memory = nullptr;
  call(create_host_memory, arena_allocator, default_memory, &memory);
  return memory;
}

Value* Api::make_tensor(MemoryInfo* memory, void* data, std::size_t bytes,
                        const std::vector<std::int64_t>& shape, Element type) const {
  Value* value = nullptr;
  call(create_tensor, static_cast<const MemoryInfo*>(memory), data, bytes, shape.data(), shape.size(), type,
       &value);
  return value;
}

void Api::run(Session* session, const std::vector<const char*>& input_names,
              const std::vector<Value*>& inputs, const std::vector<const char*>& output_names,
              std::vector<Value*>& outputs) const {
  call(run_session, session, static_cast<const void*>(nullptr), input_names.data(), inputs.data(),
       inputs.size(), output_names.data(), output_names.size(), outputs.data());
}

std::vector<Api::Signature> Api::signatures(Session* session, int count_place, int name_place,
                                            int type_place) const {
  std::size_t count = 0;
  Allocator* allocator = nullptr;
  call(count_place, static_cast<const Session*>(session), &count);
  call(default_allocator, &allocator);
  std::vector<Signature> signatures(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    TypeInfo* type = nullptr;
    const TensorInfo* info = nullptr;
    call(name_place, static_cast<const Session*>(session), i, allocator, &name);
    signatures[i].name = name;
    call(free_memory, allocator, static_cast<void*>(name));
    call(type_place, static_cast<const Session*>(session), i, &type);
    call(tensor_info, static_cast<const TypeInfo*>(type), &info);
    if (!info) throw std::runtime_error("'" + signatures[i].name + "' is not a tensor");
    std::size_t rank = 0;
    call(element_type, info, &signatures[i].type);
    call(dimension_count, info, &rank);
    std::vector<const char*> names(rank, nullptr);
    signatures[i].shape.resize(rank);
    call(dimensions, info, signatures[i].shape.data(), rank);
    call(symbolic_dimensions, info, names.data(), rank);
    for (const char* symbol : names) signatures[i].symbolic_names.emplace_back(symbol ? symbol : "");
    function<void(TypeInfo*)>(release_type)(type);
  }
  return signatures;
}

std::vector<Api::Signature> Api::inputs(Session* session) const {
  return signatures(session, input_count, input_name, input_type);
}

std::vector<Api::Signature> Api::outputs(Session* session) const {
  return signatures(session, output_count, output_name, output_type);
}

std::vector<Api::Signature> Api::initialized_inputs(Session* session) const {
  return signatures(session, initialized_count, initialized_name, initialized_type);
}

}  // namespace superstep::bench::onnxruntime
