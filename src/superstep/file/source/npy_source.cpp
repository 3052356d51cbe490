#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/file/npy.h"
#include "superstep/file/source/array_forms.h"
#include "superstep/file/source/npy_rows.h"
#include "superstep/file/source/row_reader.h"

namespace superstep::data {
namespace {

using File = std::shared_ptr<const StableFile>;

constexpr std::size_t longest_header = 1 << 20;  // bytes; NumPy's own have 128

NpyLayout layout_at(const StableFile& file, std::uint64_t begin, std::uint64_t size,
                    const std::string& where) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(npy_beginning, size));
  file.read(begin, bytes);
  const std::size_t length = npy_header_bytes(bytes, where);
  if (length > size || length > longest_header)
    throw Error(ErrorCode::bad_file, "the .npy header is cut short", where);
  bytes.resize(length);
  file.read(begin, bytes);
  NpyLayout layout = parse_npy_header(bytes, where);
  if (layout.data_bytes > size - length)
    throw Error(ErrorCode::bad_file,
                fmt::format("the file is cut short: shape {} needs {} bytes and {} are there",
                            to_string(Shape(layout.outer)), layout.data_bytes, size - length),
                where);
  return layout;
}

// Column-major: as a whole, or not at all.
Tensor read_columns(const StableFile& file, const NpyLayout& layout, std::uint64_t begin) {
  require_memory(npy_memory(layout), file.path().string());
  Tensor tensor = read_npy_elements(layout, [&](std::span<std::byte> target) { file.read(begin, target); });
  file.require_unchanged();
  return tensor;
}

}  // namespace

void add_npy_rows(ArraySource& source, std::string name, const File& file, std::uint64_t begin,
                  std::uint64_t size, const std::string& where) {
  const NpyLayout layout = layout_at(*file, begin, size, where);
  const SourceArray array = array_of(std::move(name), layout.type, layout.shape);
  const std::uint64_t elements = begin + layout.header_bytes;
  if (layout.fortran_order && layout.outer.size() > 1)
    return source.add(array, rows_of_tensor(array.row_bytes(), [file, layout, elements] {
                        return read_columns(*file, layout, elements);
                      }));
  source.add(array, rows_of_file(file, {.begin = elements,
                                        .row_bytes = array.row_bytes(),
                                        .swapped = layout.swapped ? size_in_bytes(layout.type) : 0,
                                        .boolean = layout.type == ElementType::boolean}));
}

std::unique_ptr<SampleSource> open_npy_source(const std::filesystem::path& path, const SourceRequest&) {
  const auto file = std::make_shared<const StableFile>(path);
  auto source = std::make_unique<ArraySource>(path.string(), "array");
  add_npy_rows(*source, "", file, 0, file->size(), path.string());
  return source;
}

}  // namespace superstep::data
