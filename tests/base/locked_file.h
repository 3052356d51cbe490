// A file as libraries open it, which a child would inherit, locked.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

namespace superstep::test {

class LockedFile {
 public:
  explicit LockedFile(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    ::flock(file_, LOCK_EX);
  }
  // Closed here: whether nobody else holds the lock.
  bool is_free_once_closed() {
    ::close(file_);
    const int again = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    const bool free = ::flock(again, LOCK_SH | LOCK_NB) == 0;
    ::close(again);
    ::unlink(path_.c_str());
    return free;
  }

 private:
  const std::filesystem::path path_;
  const int file_;
};

}  // namespace superstep::test
