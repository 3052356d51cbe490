#include "superstep/base/system/mapped_file.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/array_forms.h"
#include "superstep/file/source/npy_rows.h"
#include "superstep/file/zip.h"
#include "superstep/file/zip_places.h"

namespace superstep::data {
namespace {

constexpr std::string_view extension = ".npy";

std::string name_of_entry(const std::string& entry) {
  return entry.ends_with(extension) ? entry.substr(0, entry.size() - extension.size()) : entry;
}

// The shape is in the packed bytes: its first part is unpacked to see it.
void add_packed(ArraySource& source, const std::filesystem::path& path, const ZipReader& archive,
                const ZipEntry& entry) {
  const NpyLayout layout = npz_layout(archive, entry);
  const SourceArray array = array_of(name_of_entry(entry.name), layout.type, layout.shape);
  source.add(array, rows_of_tensor(array.row_bytes(), [path, name = entry.name] {
               const MappedFile file(path);
               return read_npz_entry(ZipReader(file.bytes(), path.string()), name);
             }));
}

}  // namespace

std::unique_ptr<SampleSource> open_npz_source(const std::filesystem::path& path, const SourceRequest&) {
  const auto file = std::make_shared<const StableFile>(path);
  const std::map<std::string, StoredEntry> stored = stored_entries(*file);
  auto source = std::make_unique<ArraySource>(path.string(), "array");
  const MappedFile mapped(path);
  const ZipReader archive(mapped.bytes(), path.string());
  for (const ZipEntry& entry : archive.entries()) {
    const auto place = stored.find(entry.name);
    if (place == stored.end() || place->second.size != entry.size)
      add_packed(*source, path, archive, entry);
    else
      add_npy_rows(*source, name_of_entry(entry.name), file, place->second.begin, entry.size,
                   path.string() + ": entry '" + entry.name + "'");
  }
  return source;
}

}  // namespace superstep::data
