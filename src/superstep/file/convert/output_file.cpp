#include "superstep/file/convert/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::data {

OutputFile::OutputFile(const std::filesystem::path& path, std::string shown, std::uint64_t length)
    : shown_(std::move(shown)), length_(length) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) refuse();
  struct stat there {};
  if (::fstat(file_, &there) != 0) refuse();
  if (static_cast<std::uint64_t>(there.st_size) < length) {
    ::close(file_);
    throw Error(ErrorCode::bad_file, "is shorter than what was written to it", path.string());
  }
  if (::ftruncate(file_, static_cast<off_t>(length)) != 0) refuse();
}

OutputFile::~OutputFile() { ::close(file_); }

void OutputFile::refuse() const {
  throw Error(ErrorCode::io, fmt::format("cannot write: {}", std::strerror(errno)), shown_);
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::write(std::span<const std::byte> bytes) {
  write_at(length_, bytes);
  length_ += bytes.size();
}

void OutputFile::write_at(std::uint64_t place, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) refuse();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    place += static_cast<std::uint64_t>(count);
  }
}

void OutputFile::sync() const {
  if (::fdatasync(file_) != 0) refuse();
}

}  // namespace superstep::data
