// Decoding of compressed pixels on one core, in bytes of pixels a second, beside a copy of as many: frames as
// detectors have them, mostly few counts, the best of several runs each.
//   bench_unpack
#include "superstep/edge/stream/unpack.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "bench/kernels/peak.h"
#include "superstep/base/random.h"
#include "superstep/base/tensor.h"
#include "superstep/edge/stream/pack.h"

namespace superstep::bench {
namespace {

// Counts that fall off from the middle, as a diffraction pattern's do.
Tensor pattern(ElementType type, std::int64_t side) {
  Tensor pixels(type, {side, side});
  RandomStream random(1);
  const double most = type == ElementType::u8 ? 200 : 5000;
  for (std::int64_t i = 0; i < side * side; ++i) {
    const double y = 2.0 * static_cast<double>(i / side) / static_cast<double>(side) - 1,
                 x = 2.0 * static_cast<double>(i % side) / static_cast<double>(side) - 1;
    const double mean = most * std::exp(-12 * std::sqrt(y * y + x * x));
    pixels.set(i, std::floor(std::max(0.0, mean + std::sqrt(mean) * random.normal())));
  }
  return pixels;
}

void measure(const char* method, ElementType type, std::int64_t side) {
  const Tensor pixels = pattern(type, side);
  const std::span<const std::byte> bytes(pixels.bytes(), pixels.byte_count());
  const std::string packed = edge::pack(method, size_in_bytes(type), bytes);
  const auto from = std::as_bytes(std::span(packed));
  std::vector<std::byte> to(bytes.size());
  double own = 1e30, copy = 1e30;
  for (int round = 0; round < 5; ++round) {
    own = std::min(own,
                   best_seconds([&] { edge::unpack(method, size_in_bytes(type), from, bytes.size()); }, 3));
    copy = std::min(copy, best_seconds([&] { std::memcpy(to.data(), bytes.data(), bytes.size()); }, 3));
  }
  const auto size = static_cast<double>(bytes.size());
  fmt::print("{:<6} {:<4} {:>5} x {:<5} {:>6.1f} {:>9.2f} {:>9.2f}\n", method, name_of(type), side, side,
             size / static_cast<double>(packed.size()), size / own / 1e9, size / copy / 1e9);
}

}  // namespace
}  // namespace superstep::bench

int main() {
  using superstep::ElementType;
  fmt::print("{:<6} {:<4} {:<13} {:>6} {:>9} {:>9}\n", "method", "type", "pixels", "ratio", "GB/s", "copy");
  for (const char* method : {"bslz4", "lz4"})
    for (const auto& [type, side] :
         {std::pair(ElementType::u16, 128), {ElementType::u8, 512}, {ElementType::u32, 1024}})
      superstep::bench::measure(method, type, side);
}
