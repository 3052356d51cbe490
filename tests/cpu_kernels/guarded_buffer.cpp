#include "tests/cpu_kernels/guarded_buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/instruction_set.h"

namespace superstep::kernels {

GuardedBuffer::GuardedBuffer(ElementType type, std::int64_t elements) : type_(type), elements_(elements) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_in_bytes(type);
  const std::size_t usable = (bytes + page - 1) / page * page;
  page_bytes_ = usable + page;
  pages_ = static_cast<std::byte*>(
      mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (pages_ == MAP_FAILED) throw Error(ErrorCode::out_of_memory, "no memory for a test buffer");
  mprotect(pages_ + usable, page, PROT_NONE);
  data_ = pages_ + usable - bytes;
}

GuardedBuffer::~GuardedBuffer() {
  if (pages_) munmap(pages_, page_bytes_);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : type_(other.type_),
      elements_(other.elements_),
      pages_(std::exchange(other.pages_, nullptr)),
      page_bytes_(other.page_bytes_),
      data_(other.data_) {}

double GuardedBuffer::get(std::int64_t index) const {
  return dispatch(type_, [&]<class T>() {
    const T value = static_cast<const T*>(data_)[index];
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      return static_cast<double>(static_cast<float>(value));
    else
      return static_cast<double>(value);
  });
}

void GuardedBuffer::set(std::int64_t index, double value) {
  dispatch(type_, [&]<class T>() {
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      static_cast<T*>(data_)[index] = T(static_cast<float>(value));
    else
      static_cast<T*>(data_)[index] = static_cast<T>(value);
  });
}

void GuardedBuffer::fill_random(std::uint64_t seed, double low, double high) {
  RandomStream random(seed);
  for (std::int64_t i = 0; i < elements_; ++i) set(i, random.uniform(low, high));
}

void GuardedBuffer::fill(double value) {
  for (std::int64_t i = 0; i < elements_; ++i) set(i, value);
}

void for_each_instruction_set(const std::function<void()>& body) {
  for (InstructionSet set : available_instruction_sets()) {
    SCOPED_TRACE(name_of(set));
    set_instruction_set(set);
    body();
  }
}

}  // namespace superstep::kernels
