#include "superstep/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/partial_files.h"

namespace superstep {
namespace {

Error system_error(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  const char* hint = code == ENOSPC || code == EDQUOT ? "the disk is full: free some space or write elsewhere"
                     : code == EACCES                 ? "check the permissions"
                     : code == EMFILE                 ? "raise the limit on open files (ulimit -n)"
                     : code == EROFS                  ? "the file system may only be read: write elsewhere"
                                                      : "";
  return Error(code == ENOENT ? ErrorCode::not_found : ErrorCode::io,
               fmt::format("cannot {}: {}", action, std::strerror(code)), path.string(), hint);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

bool write_all(int fd, std::span<const std::string_view> pieces) {
  return std::ranges::all_of(
      pieces, [&](std::string_view piece) { return write_all(fd, piece.data(), piece.size()); });
}

// Opened without waiting: a pipe that nobody reads would be waited for without an end.
int open_to_write(const std::filesystem::path& path, int flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0666);
  if (file < 0 && errno == ENXIO)
    throw Error(ErrorCode::io, "is a device or a pipe that nobody reads from", path.string(),
                "start what reads first, or name a file");
  if (file >= 0) ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

void write_in_place(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  Descriptor file(open_to_write(path, 0));
  if (file.get() < 0 || !write_all(file.get(), pieces)) throw system_error(path, "write");
}

}  // namespace

namespace {

// Of a whole file in memory: beyond it a file is sparse, or none that is read so; what is no file (a pipe, a
// device) may have no end, and is cut off earlier (both chosen).
constexpr std::size_t largest_file = std::size_t{2} << 30, largest_stream = std::size_t{64} << 20;

// What can be waited for, a pipe or a device: looked at in turns, so that Ctrl-C is heard meanwhile.
class Patience {
 public:
  Patience(const std::filesystem::path& path, int fd) : path_(path), fd_(fd) {}
  // True: to be read now, which says whether anybody writes at all.
  bool may_read() {
    constexpr int look_ms = 50;
    pollfd wanted{fd_, POLLIN, 0};
    silent_ms_ = ::poll(&wanted, 1, look_ms) > 0 ? 0 : silent_ms_ + look_ms;
    if (interrupted()) throw Error(ErrorCode::interrupted, "while it was waited for", path_.string());
    return silent_ms_ == 0 || silent_ms_ >= patience_ms;
  }
  // The end of a pipe that nobody has ever opened to write is none.
  void at_end() const {
    if (silent_ms_ >= patience_ms)
      throw Error(ErrorCode::io, "nobody writes to this pipe", path_.string(),
                  "give a file, or start what writes first");
  }

 private:
  static constexpr int patience_ms = 5000;  // chosen: a shell starts both ends of a pipe at once
  const std::filesystem::path& path_;
  const int fd_;
  int silent_ms_ = 0;
};

}  // namespace

namespace {

[[noreturn]] void refuse_size(const std::filesystem::path& path, bool regular, std::size_t most) {
  throw Error(ErrorCode::bad_file,
              fmt::format("{}: more than {} MB {}", regular ? "is too large to be read whole" : "has no end",
                          most >> 20, regular ? "are in it" : "were read"),
              path.string(), "give the file that was meant");
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK opening a pipe waits for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) throw system_error(path, "open");
  const bool regular = S_ISREG(status.st_mode);
  const std::size_t most = regular ? largest_file : largest_stream;
  if (regular && static_cast<std::uint64_t>(status.st_size) > most) refuse_size(path, true, most);
  const bool waits = S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode);
  Patience patience(path, file.get());
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    if (waits && !patience.may_read()) continue;
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) throw system_error(path, "read");
    if (got == 0) {
      patience.at_end();
      return text;
    }
    if (text.size() + static_cast<std::size_t>(got) > most) refuse_size(path, regular, most);
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::span(&text, 1));
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  std::error_code ignored;
  // A device or a pipe (/dev/stdout) is written to, not replaced; a link is followed.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return write_in_place(path, pieces);
  const std::filesystem::path target =
      std::filesystem::is_symlink(path, ignored) ? std::filesystem::canonical(path, ignored) : path;
  sweep_partial_files_once(target.has_parent_path() ? target.parent_path() : ".");
  const std::string temporary = partial_name(target);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) throw system_error(path, "write");
  const bool written = write_all(file.get(), pieces) && ::fsync(file.get()) == 0 && file.close() == 0 &&
                       ::rename(temporary.c_str(), target.c_str()) == 0;
  if (!written) {
    const Error error = system_error(path, "write");
    ::unlink(temporary.c_str());
    throw error;
  }
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  write_file_atomically(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void append_line(const std::filesystem::path& path, std::string_view line) {
  Descriptor file(open_to_write(path, O_CREAT | O_APPEND));
  if (file.get() < 0) throw system_error(path, "append");
  const std::string text = std::string(line) + "\n";
  if (!write_all(file.get(), text.data(), text.size()) || file.close() != 0)
    throw system_error(path, "append");
}

void make_folder(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) throw Error(ErrorCode::io, "cannot make the folder: " + code.message(), path.string());
}

void require_writable(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw Error(ErrorCode::io, "cannot write: it is a folder", path.string(), "name a file");
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::exists(folder, ignored))
    throw Error(ErrorCode::not_found, "cannot write: there is no folder " + folder.string(), path.string(),
                "make the folder first");
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    const int file = open_to_write(path, 0);
    if (file < 0) throw system_error(path, "write");
    // Who reads a pipe is at its end when nobody has it open to write any more: it stays so to our own end.
    if (!fs::is_fifo(path, ignored)) ::close(file);
    return;
  }
  // Permissions do not tell of a name that is too long, of quotas, of file systems that may only be read.
  const std::string trial = partial_name(path);
  const Descriptor file(::open(trial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) throw system_error(path, "write");
  ::unlink(trial.c_str());
}

void require_writable_folder(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored))
    throw Error(ErrorCode::io, "cannot write: it is not a folder", path.string(), "name a folder");
  fs::path there = fs::absolute(path, ignored);
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  try {
    require_writable(there / "file");
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), path.string(), error.hint());
  }
}

}  // namespace superstep
