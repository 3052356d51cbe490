// Denormal numbers count as zero in this thread while one of these lives.
//
// Moments of parameters without a gradient decay into them, and vanishing gradients end in them; an operation
// on one can cost a hundred cycles where it costs one otherwise. Below 1.2e-38 a training step loses nothing.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace superstep::target::cpu {

class FlushDenormals {
 public:
  explicit FlushDenormals(bool on) : before_(control()), on_(on) {
    if (on_) set_control(before_ | bits);
  }
  ~FlushDenormals() {
    if (on_) set_control(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Control = unsigned;
  static constexpr Control bits = 0x8000 | 0x0040;  // results to zero, operands are zero
  static Control control() { return _mm_getcsr(); }
  static void set_control(Control value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  static constexpr Control bits = std::uint64_t{1} << 24;  // FZ: operands and results
  static Control control() {
    Control value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_control(Control value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#endif

  Control before_;
  bool on_;
};

}  // namespace superstep::target::cpu
