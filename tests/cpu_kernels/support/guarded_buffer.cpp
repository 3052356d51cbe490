#include "tests/cpu_kernels/support/guarded_buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
// Clang's own copies of these headers come with its sanitizers, which a machine may lack.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#endif
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

#include <algorithm>
#include <cstring>
#include <utility>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "tests/cpu_kernels/support/assumed_pair_rate.h"

namespace superstep::kernels {

namespace {

#ifdef __has_feature
#define SUPERSTEP_HAS_FEATURE(NAME) __has_feature(NAME)
#else
#define SUPERSTEP_HAS_FEATURE(NAME) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || SUPERSTEP_HAS_FEATURE(address_sanitizer)
constexpr bool compiled_with_address_sanitizer = true;
#else
constexpr bool compiled_with_address_sanitizer = false;
#endif

constexpr std::byte front_pattern{0xa5}, gap_pattern{0xff};

std::int64_t count_other(const std::byte* first, std::size_t bytes, std::byte pattern) {
  return std::count_if(first, first + bytes, [&](std::byte b) { return b != pattern; });
}

// For the checkers of memory that may be at work: AddressSanitizer, and Valgrind, which sees generated code
// too.
void forbid(std::byte* first, std::size_t bytes) {
  ASAN_POISON_MEMORY_REGION(first, bytes);
#ifdef VALGRIND_MAKE_MEM_NOACCESS
  static_cast<void>(VALGRIND_MAKE_MEM_NOACCESS(first, bytes));
#endif
}

void allow(std::byte* first, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(first, bytes);
#ifdef VALGRIND_MAKE_MEM_DEFINED
  static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(first, bytes));
#endif
}

}  // namespace

bool memory_is_watched() {
#ifdef RUNNING_ON_VALGRIND
  if (RUNNING_ON_VALGRIND > 0) return true;
#endif
  return compiled_with_address_sanitizer;
}

GuardedBuffer::GuardedBuffer(ElementType type, std::int64_t elements) : type_(type), elements_(elements) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_in_bytes(type);
  const std::size_t usable = (bytes + page - 1) / page * page;
  page_bytes_ = page + usable + page;
  void* pages = mmap(nullptr, page_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw Error(ErrorCode::out_of_memory, "no memory for a test buffer");
  pages_ = static_cast<std::byte*>(pages);
  front_ = pages_ + page;
  data_ = front_ + usable - bytes;
  if (usable > 0) mprotect(front_, usable, PROT_READ | PROT_WRITE);
  std::fill(front_, data_, front_pattern);
  forbid(front_, static_cast<std::size_t>(data_ - front_));
}

GuardedBuffer::~GuardedBuffer() {
  if (!pages_) return;
  allow(front_, static_cast<std::size_t>(data_ - front_));
  for_each_gap([](std::byte* first, std::size_t bytes) { allow(first, bytes); });
  if (const std::int64_t bytes = bytes_out_of_place(); bytes > 0)
    ADD_FAILURE() << bytes << " bytes were written in front of a buffer of " << elements_ << " "
                  << name_of(type_) << " or between its elements";
  munmap(pages_, page_bytes_);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : type_(other.type_),
      elements_(other.elements_),
      pages_(std::exchange(other.pages_, nullptr)),
      page_bytes_(other.page_bytes_),
      front_(other.front_),
      data_(other.data_),
      named_(std::move(other.named_)) {}

template <class Body>
void GuardedBuffer::for_each_gap(const Body& body) const {
  const auto size = static_cast<std::int64_t>(size_in_bytes(type_));
  for (std::int64_t i = 0; i < std::ssize(named_); ++i) {
    if (!is_gap(i)) continue;
    const std::int64_t first = i;
    while (i + 1 < std::ssize(named_) && is_gap(i + 1)) ++i;
    body(data_ + first * size, static_cast<std::size_t>((i + 1 - first) * size));
  }
}

void GuardedBuffer::keep_to(std::vector<bool> named) {
  EXPECT_EQ(named.size(), static_cast<std::size_t>(elements_));
  if (std::ranges::find(named, false) == named.end()) return;
  named_ = std::move(named);
  for_each_gap([](std::byte* first, std::size_t bytes) {
    std::memset(first, static_cast<int>(gap_pattern), bytes);
    forbid(first, bytes);
  });
}

std::int64_t GuardedBuffer::bytes_out_of_place() const {
  std::int64_t bytes = count_other(front_, static_cast<std::size_t>(data_ - front_), front_pattern);
  for_each_gap(
      [&](const std::byte* first, std::size_t gap) { bytes += count_other(first, gap, gap_pattern); });
  return bytes;
}

double GuardedBuffer::get(std::int64_t index) const {
  return dispatch(type_, [&]<class T>() {
    const T value = reinterpret_cast<const T*>(data_)[index];
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      return static_cast<double>(static_cast<float>(value));
    else
      return static_cast<double>(value);
  });
}

void GuardedBuffer::set(std::int64_t index, double value) {
  dispatch(type_, [&]<class T>() {
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      reinterpret_cast<T*>(data_)[index] = T(static_cast<float>(value));
    else
      reinterpret_cast<T*>(data_)[index] = static_cast<T>(value);
  });
}

void GuardedBuffer::fill_random(std::uint64_t seed, double low, double high) {
  RandomStream random(seed);
  for (std::int64_t i = 0; i < elements_; ++i) {
    const double value = random.uniform(low, high);
    if (!is_gap(i)) set(i, value);
  }
}

void GuardedBuffer::fill_bits() {
  std::memset(data_, static_cast<int>(gap_pattern),
              static_cast<std::size_t>(elements_) * size_in_bytes(type_));
#ifdef VALGRIND_MAKE_MEM_UNDEFINED
  static_cast<void>(
      VALGRIND_MAKE_MEM_UNDEFINED(data_, static_cast<std::size_t>(elements_) * size_in_bytes(type_)));
#endif
}

void GuardedBuffer::fill(double value) {
  for (std::int64_t i = 0; i < elements_; ++i)
    if (!is_gap(i)) set(i, value);
}

GuardedBuffer strided_buffer(ElementType type, const std::vector<std::int64_t>& extents,
                             const std::vector<std::int64_t>& strides) {
  std::vector<std::int64_t> places{0};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<std::int64_t> more;
    for (std::int64_t i = 0; i < extents[axis]; ++i)
      for (const std::int64_t place : places) more.push_back(place + i * strides[axis]);
    places = std::move(more);
  }
  const std::int64_t size = places.empty() ? 0 : *std::ranges::max_element(places) + 1;
  GuardedBuffer buffer(type, size);
  std::vector<bool> named(static_cast<std::size_t>(size));
  for (const std::int64_t place : places) named[static_cast<std::size_t>(place)] = true;
  buffer.keep_to(std::move(named));
  return buffer;
}

void for_each_instruction_set(const std::function<void()>& body) {
  for (InstructionSet set : available_instruction_sets()) {
    SCOPED_TRACE(name_of(set));
    set_instruction_set(set);
    if (set >= InstructionSet::avx512_bf16) {
      SCOPED_TRACE("pairs multiplied in f32");
      const AssumedPairRate slow(PairRate::slow);
      body();
    }
    const AssumedPairRate fast(PairRate::fast);
    body();
  }
}

}  // namespace superstep::kernels
