// Zeroed values on a 64-byte boundary.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace superstep::run {

class AlignedValues {
 public:
  explicit AlignedValues(std::size_t count) : count_(count) {
    const std::size_t bytes = (count * sizeof(float) + 64) / 64 * 64;
    void* const whole = std::aligned_alloc(64, bytes);
    if (!whole) throw std::bad_alloc();
    std::memset(whole, 0, bytes);
    data_ = {static_cast<float*>(whole), [](float* data) { std::free(data); }};
  }
  float* data() const { return data_.get(); }
  std::span<float> all() const { return {data_.get(), count_}; }

 private:
  std::size_t count_;
  std::shared_ptr<float> data_;
};

}  // namespace superstep::run
