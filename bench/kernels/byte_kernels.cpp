// Convolutions on bytes of ResNet-50's shapes, by the implementations that keep sums in registers: the least
// time of a run, weights where the last run left them and weights that a cache of 24 MB has to be gone
// through for, as between the layers of a model.
//   bench_byte_kernels
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"

namespace superstep::bench {
namespace {

using namespace kernels;

constexpr std::size_t large_page = std::size_t{2} << 20, beyond_caches = std::size_t{24} << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

// Large pages, as a plan's memory has.
Memory memory(std::size_t bytes) {
  bytes = (bytes + large_page) / large_page * large_page;
  Memory result(std::aligned_alloc(large_page, bytes));
  ::madvise(result.get(), bytes, MADV_HUGEPAGE);
  std::memset(result.get(), 1, bytes);
  return result;
}

IntegerConvolution layer(std::int64_t side, std::int64_t in, std::int64_t out, std::int64_t taps) {
  IntegerConvolution c;
  c.x = dense_image(side, side, 1, in, ElementType::u8);
  c.y = dense_image(side, side, 1, out, ElementType::u8);
  c.window.height = c.window.width = taps;
  c.window.pad_top = c.window.pad_left = taps / 2;
  c.zero_point = 3;
  c.epilogue.bias().activate(Activation::relu);
  return c;
}

// The least of the runs of a quarter of a second over so many packed weights, one after the other, us.
double least(const Kernel& kernel, const IntegerConvolution& c, std::size_t copies) {
  const std::size_t weights = (byte_pack_bytes(c) + 63) / 64 * 64;
  const auto channels = static_cast<std::size_t>(c.y.channels);
  const Memory packed = memory(weights * copies), x = memory(static_cast<std::size_t>(extent_of(c.x))),
               y = memory(static_cast<std::size_t>(extent_of(c.y))),
               scratch = memory(kernel.info().scratch_bytes);
  const std::vector<float> scale(channels, 1e-3f), bias(channels, 0.1f);
  double best = 1e300;
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t run = 0; std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(250);
       ++run) {
    const void* const inputs[] = {x.get(), static_cast<std::byte*>(packed.get()) + run % copies * weights,
                                  scale.data(), bias.data()};
    void* const outputs[] = {y.get()};
    const auto start = std::chrono::steady_clock::now();
    kernel.run({inputs, outputs, scratch.get()});
    best = std::min(
        best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void print(std::int64_t side, std::int64_t in, std::int64_t out, std::int64_t taps) {
  const IntegerConvolution c = layer(side, in, out, taps);
  const double products = static_cast<double>(side * side * in * out * taps * taps);
  for (const auto& implementation : integer_convolution().all()) {
    const Prepared kernel = implementation.prepare(c);
    if (!kernel || implementation.name == std::string_view("libxsmm") ||
        implementation.name == std::string_view("portable"))
      continue;
    const double near = least(**kernel, c, 1),
                 far = least(**kernel, c, 1 + beyond_caches / byte_pack_bytes(c));
    fmt::print("{:>2} x {:<2}  {:>4} -> {:<4}  {} x {}  {:<20} {:>8.1f} us  {:>8.1f} us  {:>4.0f} GMAC/s\n",
               side, side, in, out, taps, taps, implementation.name, near, far, products / near / 1e3);
  }
}

}  // namespace
}  // namespace superstep::bench

int main() {
  fmt::print("positions  channels      taps   implementation        in cache  from beyond\n");
  for (const auto& [side, in, out, taps] : std::vector<std::array<std::int64_t, 4>>{{56, 64, 64, 3},
                                                                                    {28, 128, 128, 3},
                                                                                    {14, 256, 256, 3},
                                                                                    {7, 512, 512, 3},
                                                                                    {28, 512, 128, 1},
                                                                                    {14, 1024, 256, 1},
                                                                                    {7, 2048, 512, 1},
                                                                                    {7, 512, 2048, 1}})
    superstep::bench::print(side, in, out, taps);
}
