#include "superstep/target/pjrt/client/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/target/pjrt/client/quiet.h"

namespace superstep::target::pjrt {
namespace {

using abi::Function;

// The interface has been at major version 0 since it began. Members up to those declared in pjrt_abi.h are
// there from this minor version on (2024).
constexpr int understood_major = 0, least_minor = 54;

// A plug-in's message may hold a trace of calls that fills pages.
constexpr std::size_t longest_message = 1200;

// Codes of the interface, which are those of gRPC.
ErrorCode kind_of(int code) {
  switch (code) {
    case 8: return ErrorCode::out_of_memory;  // RESOURCE_EXHAUSTED
    case 5: return ErrorCode::not_found;
    case 9:                                  // FAILED_PRECONDITION
    case 12: return ErrorCode::unsupported;  // UNIMPLEMENTED
    case 3: return ErrorCode::internal;      // INVALID_ARGUMENT: what we handed over was wrong
    default: return ErrorCode::io;           // the device or its driver
  }
}

const char* hint_of(ErrorCode kind) {
  switch (kind) {
    case ErrorCode::out_of_memory: return "use a smaller --batch";
    case ErrorCode::io:
      return "see whether the device is there and its driver is well; what was saved is kept";
    case ErrorCode::internal: return "this is a fault of Superstep's: please report it with the model";
    default: return "";
  }
}

std::string shortened(std::string_view message) {
  std::string text = printable(message.substr(0, longest_message));
  return message.size() > longest_message ? text + " ..." : text;
}

void refuse_version(const std::filesystem::path& file, const abi::Api& api) {
  const auto& version = api.version;
  if (version.major == understood_major && version.minor >= least_minor) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("its interface is PJRT {}.{}; {}.{} and later of that major version are understood",
                          version.major, version.minor, understood_major, least_minor),
              file.string(), "install a plug-in of another release");
}

// Its sizes are read before anything else is believed.
const abi::Api* table_of(const std::filesystem::path& file, void* handle) {
  void* const symbol = dlsym(handle, "GetPjrtApi");
  if (!symbol)
    throw Error(ErrorCode::unsupported, "it has no GetPjrtApi: it is a library, but no PJRT plug-in",
                file.string());
  const abi::Api* api = nullptr;
  try {
    api = reinterpret_cast<const abi::Api* (*)()>(symbol)();
  } catch (...) {
    throw Error(ErrorCode::io, "it failed while it was asked for its functions", file.string());
  }
  if (!api || api->struct_size < offsetof(abi::Api, functions))
    throw Error(ErrorCode::unsupported, "it gives no table of functions", file.string());
  refuse_version(file, *api);
  return api;
}

}  // namespace

const Library& Library::open(const std::filesystem::path& file) {
  static std::mutex mutex;
  static auto& libraries = *new std::map<std::string, const Library*>;  // kept: plug-ins are never unloaded
  const std::lock_guard lock(mutex);
  const Library*& library = libraries[file.string()];
  if (!library) library = opened(file);
  return *library;
}

const Library* Library::opened(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
    throw Error(ErrorCode::not_found, "there is no such file", file.string());
  const Quiet quiet;
  // Warnings and notes of the plug-in's own log; who wants them sets the level.
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const reason = dlerror();
    throw Error(ErrorCode::io, fmt::format("it cannot be loaded: {}", reason ? reason : "no reason given"),
                file.string());
  }
  auto library = std::unique_ptr<Library>(new Library(file, table_of(file, handle)));
  abi::PluginInitializeArgs args;
  if (library->has(Function::plugin_initialize))
    library->call(Function::plugin_initialize, args, "setting it up");
  return library.release();
}

bool Library::has(Function function) const {
  const std::size_t end =
      offsetof(abi::Api, functions) + (static_cast<std::size_t>(function) + 1) * sizeof(void*);
  return end <= api_->struct_size && api_->functions[static_cast<std::size_t>(function)];
}

void* Library::address(Function function) const {
  return has(function) ? api_->functions[static_cast<std::size_t>(function)] : nullptr;
}

void Library::call(Function function, void* args, std::string_view doing) const {
  void* const called = address(function);
  if (!called)
    throw Error(ErrorCode::unsupported, fmt::format("{}: it has no such function", doing), name(),
                "install a newer release of it");
  abi::PjrtError* error = nullptr;
  std::string exception;
  try {
    error = reinterpret_cast<abi::PjrtError* (*)(void*)>(called)(args);
  } catch (const std::exception& thrown) {
    exception = thrown.what();
    if (exception.empty()) exception = "it threw an exception";
  } catch (...) {
    exception = "it threw an exception";
  }
  if (!exception.empty())
    throw Error(ErrorCode::io, fmt::format("{}: {}", doing, shortened(exception)), name(),
                hint_of(ErrorCode::io));
  if (error) raise(error, doing);
}

void Library::release(Function function, void* args) const noexcept {
  void* const called = address(function);
  if (!called) return;
  try {
    if (abi::PjrtError* const error = reinterpret_cast<abi::PjrtError* (*)(void*)>(called)(args))
      destroy(error);
  } catch (...) {  // NOLINT(bugprone-empty-catch): what is given back is gone either way
  }
}

void Library::destroy(abi::PjrtError* error) const noexcept {
  abi::ErrorArgs args{.error = error};
  args.head.struct_size = sizeof args;
  if (void* const called = address(Function::error_destroy)) reinterpret_cast<void (*)(void*)>(called)(&args);
}

void Library::raise(abi::PjrtError* error, std::string_view doing) const {
  abi::ErrorMessageArgs message{.error = error};
  abi::ErrorCodeArgs code{.error = error, .code = 2};
  message.head.struct_size = sizeof message;
  code.head.struct_size = sizeof code;
  if (void* const called = address(Function::error_message))
    reinterpret_cast<void (*)(void*)>(called)(&message);
  if (void* const called = address(Function::error_code))
    reinterpret_cast<abi::PjrtError* (*)(void*)>(called)(&code);
  const std::string text =
      message.message ? shortened({message.message, message.message_size}) : "it gave no reason";
  destroy(error);
  const ErrorCode kind = kind_of(code.code);
  throw Error(kind, fmt::format("{}: {}", doing, text), name(), hint_of(kind));
}

const abi::ExtensionBase* Library::extension(abi::ExtensionKind kind) const {
  const auto* found = static_cast<const abi::ExtensionBase*>(api_->extension);
  while (found && found->kind != kind) found = found->next;
  return found;
}

std::string Library::attribute(std::string_view wanted) const {
  if (!has(Function::plugin_attributes)) return {};
  abi::PluginAttributesArgs args;
  call(Function::plugin_attributes, args, "asking for its attributes");
  for (std::size_t i = 0; i < args.count; ++i) {
    const abi::NamedValue& value = args.attributes[i];
    if (std::string_view(value.name, value.name_size) != wanted) continue;
    if (value.kind == abi::NamedValue::Kind::text) return std::string(value.text, value.value_size);
    if (value.kind == abi::NamedValue::Kind::integer) return std::to_string(value.integer);
    if (value.kind == abi::NamedValue::Kind::integers)
      return fmt::format("{}", fmt::join(value.integers, value.integers + value.value_size, "."));
  }
  return {};
}

}  // namespace superstep::target::pjrt
