// Blocks of memory of an executable.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace superstep::target::cpu {

// A zeroed block of memory on a 64-byte boundary. Large blocks take up room as they are touched.
class Memory {
 public:
  explicit Memory(std::size_t bytes);
  // Somebody else's, which outlives this.
  explicit Memory(std::span<float> values);
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  const std::shared_ptr<std::byte>& shared() const { return data_; }
  // Zeroes it, and lets go of the room that it takes until it is touched again. Somebody else's is left
  // alone.
  void release();

 private:
  std::size_t size_;
  std::shared_ptr<std::byte> data_;
  bool own_ = true;
};

}  // namespace superstep::target::cpu
