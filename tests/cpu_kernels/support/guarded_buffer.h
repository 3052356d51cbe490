// Memory for kernels under test. It ends where an unreadable page begins, so that a read or write past the
// end kills the test, also from generated code that no sanitizer sees; what lies in front of it is watched
// for writes; and of what lies between the elements of a strided tensor neither may a kernel touch any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/image.h"

namespace superstep::kernels {

// Whether AddressSanitizer or Valgrind watches: they report a wrong access themselves, at once.
bool memory_is_watched();

class GuardedBuffer {
 public:
  GuardedBuffer(ElementType type, std::int64_t elements);
  // Adds a failure to the test when something was written that is not the buffer's, or in a gap.
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;

  // Elements that are not `named` are gaps from now on: all their bits are set, which is NaN in the types of
  // floating point, so that a kernel that computes with one shows it, and are so still in the end. Filling
  // leaves them out; AddressSanitizer and Valgrind report every access.
  void keep_to(std::vector<bool> named);

  ElementType type() const { return type_; }
  std::int64_t size() const { return elements_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

  double get(std::int64_t index) const;
  void set(std::int64_t index, double value);

  // Uniform in [low, high), rounded to the type.
  void fill_random(std::uint64_t seed, double low = -1, double high = 1);
  void fill(double value);
  // With what a kernel must not rely on: all bits set. Of buffers without gaps.
  void fill_bits();

 private:
  // The number of bytes that were written in front of the buffer and in its gaps.
  std::int64_t bytes_out_of_place() const;
  template <class Body>
  void for_each_gap(const Body& body) const;  // body(first byte, bytes)

  bool is_gap(std::int64_t index) const {
    return !named_.empty() && !named_[static_cast<std::size_t>(index)];
  }

  ElementType type_;
  std::int64_t elements_;
  std::byte* pages_ = nullptr;
  std::size_t page_bytes_ = 0;
  std::byte* front_ = nullptr;  // the first accessible byte
  std::byte* data_ = nullptr;
  std::vector<bool> named_;  // empty: all
};

// A buffer for a tensor of these extents and strides, whose gaps are its gaps.
GuardedBuffer strided_buffer(ElementType type, const std::vector<std::int64_t>& extents,
                             const std::vector<std::int64_t>& strides);
inline GuardedBuffer image_buffer(const Image& i) {
  return strided_buffer(i.type, {i.height, i.width, i.batch, i.channels},
                        {i.row_stride, i.batch * i.column_stride, i.column_stride, 1});
}

// Runs `body` for each instruction set that this machine has, the widest last, and leaves the widest set;
// where there are products of bf16 pairs, once as if they were slow and once as if they were fast.
void for_each_instruction_set(const std::function<void()>& body);

}  // namespace superstep::kernels
