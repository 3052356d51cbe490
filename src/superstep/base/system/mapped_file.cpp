#include "superstep/base/system/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "superstep/base/system/regular_file.h"

namespace superstep {

MappedFile::MappedFile(const std::filesystem::path& path) : file_(path) {
  const auto size = static_cast<std::size_t>(file_.size());
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
  if (memory == MAP_FAILED) refuse_to_open(path);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

void MappedFile::read(std::span<const std::byte> part, std::byte* target) const {
  if (part.empty()) return;
  file_.read(static_cast<std::uint64_t>(part.data() - bytes_.data()), {target, part.size()});
  file_.require_unchanged();
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
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
