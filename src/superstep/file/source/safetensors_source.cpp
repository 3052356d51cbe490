#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/file/safetensors.h"
#include "superstep/file/source/array_forms.h"
#include "superstep/file/source/row_reader.h"

namespace superstep::data {
namespace {

// Floats of 8 bits become f32.
Tensor unpacked(const StableFile& file, const SourceArray& array, std::uint64_t begin, std::size_t size,
                BlockFormat format) {
  std::vector<std::byte> bytes(size);
  file.read(begin, bytes);
  file.require_unchanged();
  Tensor tensor(ElementType::f32, array.shape());
  unpack_blocks(format, bytes, tensor.as<float>());
  return tensor;
}

}  // namespace

std::unique_ptr<SampleSource> open_safetensors_source(const std::filesystem::path& path,
                                                      const SourceRequest&) {
  const auto file = std::make_shared<const StableFile>(path);
  auto source = std::make_unique<ArraySource>(path.string(), "tensor");
  const MappedFile mapped(path);
  for (const SafetensorsPlace& place : safetensors_layout(mapped.bytes(), path.string()).places) {
    if (!place.unread.empty()) {
      source->add_other(fmt::format("'{}' ({})", printable(place.name), place.unread));
      continue;
    }
    const SourceArray array = array_of(place.name, place.type, place.shape);
    const auto begin = static_cast<std::uint64_t>(place.bytes.data() - mapped.bytes().data());
    if (place.blocks != BlockFormat::none)
      source->add(array, rows_of_tensor(array.row_bytes(), [=, size = place.bytes.size()] {
                    return unpacked(*file, array, begin, size, place.blocks);
                  }));
    else
      source->add(array, rows_of_file(file, {.begin = begin,
                                             .row_bytes = array.row_bytes(),
                                             .boolean = place.type == ElementType::boolean}));
  }
  return source;
}

}  // namespace superstep::data
