#include "superstep/base/system/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/base/system/regular_file.h"

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
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  Descriptor file(path);
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) refuse_to_open(path);
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorCode::bad_file,
                S_ISDIR(status.st_mode) ? "this is a folder, not a file" : "this is not a regular file",
                path.string());
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) refuse_to_open(path);
  bytes_ = {static_cast<const std::byte*>(memory), size};
  descriptor_ = file.release();
  opened_ = version();
}

MappedFile::Version MappedFile::version() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) refuse_to_open(path_);
  return {std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_size};
}

void MappedFile::refuse_change() const {
  throw Error(ErrorCode::io, "the file was changed after it was opened", path_.string(),
              "write a new version to a file of its own, and rename that");
}

void MappedFile::read(std::span<const std::byte> part, std::byte* target) const {
  auto offset = part.data() - bytes_.data();
  for (std::size_t left = part.size(); left > 0;) {
    const ::ssize_t got = ::pread(descriptor_, target, left, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(ErrorCode::io, fmt::format("cannot read: {}", std::strerror(errno)), path_.string());
    if (got == 0) refuse_change();
    target += got, offset += got, left -= static_cast<std::size_t>(got);
  }
  if (!part.empty() && version() != opened_) refuse_change();
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void bring_into_memory(std::span<const std::byte> part) {
#ifdef MADV_POPULATE_READ  // Linux 5.14
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()), first = begin / page * page;
  ::madvise(reinterpret_cast<void*>(first), begin + part.size() - first, MADV_POPULATE_READ);
#else
  static_cast<void>(part);
#endif
}

}  // namespace superstep
