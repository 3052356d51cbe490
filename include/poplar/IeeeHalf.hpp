// A half by its bits, where the compiler has no such type: to nearest, ties to even.
#ifndef poplar_IeeeHalf_hpp
#define poplar_IeeeHalf_hpp

#include <cstdint>
#include <cstring>
#include <poplar/HalfFloat.hpp>

#ifdef __FLT16_MAX__
namespace poplar {

class IeeeHalf {
 public:
  IeeeHalf() : bits_(0) {}
  IeeeHalf(float value) : bits_(0) {
    const half number = static_cast<half>(value);
    __builtin_memcpy(&bits_, &number, sizeof bits_);
  }
  static IeeeHalf fromBits(std::uint16_t bits) {
    IeeeHalf number;
    number.bits_ = bits;
    return number;
  }
  operator float() const {
    half number;
    __builtin_memcpy(&number, &bits_, sizeof bits_);
    return static_cast<float>(number);
  }
  std::uint16_t bit16() const { return bits_; }

 private:
  std::uint16_t bits_;
};

}  // namespace poplar
#endif

#endif
