#include "superstep/base/system/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/partial_files.h"

namespace superstep {
namespace {

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// What the holder wrote there: "process 1234 on host".
std::string holder(int file) {
  char text[512] = {};
  const ssize_t size = ::pread(file, text, sizeof text - 1, 0);
  std::string words(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return words.empty() ? "another process" : printable(words);
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw Error(ErrorCode::io, fmt::format("cannot write to the folder: {}", std::strerror(errno)),
                path.string(), "check the permissions");
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int failure = errno;
    const std::string by = holder(file_);
    if (failure == EWOULDBLOCK) {
      ::close(file_);
      throw Error(ErrorCode::io, fmt::format("is being written to by {}", by), folder.string(),
                  "wait until it has ended, or stop it with Ctrl-C: it saves what it has");
    }
    fmt::print(
        stderr,
        "superstep: note: {}: this file system has no locks ({}): see to it that one call writes here\n",
        folder.string(), std::strerror(failure));
    return;
  }
  const std::string own = fmt::format("process {} on {}\n", ::getpid(), host_name());
  // A disk that is full keeps nobody's name; the lock holds all the same.
  if (::ftruncate(file_, 0) == 0) (void)!::pwrite(file_, own.data(), own.size(), 0);
  // What a process that was killed was writing here, nobody else is.
  sweep_partial_files(folder, std::chrono::seconds(0));
}

bool holds_nothing(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name != "lock" && !is_partial_name(name)) return false;
  }
  return true;
}

bool is_locked(const std::filesystem::path& folder) {
  const int file = ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return held;
}

FolderLock::~FolderLock() {
  if (file_ < 0) return;
  (void)!::ftruncate(file_, 0);
  ::close(file_);
}

}  // namespace superstep
