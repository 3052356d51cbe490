#include "superstep/baseline/picture_sheet.h"

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/file.h"

namespace superstep::baseline {
namespace {

constexpr int gap = 6;  // px between pictures

int scaled_width(const page::Picture& picture) { return picture.image.width * picture.scale; }
int scaled_height(const page::Picture& picture) { return picture.image.height * picture.scale; }

void paint(const page::Picture& picture, int left, int top, page::Image& sheet) {
  const page::Image& image = picture.image;
  for (int y = 0; y < scaled_height(picture); ++y)
    for (int x = 0; x < scaled_width(picture); ++x) {
      const auto from =
          3 * (static_cast<std::size_t>(y / picture.scale) * static_cast<std::size_t>(image.width) +
               static_cast<std::size_t>(x / picture.scale));
      const auto to = 3 * (static_cast<std::size_t>(top + y) * static_cast<std::size_t>(sheet.width) +
                           static_cast<std::size_t>(left + x));
      std::copy_n(&image.rgb[from], 3, &sheet.rgb[to]);
    }
}

}  // namespace

bool is_png_path(const std::filesystem::path& path) {
  return path.extension() == ".png" || path.extension() == ".PNG";
}

page::Image picture_sheet(std::span<const page::Picture> pictures, int columns) {
  if (pictures.empty() || columns < 1)
    throw Error(ErrorCode::invalid_argument, "a sheet needs a picture and a column");
  int cell_width = 0, cell_height = 0;
  for (const page::Picture& picture : pictures) {
    cell_width = std::max(cell_width, scaled_width(picture));
    cell_height = std::max(cell_height, scaled_height(picture));
  }
  const int count = static_cast<int>(pictures.size()), across = std::min(columns, count),
            down = (count + across - 1) / across;
  page::Image sheet{across * (cell_width + gap) - gap, down * (cell_height + gap) - gap, {}};
  sheet.rgb.assign(3 * static_cast<std::size_t>(sheet.width) * static_cast<std::size_t>(sheet.height), 255);
  for (int k = 0; k < count; ++k)
    paint(pictures[static_cast<std::size_t>(k)], k % across * (cell_width + gap),
          k / across * (cell_height + gap), sheet);
  return sheet;
}

void write_picture_sheet(const std::filesystem::path& path, std::span<const page::Picture> pictures,
                         int columns) {
  write_file_atomically(path, page::encode_png(picture_sheet(pictures, columns)));
}

}  // namespace superstep::baseline
