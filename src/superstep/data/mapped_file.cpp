#include "superstep/data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, int reason) {
  if (reason == ENOENT) throw Error(ErrorCode::not_found, "there is no such file", path.string());
  throw Error(ErrorCode::io, fmt::format("cannot open: {}", std::strerror(reason)), path.string());
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) refuse(path, errno);
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0;
  if (known && S_ISREG(status.st_mode) && status.st_size > 0) {
    size_ = static_cast<std::size_t>(status.st_size);
    memory_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  const int reason = errno;
  ::close(fd);
  if (!known || memory_ == MAP_FAILED) refuse(path, reason);
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorCode::bad_file, S_ISDIR(status.st_mode) ? "this is a folder" : "this is not a file",
                path.string());
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(memory_, size_);
}

}  // namespace superstep::data
