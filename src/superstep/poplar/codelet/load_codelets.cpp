#include "superstep/poplar/codelet/load_codelets.h"

#include <dlfcn.h>

#include <mutex>
#include <poplar/exceptions.hpp>

namespace poplar::core {
namespace {

using TableFunction = const vertex_table::Table* (*)();

[[noreturn]] void refuse(const std::filesystem::path& object, const std::string& why) {
  throw graph_object_load_error(object.string() + ": " + why);
}

// Objects that are loaded already, by path: graphs of one process share them.
std::shared_ptr<void> opened(const std::filesystem::path& object) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<void>> open;
  const std::lock_guard lock(mutex);
  std::weak_ptr<void>& known = open[object.string()];
  if (std::shared_ptr<void> library = known.lock()) return library;
  void* handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    refuse(object, why ? why : "it cannot be loaded");
  }
  std::shared_ptr<void> library(handle, [](void* loaded) { dlclose(loaded); });
  known = library;
  return library;
}

}  // namespace

std::vector<std::shared_ptr<const CodeletClass>> load_codelets(const std::filesystem::path& object,
                                                               unsigned workers) {
  // A name without a slash would be sought among the system's libraries.
  std::error_code missing;
  const std::filesystem::path whole = std::filesystem::canonical(object, missing);
  if (missing) refuse(object, "there is no such file");
  const std::shared_ptr<void> library = opened(whole);
  const auto table_of = reinterpret_cast<TableFunction>(dlsym(library.get(), "poplar_vertex_table"));
  if (!table_of) refuse(object, "it has no table of vertices: compile it with popc");
  const vertex_table::Table* table = table_of();
  std::vector<std::shared_ptr<const CodeletClass>> classes;
  for (std::size_t p = 0; p < table->part_count; ++p) {
    const vertex_table::Part& part = table->parts[p];
    if (part.version != vertex_table::VERSION)
      refuse(object, fmt::format("its table is of version {}, not {}: compile it again", part.version,
                                 static_cast<int>(vertex_table::VERSION)));
    for (std::size_t i = 0; i < part.vertex_count; ++i)
      classes.push_back(std::make_shared<const CodeletClass>(
          CodeletClass{library, &part.vertices[i], workers, whole.string()}));
  }
  return classes;
}

std::string normal_name(std::string_view name) {
  const auto is_word = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
  };
  std::string result;
  bool space = false;
  for (const char letter : name) {
    if (letter == ' ' || letter == '\t' || letter == '\n') {
      space = true;
      continue;
    }
    if (space && !result.empty() && is_word(result.back()) && is_word(letter)) result += ' ';
    space = false;
    result += letter;
  }
  return result;
}

}  // namespace poplar::core
