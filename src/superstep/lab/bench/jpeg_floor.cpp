#include "superstep/lab/bench/jpeg_floor.h"

#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include "superstep/base/system/stable_file.h"
#include "superstep/file/pictures/picture.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

struct Errors {
  jpeg_error_mgr manager;  // first, so that its address is that of both
  std::jmp_buf back;
};

void leave(j_common_ptr codec) { std::longjmp(reinterpret_cast<Errors*>(codec->err)->back, 1); }

void add_jpeg(const fs::path& path, std::vector<std::vector<std::byte>>& found) {
  if (!data::is_picture_name(path)) return;
  const StableFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  if (data::picture_form_of(bytes) == data::PictureForm::jpeg) found.push_back(std::move(bytes));
}

}  // namespace

std::vector<std::vector<std::byte>> jpegs_in(const std::vector<fs::path>& paths, std::size_t most) {
  std::vector<std::vector<std::byte>> found;
  for (const fs::path& path : paths) {
    if (fs::is_regular_file(path) && found.size() < most) add_jpeg(path, found);
    if (!fs::is_directory(path)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (found.size() == most) return found;
      if (entry.is_regular_file()) add_jpeg(entry.path(), found);
    }
  }
  return found;
}

// No object with a destructor is made between setjmp() and where longjmp() leaves from.
bool decode_with_libjpeg(std::span<const std::byte> jpeg, std::vector<unsigned char>& pixels) {
  jpeg_decompress_struct codec;
  Errors errors;
  codec.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.output_message = [](j_common_ptr) {};
  if (setjmp(errors.back)) {
    jpeg_destroy_decompress(&codec);
    return false;
  }
  jpeg_create_decompress(&codec);
  jpeg_mem_src(&codec, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&codec, TRUE);
  jpeg_start_decompress(&codec);
  const std::size_t row_bytes =
      std::size_t{codec.output_width} * static_cast<std::size_t>(codec.output_components);
  pixels.resize(std::max(pixels.size(), row_bytes * codec.output_height));
  while (codec.output_scanline < codec.output_height) {
    JSAMPROW row = pixels.data() + codec.output_scanline * row_bytes;
    jpeg_read_scanlines(&codec, &row, 1);
  }
  jpeg_finish_decompress(&codec);
  jpeg_destroy_decompress(&codec);
  return true;
}

}  // namespace superstep::lab
