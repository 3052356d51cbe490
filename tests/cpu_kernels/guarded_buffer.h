// Memory for kernels under test: it ends where an unreadable page begins, so that a read or write past the
// end kills the test, also from generated code that no sanitizer sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

class GuardedBuffer {
 public:
  GuardedBuffer(ElementType type, std::int64_t elements);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;

  ElementType type() const { return type_; }
  std::int64_t size() const { return elements_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <class T>
  T* as() {
    return static_cast<T*>(data_);
  }

  double get(std::int64_t index) const;
  void set(std::int64_t index, double value);

  // Uniform in [low, high), rounded to the type.
  void fill_random(std::uint64_t seed, double low = -1, double high = 1);
  void fill(double value);

 private:
  ElementType type_;
  std::int64_t elements_;
  std::byte* pages_ = nullptr;
  std::size_t page_bytes_ = 0;
  void* data_ = nullptr;
};

// Runs `body` for each instruction set that this machine has, the widest last, and leaves the widest set.
void for_each_instruction_set(const std::function<void()>& body);

}  // namespace superstep::kernels
