#include "superstep/target/cpu/run/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"
#include "superstep/base/text.h"

namespace superstep::target::cpu {
namespace {

constexpr std::size_t alignment = 64;

// Blocks of several large pages are asked for in large pages: reading megabytes of weights through small ones
// costs a walk of the page tables every 64 lines of cache.
constexpr std::size_t large_page = 2 << 20;

// The whole pages inside [begin, begin + bytes); empty where there is none.
std::span<std::byte> whole_pages(std::byte* begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
  if (first >= last) return {};
  return {reinterpret_cast<std::byte*>(first), last - first};
}

}  // namespace

Memory::Memory(std::size_t bytes) : size_(bytes) {
  void* whole = std::calloc(1, bytes + 2 * alignment);
  if (!whole)
    throw Error(ErrorCode::out_of_memory, "the plan needs " + format_bytes(static_cast<double>(bytes)));
  const auto address = round_up<std::uintptr_t>(reinterpret_cast<std::uintptr_t>(whole), alignment);
  data_ = {reinterpret_cast<std::byte*>(address), [whole](std::byte*) { std::free(whole); }};
  const std::span<std::byte> pages = whole_pages(data(), size_);
  if (pages.size() >= 2 * large_page) ::madvise(pages.data(), pages.size(), MADV_HUGEPAGE);
}

Memory::Memory(std::span<float> values)
    : size_(values.size_bytes()),
      data_(reinterpret_cast<std::byte*>(values.data()), [](std::byte*) {}),
      own_(false) {}

void Memory::release() {
  if (!own_) return;
  const std::span<std::byte> pages = whole_pages(data(), size_);
  if (!pages.empty() && ::madvise(pages.data(), pages.size(), MADV_DONTNEED) == 0) {
    std::byte* const behind = pages.data() + pages.size();
    std::memset(data(), 0, static_cast<std::size_t>(pages.data() - data()));
    std::memset(behind, 0, static_cast<std::size_t>(data() + size_ - behind));
  } else {
    std::memset(data(), 0, size_);
  }
}

}  // namespace superstep::target::cpu
