// One process at a time writes to a folder.
#pragma once

#include <filesystem>

namespace superstep {

class FolderLock {
 public:
  // Locks FOLDER/lock, made where it is missing; the folder exists. The system lets go of it when the process
  // ends, however it ends. Throws Error (io) naming the process and the host that have it. A file system
  // without locks is told of on standard error and gone on with.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

// Whether there is nothing in the folder but what a process leaves that was killed as soon as it had its
// lock: the lock, files half written. Nothing is in a folder that is not there.
bool holds_nothing(const std::filesystem::path& folder);

// Whether some process has such a lock on the folder now, as far as the file system tells.
bool is_locked(const std::filesystem::path& folder);

}  // namespace superstep
