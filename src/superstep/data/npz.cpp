#include "superstep/data/npz.h"

#include <fmt/format.h>

#include "superstep/data/mapped_file.h"
#include "superstep/data/npy.h"
#include "superstep/data/zip.h"

namespace superstep::data {

NamedTensors parse_npz(std::span<const std::byte> bytes, std::string_view where) {
  constexpr std::string_view extension = ".npy";
  NamedTensors arrays;
  for (const auto& [name, content] : parse_zip(bytes, where)) {
    const bool plain = name.ends_with(extension);
    arrays[plain ? name.substr(0, name.size() - extension.size()) : name] =
        parse_npy(content, fmt::format("{}: entry '{}'", where, name));
  }
  return arrays;
}

NamedTensors read_npz(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_npz(file.bytes(), path.string());
}

void write_npz(const std::filesystem::path& path, const NamedTensors& arrays) {
  ZipEntries entries;
  for (const auto& [name, tensor] : arrays) entries[name + ".npy"] = format_npy(tensor);
  write_zip(path, entries);
}

}  // namespace superstep::data
