#include "superstep/file/streamed_file.h"

#include "superstep/base/error.h"
#include "superstep/base/system/partial_files.h"

namespace superstep::data {

StreamedFile::StreamedFile(std::filesystem::path path)
    : path_(std::move(path)),
      partial_(partial_name(path_)),
      stream_(partial_, std::ios::binary | std::ios::trunc) {
  if (!stream_) throw Error(ErrorCode::io, "cannot be opened for writing", path_.string());
}

StreamedFile::~StreamedFile() {
  stream_.close();
  if (closed_) return;
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

void StreamedFile::write(std::string_view text) {
  stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
}

void StreamedFile::close() {
  stream_.close();
  std::error_code error;
  if (stream_) std::filesystem::rename(partial_, path_, error);
  if (!stream_ || error) throw Error(ErrorCode::io, "could not be written", path_.string());
  closed_ = true;
}

}  // namespace superstep::data
