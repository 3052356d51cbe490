// Convolutions of 3 x 3 taps: the direct kernel beside Winograd's with tiles of 2, 3 and 4, interleaved, the
// least time of each; in brackets how many times as fast as direct it is, and how many times the choice among
// them reckons with; last what is chosen. Weights are packed ahead, and constant. With --bf16 images are
// bf16; Winograd's products are then in bf16, after those in f32.
//   bench_winograd [--bf16] [micro-batch ...]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"

namespace superstep::bench {
namespace {

using namespace kernels;

struct Layer {
  std::int64_t side, in, out, pad = 1;
};

constexpr Layer layers[] = {{9, 64, 32, 0}, {7, 32, 8, 0}, {64, 16, 16},    {32, 16, 32},  {32, 32, 32},
                            {64, 32, 16},   {64, 32, 32},  {32, 64, 32},    {16, 32, 64},  {32, 32, 64},
                            {32, 64, 64},   {64, 64, 64},  {16, 64, 64},    {16, 64, 128}, {8, 128, 128},
                            {16, 128, 128}, {16, 128, 64}, {32, 128, 64},   {56, 64, 64},  {28, 128, 128},
                            {14, 256, 256}, {7, 512, 512}, {32, 32, 32, 0}, {15, 32, 64},  {15, 64, 32, 0},
                            {128, 16, 16},  {256, 16, 16}, {128, 32, 32}};

struct Buffer {
  std::vector<float> values;
  // Bit patterns that are small numbers in f32, and in bf16 too.
  explicit Buffer(std::int64_t elements) : values(static_cast<std::size_t>(elements) + 16) {
    constexpr float signs[] = {0.015625f, -0.03125f, 0.0625f};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = signs[i % 3];
  }
  float* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(values.data());
    return values.data() + (64 - address % 64) % 64 / sizeof(float);
  }
};

struct Contender {
  KernelPointer kernel;
  Buffer weights, scratch;
  double seconds = std::numeric_limits<double>::max();
};

Contender contender(const Convolution& c, Prepared prepared) {
  if (!prepared) throw Error(ErrorCode::internal, to_string(prepared.error()));
  const KernelInfo& info = (*prepared)->info();
  const auto elements = packed_elements(weight_transfer(c, info.weights));
  const auto scratch = info.scratch_bytes / sizeof(float);
  return {std::move(*prepared), Buffer(static_cast<std::int64_t>(elements)),
          Buffer(static_cast<std::int64_t>(scratch))};
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void time_once(Contender& c, const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  const Arguments arguments{inputs, outputs, c.scratch.data()};
  c.kernel->run(arguments);
  const auto begin = std::chrono::steady_clock::now();
  int runs = 0;
  do c.kernel->run(arguments);
  while (++runs < 3 || seconds_since(begin) < 2e-4);
  c.seconds = std::min(c.seconds, seconds_since(begin) / runs);
}

using Prepare = Prepared (*)(const Convolution&, WinogradForm, ProductMaker);

std::vector<WinogradForm> forms_of(const Convolution& c) {
  std::vector<WinogradForm> forms;
  for (const ElementType products : {ElementType::f32, ElementType::bf16})
    for (std::int64_t tile = 2; tile <= 4; ++tile)
      if (products == ElementType::f32 || c.x.type == products) forms.push_back({tile, products});
  return forms;
}

void compare(const char* name, const Convolution& c, const ImplementationList<Convolution>& list,
             Prepare prepare, ConvolutionPass pass) {
  std::vector<Contender> contenders;
  contenders.push_back(contender(c, list.prepare(c, "libxsmm")));
  const std::vector<WinogradForm> forms = forms_of(c);
  for (const WinogradForm& form : forms)
    contenders.push_back(contender(c, prepare(c, form, ProductMaker::libxsmm)));
  Buffer x(extent_of(c.x)), y(extent_of(c.y)), extra(c.y.channels);
  for (int round = 0; round < 15; ++round)
    for (Contender& each : contenders) {
      if (pass == ConvolutionPass::forward) time_once(each, {x.data(), each.weights.data()}, {y.data()});
      if (pass == ConvolutionPass::input_gradient)
        time_once(each, {y.data(), each.weights.data()}, {x.data()});
      if (pass == ConvolutionPass::weight_gradient)
        time_once(each, {x.data(), y.data()}, {each.weights.data()});
    }
  fmt::print("{:>4}x{:<3} {:>4}->{:<4} n{:<3} {:8}", c.x.height, c.x.width, c.x.channels, c.y.channels,
             c.x.batch, name);
  const double gflops = 2e-9 * multiply_adds(c) / contenders[0].seconds;
  fmt::print(" {:9.1f} us {:4.0f} GFLOP/s ", contenders[0].seconds * 1e6, gflops);
  for (std::size_t i = 1; i < contenders.size(); ++i)
    fmt::print(" {:9.1f} ({:4.2f}, {:4.2f})", contenders[i].seconds * 1e6,
               contenders[0].seconds / contenders[i].seconds,
               direct_cycles(c, pass) / winograd_cycles(c, pass, forms[i - 1]));
  const Prepared chosen = list.prepare(c);
  fmt::print("  {}\n", chosen ? (*chosen)->info().name.substr(0, 50) : "none");
}

void compare(const Layer& l, std::int64_t batch, ElementType type) {
  Convolution c;
  const std::int64_t side = l.side + 2 * l.pad - 2;
  c.x = dense_image(l.side, l.side, batch, l.in, type);
  c.y = dense_image(side, side, batch, l.out, type);
  c.window = {.height = 3, .width = 3, .pad_top = l.pad, .pad_left = l.pad};
  c.constant_weights = true;
  compare("forward", c, convolution_forward(), prepare_winograd_forward, ConvolutionPass::forward);
  compare("input", c, convolution_input_gradient(), prepare_winograd_input_gradient,
          ConvolutionPass::input_gradient);
  compare("weights", c, convolution_weight_gradient(), prepare_winograd_weight_gradient,
          ConvolutionPass::weight_gradient);
}

}  // namespace
}  // namespace superstep::bench

int main(int argc, char** argv) try {
  using namespace superstep;
  fmt::print(
      "direct, then tiles of 2, 3, 4 (how many times as fast as direct: measured, estimated), and the "
      "choice\n");
  ElementType type = ElementType::f32;
  std::vector<int> batches;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--bf16")
      type = ElementType::bf16;
    else
      batches.push_back(std::atoi(argv[i]));
  if (batches.empty()) batches.push_back(1);
  for (const int batch : batches)
    for (const bench::Layer& layer : bench::layers) bench::compare(layer, batch, type);
  return 0;
} catch (const superstep::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
