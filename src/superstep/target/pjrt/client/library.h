// The shared library of a plug-in: opened when it is first wanted, never closed, and called through its table
// of functions.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

#include "superstep/base/function_ref.h"
#include "superstep/target/pjrt/client/pjrt_abi.h"

namespace superstep::target::pjrt {

class Library {
 public:
  // Opens the library, or gives the one that is open. Throws Error: not_found (no such file), unsupported
  // (not a plug-in, or of an interface that is not understood), io (it does not load, with the loader's
  // words).
  static const Library& open(const std::filesystem::path& file);

  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::filesystem::path& file() const { return file_; }
  std::string name() const { return "plug-in " + file_.filename().string(); }
  int major() const { return api_->version.major; }
  int minor() const { return api_->version.minor; }

  bool has(abi::Function function) const;
  // What the plug-in has beyond the table; null where it has not.
  const abi::ExtensionBase* extension(abi::ExtensionKind kind) const;

  // Calls a function that gives an error. `doing` is for messages: "compiling the program". Throws Error:
  // unsupported where the plug-in has no such function, else what its own error says (error_of). An exception
  // of the plug-in's is one of these errors, too.
  template <class Args>
  void call(abi::Function function, Args& args, std::string_view doing) const {
    args.head.struct_size = sizeof(Args);
    call(function, static_cast<void*>(&args), doing);
  }
  // The same for what gives something back, where nobody can hear of an error.
  template <class Args>
  void release(abi::Function function, Args args) const noexcept {
    args.head.struct_size = sizeof(Args);
    release(function, static_cast<void*>(&args));
  }

  // What the plug-in says of itself: "stablehlo_current_version" as "1.20.0". Empty where it does not.
  std::string attribute(std::string_view name) const;

 private:
  Library(std::filesystem::path file, const abi::Api* api) : file_(std::move(file)), api_(api) {}
  static const Library* opened(const std::filesystem::path& file);

  void call(abi::Function function, void* args, std::string_view doing) const;
  void release(abi::Function function, void* args) const noexcept;
  void destroy(abi::PjrtError* error) const noexcept;
  void* address(abi::Function function) const;
  [[noreturn]] void raise(abi::PjrtError* error, std::string_view doing) const;

  std::filesystem::path file_;
  const abi::Api* api_;
};

}  // namespace superstep::target::pjrt
