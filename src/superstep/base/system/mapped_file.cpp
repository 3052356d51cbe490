#include "superstep/base/system/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep {
namespace {

class Descriptor {
 public:
  // Without O_NONBLOCK opening a pipe waits for a writer.
  explicit Descriptor(const std::filesystem::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void refuse(const std::filesystem::path& path) {
  if (errno == ENOENT || errno == ENOTDIR)
    throw Error(ErrorCode::not_found, "there is no such file", path.string());
  throw Error(ErrorCode::io, fmt::format("cannot open: {}", std::strerror(errno)), path.string(),
              errno == EACCES ? "check the permissions" : "");
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path);
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) refuse(path);
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorCode::bad_file,
                S_ISDIR(status.st_mode) ? "this is a folder, not a file" : "this is not a regular file",
                path.string());
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) refuse(path);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

void MappedFile::set_aside(std::span<const std::byte> part) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t first = (start + page - 1) / page * page, last = (start + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace superstep
