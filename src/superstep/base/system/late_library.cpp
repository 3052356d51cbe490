#include "superstep/base/system/late_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "superstep/base/error.h"

namespace superstep {
namespace {

std::string last_reason() {
  const char* const reason = dlerror();
  return reason ? reason : "no reason given";
}

// A package for Python holds such libraries in a folder beside its own, under names that its maker put eight
// figures into: "libzmq.so.5" is "libzmq-1a2b3c4d.so.5". Empty: there is none.
std::string bundled(const std::string& name) {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&bundled), &here) == 0 || !here.dli_fname) return {};
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::canonical(here.dli_fname, failed);
  const std::filesystem::path folder = own.parent_path().parent_path().parent_path() / "superstep.libs";
  const std::size_t dot = name.find(".so");
  if (failed || dot == std::string::npos) return {};
  constexpr std::size_t figures = 9;  // with the hyphen before them
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string file = entry->path().filename().string();
    if (file.size() < name.size() + figures || file[dot] != '-' || !file.starts_with(name.substr(0, dot)))
      continue;
    if (file.substr(dot + figures).starts_with(name.substr(dot))) return entry->path().string();
  }
  return {};
}

}  // namespace

// Two threads may both open it: the loader counts, and gives both the same.
void* LateLibrary::opened() const {
  if (void* const handle = handle_.load(std::memory_order_acquire)) return handle;
  const int flags = RTLD_LAZY | (scope_ == Scope::all ? RTLD_GLOBAL : RTLD_LOCAL);
  void* handle = nullptr;
  if (const std::string own = bundled(name_); !own.empty()) handle = dlopen(own.c_str(), flags);
  if (!handle) handle = dlopen(name_, flags);
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
