#include "superstep/file/appended_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

void refuse(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::io, why, path.string());
}

}  // namespace

AppendedFile::AppendedFile(std::filesystem::path path, std::uint64_t bytes)
    : path_(std::move(path)), bytes_(bytes) {
  std::error_code failed;
  if (bytes > 0) {
    const std::uintmax_t there = std::filesystem::file_size(path_, failed);
    if (failed || there < bytes)
      throw Error(ErrorCode::bad_file,
                  failed ? "is missing" : fmt::format("has {} bytes of {} that were written", there, bytes),
                  path_.string());
    std::filesystem::resize_file(path_, bytes, failed);
    if (failed) refuse(path_, "cannot be cut: " + failed.message());
  }
  stream_.open(path_, std::ios::binary | (bytes > 0 ? std::ios::app : std::ios::trunc));
  if (!stream_) refuse(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
}

void AppendedFile::write(std::string_view text) {
  errno = 0;
  stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream_) refuse(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
  bytes_ += text.size();
}

std::uint64_t AppendedFile::flush() {
  errno = 0;
  stream_.flush();
  if (!stream_) refuse(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    ::fsync(file);  // where the file system cannot, a crash of the machine may lose the end of the file
    ::close(file);
  }
  return bytes_;
}

}  // namespace superstep::data
