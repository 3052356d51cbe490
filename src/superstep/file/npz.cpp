#include "superstep/file/npz.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/mapped_file.h"

namespace superstep::data {

namespace {

constexpr std::size_t longest_header = 1 << 20;  // NumPy's own have 128 bytes

// The header of an array, in front of `stream`; what it declares must be what the archive says it holds.
NpyLayout read_header(ZipReader::Stream& stream, std::uint64_t entry_size) {
  const std::string& where = stream.where();
  std::vector<std::byte> bytes(std::min<std::uint64_t>(npy_beginning, entry_size));
  stream.read(bytes);
  const std::size_t length = npy_header_bytes(bytes, where);
  if (length > entry_size || length > longest_header)
    throw Error(ErrorCode::bad_file, "the .npy header is cut short", where);
  const std::size_t begun = bytes.size();
  if (length < begun) throw Error(ErrorCode::bad_file, "the .npy header is damaged", where);
  bytes.resize(length);
  stream.read(std::span(bytes).subspan(begun));
  NpyLayout layout = parse_npy_header(bytes, where);
  if (layout.data_bytes != entry_size - length)
    throw Error(ErrorCode::bad_file,
                fmt::format("shape {} of {} needs {} bytes and the archive holds {}", to_string(layout.shape),
                            name_of(layout.type), layout.data_bytes, entry_size - length),
                where);
  return layout;
}

// What all arrays need, from their headers alone: nothing is unpacked for an archive that does not fit.
void require_memory_for(const ZipReader& archive, std::string_view where) {
  double bytes = 0;
  for (const ZipEntry& entry : archive.entries()) {
    ZipReader::Stream stream(archive, entry);
    bytes += npy_memory(read_header(stream, entry.size));
  }
  require_memory(bytes, std::string(where));
}

Tensor read_entry(const ZipReader& archive, const ZipEntry& entry) {
  ZipReader::Stream stream(archive, entry);
  const NpyLayout layout = read_header(stream, entry.size);
  Tensor tensor = read_npy_elements(layout, [&](std::span<std::byte> target) { stream.read(target); });
  stream.finish();
  return tensor;
}

}  // namespace

NpyLayout npz_layout(const ZipReader& archive, const ZipEntry& entry) {
  ZipReader::Stream stream(archive, entry);
  return read_header(stream, entry.size);
}

Tensor read_npz_entry(const ZipReader& archive, std::string_view name) {
  const auto entry = std::ranges::find(archive.entries(), name, &ZipEntry::name);
  if (entry == archive.entries().end())
    throw Error(ErrorCode::io, fmt::format("entry '{}' is no longer there", name));
  return read_entry(archive, *entry);
}

NamedTensors parse_npz(std::span<const std::byte> bytes, std::string_view where) {
  constexpr std::string_view extension = ".npy";
  const ZipReader archive(bytes, where);
  require_memory_for(archive, where);
  NamedTensors arrays;
  for (const ZipEntry& entry : archive.entries()) {
    const bool plain = entry.name.ends_with(extension);
    arrays[plain ? entry.name.substr(0, entry.name.size() - extension.size()) : entry.name] =
        read_entry(archive, entry);
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
