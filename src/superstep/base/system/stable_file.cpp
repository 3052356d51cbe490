#include "superstep/base/system/stable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/system/regular_file.h"

namespace superstep {

// Without O_NONBLOCK opening a pipe waits for a writer.
StableFile::StableFile(const std::filesystem::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  if (descriptor_ < 0) refuse_to_open(path);
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
    opened_ = version();
    return;
  }
  ::close(descriptor_);
  throw Error(ErrorCode::bad_file,
              S_ISDIR(status.st_mode) ? "this is a folder, not a file" : "this is not a regular file",
              path.string());
}

StableFile::~StableFile() { ::close(descriptor_); }

StableFile::Version StableFile::version() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) refuse_to_open(path_);
  return {std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_size};
}

void StableFile::refuse_change() const {
  throw Error(ErrorCode::io, "the file was changed after it was opened", path_.string(),
              "write a new version to a file of its own, and rename that");
}

void StableFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ::ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<::off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(ErrorCode::io, fmt::format("cannot read: {}", std::strerror(errno)), path_.string());
    if (got == 0) refuse_change();
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

void StableFile::require_unchanged() const {
  if (version() != opened_) refuse_change();
}

}  // namespace superstep
