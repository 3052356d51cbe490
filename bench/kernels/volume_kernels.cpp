// Kernels over volumes: the convolutions, pooling and resizing of AutoPhaseNN beside the multiply-add peak,
// and Fourier transforms beside KissFFT and, where its header is installed, pocketfft, in turn.
//   bench_volume_kernels [micro-batch ...]
#include <fmt/format.h>
#include <kissfft/kiss_fftnd.h>

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <numeric>

#if __has_include(<pocketfft_hdronly.h>)
#define POCKETFFT_NO_MULTITHREADING
#include <pocketfft_hdronly.h>
#define SUPERSTEP_HAS_POCKETFFT
#endif

#include "bench/kernels/peak.h"
#include "bench/kernels/sequence.h"
#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/fourier/fourier.h"
#include "superstep/target/cpu/kernels/move/pool.h"
#include "superstep/target/cpu/kernels/product/weights.h"

namespace superstep::bench {
namespace {

using namespace kernels;

Image volume(std::int64_t side, std::int64_t batch, std::int64_t channels) {
  Image image = dense_image(side * side, side, batch, channels);
  image.planes = side;
  return image;
}

// One convolution of 3 x 3 x 3 taps in its three passes.
void add_layer(Sequence& s, std::int64_t side, std::int64_t in, std::int64_t out, std::int64_t batch) {
  Convolution c;
  c.x = volume(side, batch, in), c.y = volume(side, batch, out);
  c.window = {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1, .depth = 3, .pad_front = 1};
  const std::string name = fmt::format("{}^3 {}->{}", side, in, out);
  void *const x = s.tensor("x " + name, extent_of(c.x)), *const y = s.tensor("y " + name, extent_of(c.y));
  const auto weights = [&](const Prepared& kernel) {
    const auto layout = (*kernel)->info().weights;
    const std::string tensor = fmt::format("w {} {}", name, kernels::name_of(layout));
    return s.tensor(tensor, static_cast<std::int64_t>(packed_elements(weight_transfer(c, layout))));
  };
  Prepared forward = convolution_forward().prepare(c), back = convolution_input_gradient().prepare(c),
           gradient = convolution_weight_gradient().prepare(c);
  void *const w = weights(forward), *const v = weights(back), *const dw = weights(gradient);
  s.add("forward", name, std::move(forward), {x, w}, {y});
  if (in > 1) s.add("backward", name + " dx", std::move(back), {y, v}, {x});
  s.add("backward", name + " dw", std::move(gradient), {x, y}, {dw});
}

void add_pooling(Sequence& s, std::int64_t side, std::int64_t channels, std::int64_t batch) {
  Pool pool{volume(side, batch, channels),
            volume(side / 2, batch, channels),
            {.height = 2, .width = 2, .stride_h = 2, .stride_w = 2, .depth = 2, .stride_d = 2}};
  pool.save_argmax = true;
  const std::string name = fmt::format("{}^3 {} pooled", side, channels);
  void *const x = s.tensor("x " + name, extent_of(pool.x)),
              *const y = s.tensor("y " + name, extent_of(pool.y)),
              *const winners = s.tensor("winners " + name, extent_of(pool.y));
  s.add("forward", name, prepare_pool(pool), {x}, {y, winners});
  s.add("backward", name + " dx", prepare_pool_gradient(pool), {y, winners}, {x});
}

void convolutions(std::int64_t batch, double peak) {
  Sequence s;
  add_layer(s, 64, 1, 32, batch);
  add_layer(s, 64, 32, 32, batch);
  add_pooling(s, 64, 32, batch);
  add_layer(s, 32, 32, 64, batch);
  add_layer(s, 32, 64, 64, batch);
  add_layer(s, 16, 64, 128, batch);
  add_layer(s, 16, 128, 128, batch);
  add_layer(s, 8, 128, 256, batch);
  add_layer(s, 8, 256, 256, batch);
  print_table(s, batch, peak, false);
}

// Both directions of a transform of [extents...], parts side by side or apart; microseconds of the best of
// rounds.
void transform(const std::vector<std::int64_t>& extents) {
  const std::int64_t count =
      std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  const auto elements = static_cast<std::size_t>(count);
  std::vector<std::complex<float>> x(elements, {0.5f, -0.25f}), y(elements);
  std::vector<float> re(elements, 0.5f), im(elements, -0.25f), out_re(elements), out_im(elements);
  std::vector<int> sides(extents.begin(), extents.end());
  const kiss_fftnd_cfg plan =
      kiss_fftnd_alloc(sides.data(), static_cast<int>(sides.size()), 0, nullptr, nullptr);
  const auto kiss = [&] {
    kiss_fftnd(plan, reinterpret_cast<const kiss_fft_cpx*>(x.data()),
               reinterpret_cast<kiss_fft_cpx*>(y.data()));
  };

  // As the CPU target runs it: all axes but the outermost, then that one in place.
  Fourier f{.extents = extents,
            .x_strides = std::vector<std::int64_t>(extents.size(), 1),
            .y_strides = {},
            .axes = {}};
  for (std::size_t i = extents.size() - 1; i-- > 0;) f.x_strides[i] = f.x_strides[i + 1] * extents[i + 1];
  f.y_strides = f.x_strides;
  Fourier inner = f, outer = f;
  for (std::size_t i = 1; i < extents.size(); ++i) inner.axes.push_back(static_cast<int>(i));
  outer.axes = {0};
  std::vector<KernelPointer> steps;
  if (!inner.axes.empty()) steps.push_back(*prepare(inner));
  steps.push_back(*prepare(outer));
  std::size_t scratch_bytes = 64;
  for (const KernelPointer& step : steps) scratch_bytes = std::max(scratch_bytes, step->info().scratch_bytes);
  std::vector<std::byte> scratch(scratch_bytes + 64);
  const void* inputs[] = {re.data(), im.data()};
  void* outputs[] = {out_re.data(), out_im.data()};
  const auto ours = [&] {
    for (std::size_t i = 0; i < steps.size(); ++i)
      steps[i]->run({i == 0 ? std::span<const void* const>(inputs)
                            : std::span<const void* const>(const_cast<const void**>(outputs), 2),
                     outputs, scratch.data()});
  };
  double best_ours = 1e30, best_kiss = 1e30, best_pocket = 1e30;
  for (int round = 0; round < 7; ++round) {
    best_ours = std::min(best_ours, best_seconds(ours, 3));
    best_kiss = std::min(best_kiss, best_seconds(kiss, 3));
#ifdef SUPERSTEP_HAS_POCKETFFT
    pocketfft::shape_t shape(extents.begin(), extents.end()), axes;
    pocketfft::stride_t strides;
    for (std::size_t i = 0; i < extents.size(); ++i)
      axes.push_back(i), strides.push_back(f.x_strides[i] * static_cast<std::ptrdiff_t>(sizeof(x[0])));
    best_pocket = std::min(best_pocket, best_seconds(
                                            [&] {
                                              pocketfft::c2c(shape, strides, strides, axes,
                                                             pocketfft::FORWARD, x.data(), y.data(), 1.0f);
                                            },
                                            3));
#endif
  }
  kiss_fft_free(plan);
  fmt::print("{:<14} {:9.1f} us {:6.2f} GFLOP/s   KissFFT {:9.1f} us, ratio {:5.2f}",
             fmt::format("{}", fmt::join(extents, "x")), best_ours * 1e6,
             1e-9 * (fourier_flops(outer) + (inner.axes.empty() ? 0 : fourier_flops(inner))) / best_ours,
             best_kiss * 1e6, best_kiss / best_ours);
  if (best_pocket < 1e29)
    fmt::print("   pocketfft {:9.1f} us, ratio {:5.2f}", best_pocket * 1e6, best_pocket / best_ours);
  fmt::print("\n");
}

}  // namespace
}  // namespace superstep::bench

int main(int argc, char** argv) try {
  using namespace superstep::bench;
  for (const std::vector<std::int64_t>& extents : std::vector<std::vector<std::int64_t>>{
           {64, 64, 64}, {32, 32, 32}, {128, 128, 128}, {60, 60, 60}, {256, 256}, {37, 41, 43}})
    transform(extents);
  const double peak = measure_fma_peak();
  for (int i = 1; i < std::max(argc, 2); ++i) convolutions(i < argc ? std::atoi(argv[i]) : 2, peak);
  return 0;
} catch (const superstep::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
