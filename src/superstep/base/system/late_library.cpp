#include "superstep/base/system/late_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "superstep/base/error.h"

namespace superstep {
namespace {

std::string last_reason() {
  const char* const reason = dlerror();
  return reason ? reason : "no reason given";
}

}  // namespace

// Two threads may both open it: the loader counts, and gives both the same.
void* LateLibrary::opened() const {
  if (void* const handle = handle_.load(std::memory_order_acquire)) return handle;
  const int flags = RTLD_LAZY | (scope_ == Scope::all ? RTLD_GLOBAL : RTLD_LOCAL);
  void* handle = dlopen(name_, flags);
  if (!handle) {
    const std::string reason = last_reason();
    handle = dlopen(file_, flags);
    if (!handle)
      throw Error(ErrorCode::unsupported, fmt::format("its library cannot be opened: {}", reason), what_,
                  fmt::format("install the package that holds {}", name_));
  }
  handle_.store(handle, std::memory_order_release);
  return handle;
}

void* LateLibrary::find(const char* symbol) const {
  void* const address = dlsym(opened(), symbol);
  if (!address)
    throw Error(ErrorCode::unsupported, fmt::format("its library is of another version: {}", last_reason()),
                what_, fmt::format("install {} as it was when this program was built", name_));
  return address;
}

void* LateLibrary::find_variable(const char* symbol) const {
  opened();
  void* const of_program = dlsym(RTLD_DEFAULT, symbol);
  return of_program ? of_program : find(symbol);
}

}  // namespace superstep
