#include "superstep/file/detector/detector_forms.h"
#include "superstep/file/form.h"
#include "superstep/file/source/row_reader.h"
#include "superstep/file/tiff.h"

namespace superstep::data {

bool is_tiff_stack(const std::filesystem::path& path) { return form_of(path) == FileForm::tiff; }

// Which pages there are is known when all were looked at: they are kept.
std::unique_ptr<SampleSource> open_tiff_stack(const std::filesystem::path& path,
                                              const SourceRequest& request) {
  const Tensor pages = read_tiff(path);
  auto source = std::make_unique<ArraySource>(path.string(), "array");
  SourceArray images = array_of("images", pages.type(), pages.shape());
  for (const SourceArray& wanted : request.wanted)
    if (wanted.row.rank() > 1 && wanted.row.element_count() == images.row.element_count()) {
      images.name = wanted.name;
      images.row = wanted.row;
      break;
    }
  const std::size_t row_bytes = images.row_bytes();
  source->add(std::move(images), rows_of_tensor(row_bytes, [pages] { return pages; }));
  return source;
}

}  // namespace superstep::data
