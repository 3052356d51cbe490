// The convolutions and dense layers of several models, each shape timed alone: forward, gradient by the
// input, gradient by the weights, as a share of the f32 multiply-add peak measured in the same process.
//   bench_network_kernels MODEL [f32|bf16] [micro-batch ...]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "bench/kernels/peak.h"
#include "bench/kernels/sequence.h"
#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/product/weights.h"

namespace superstep::bench {
namespace {

using namespace kernels;

struct Layer {
  std::int64_t side, in, out, window = 1, stride = 1, pad = 0, groups = 1;
  int times = 1;
  bool first = false;  // no gradient by the input
};

const std::map<std::string, std::vector<Layer>> models = {
    {"cifar10-cnn",
     {{32, 3, 32, 3, 1, 1, 1, 1, true},
      {32, 32, 32, 3},
      {15, 32, 64, 3, 1, 1},
      {15, 64, 32, 3},
      {6, 32, 512, 6},
      {1, 512, 10}}},
    {"mlp", {{1, 16, 64, 1, 1, 0, 1, 1, true}, {1, 64, 64, 1, 1, 0, 1, 2}, {1, 64, 1}}},
    {"ptychonn",
     {{64, 1, 32, 3, 1, 1, 1, 1, true},
      {64, 32, 32, 3, 1, 1},
      {32, 32, 64, 3, 1, 1},
      {32, 64, 64, 3, 1, 1},
      {16, 64, 128, 3, 1, 1},
      {16, 128, 128, 3, 1, 1},
      {8, 128, 128, 3, 1, 1, 1, 4},
      {16, 128, 64, 3, 1, 1, 1, 2},
      {16, 64, 64, 3, 1, 1, 1, 2},
      {32, 64, 64, 3, 1, 1, 1, 4},
      {64, 64, 1, 3, 1, 1, 1, 2}}},
    {"unet-16",
     {{64, 1, 16, 3, 1, 1, 1, 1, true},
      {64, 16, 16, 3, 1, 1, 1, 2},
      {32, 16, 32, 3, 1, 1},
      {32, 32, 32, 3, 1, 1, 1, 2},
      {16, 32, 64, 3, 1, 1},
      {16, 64, 64, 3, 1, 1, 1, 2},
      {8, 64, 128, 3, 1, 1},
      {8, 128, 128, 3, 1, 1},
      {16, 128, 64, 3, 1, 1},
      {32, 64, 32, 3, 1, 1},
      {64, 32, 16, 3, 1, 1},
      {64, 16, 1}}},
    {"resnet50",
     {{224, 3, 64, 7, 2, 3, 1, 1, true},
      {56, 64, 64},
      {56, 64, 64, 3, 1, 1, 1, 3},
      {56, 64, 256, 1, 1, 0, 1, 4},
      {56, 256, 64, 1, 1, 0, 1, 2},
      {56, 256, 128},
      {56, 128, 128, 3, 2, 1},
      {28, 128, 512, 1, 1, 0, 1, 4},
      {56, 256, 512, 1, 2},
      {28, 512, 128, 1, 1, 0, 1, 3},
      {28, 128, 128, 3, 1, 1, 1, 3},
      {28, 512, 256},
      {28, 256, 256, 3, 2, 1},
      {14, 256, 1024, 1, 1, 0, 1, 6},
      {28, 512, 1024, 1, 2},
      {14, 1024, 256, 1, 1, 0, 1, 5},
      {14, 256, 256, 3, 1, 1, 1, 5},
      {14, 1024, 512},
      {14, 512, 512, 3, 2, 1},
      {7, 512, 2048, 1, 1, 0, 1, 3},
      {14, 1024, 2048, 1, 2},
      {7, 2048, 512, 1, 1, 0, 1, 2},
      {7, 512, 512, 3, 1, 1, 1, 2},
      {1, 2048, 1000}}},
    {"mobilenet-depthwise",
     {{56, 24, 24, 3, 2, 1, 24},
      {28, 88, 88, 3, 1, 1, 88},
      {28, 96, 96, 5, 2, 2, 96},
      {14, 240, 240, 5, 1, 2, 240},
      {7, 576, 576, 5, 1, 2, 576}}},
    {"bert-256", {{1, 256, 256, 1, 1, 0, 1, 4}, {1, 256, 1024}, {1, 1024, 256}}},
};

Convolution describe(const Layer& l, std::int64_t batch, ElementType type) {
  Convolution c;
  const std::int64_t side = (l.side + 2 * l.pad - l.window) / l.stride + 1;
  c.x = dense_image(l.side, l.side, batch, l.in, type);
  c.y = dense_image(side, side, batch, l.out, type);
  c.window = {.height = l.window,
              .width = l.window,
              .stride_h = l.stride,
              .stride_w = l.stride,
              .pad_top = l.pad,
              .pad_left = l.pad};
  c.groups = l.groups;
  return c;
}

std::string name_of(const Layer& l) {
  return fmt::format("{}x{} {}->{} k{}{}{}", l.side, l.side, l.in, l.out, l.window,
                     l.stride > 1 ? fmt::format(" s{}", l.stride) : "",
                     l.times > 1 ? fmt::format(" x{}", l.times) : "");
}

// Values that are small in both types, so that nothing overflows or turns into subnormal numbers.
void* tensor(Sequence& s, const std::string& name, std::int64_t elements, ElementType type) {
  void* data = s.tensor(name, elements);
  if (type == ElementType::bf16)
    for (std::int64_t i = 0; i < elements; ++i)
      static_cast<bf16*>(data)[i] = bf16(0.01f * static_cast<float>(i % 17 - 8));
  return data;
}

void add_layer(Sequence& s, const Layer& l, std::int64_t batch, ElementType type) {
  Convolution c = describe(l, batch, type);
  const std::string name = name_of(l);
  void *x = tensor(s, "x" + name, extent_of(c.x), type), *y = tensor(s, "y" + name, extent_of(c.y), type);
  void* bias = s.tensor("b" + name, l.out);
  const auto weights = [&](const Prepared& kernel, const char* prefix) {
    if (!kernel) return static_cast<void*>(nullptr);
    const auto layout = (*kernel)->info().weights;
    return tensor(s, prefix + name,
                  static_cast<std::int64_t>(
                      packed_elements(weight_transfer(c, layout, WeightOrder::out_in_taps, type))),
                  type);
  };
  c.epilogue.bias().activate(Activation::relu);
  Prepared forward = convolution_forward().prepare(c);
  void* w = weights(forward, "w");
  s.add("forward", name, std::move(forward), {x, w, bias}, {y}, l.times);
  if (!l.first) {
    c.epilogue = Epilogue().activation_gradient(Activation::relu, 0, 0, type);
    Prepared gradient = convolution_input_gradient().prepare(c);
    void* v = weights(gradient, "v");
    s.add("input", name, std::move(gradient), {y, v, x}, {tensor(s, "dx" + name, extent_of(c.x), type)},
          l.times);
  }
  c.epilogue = Epilogue();
  Prepared update = convolution_weight_gradient().prepare(c);
  void* dw = update ? s.tensor("dw" + name, static_cast<std::int64_t>(packed_elements(
                                                weight_transfer(c, (*update)->info().weights))))
                    : nullptr;
  s.add("weights", name, std::move(update), {x, y}, {dw}, l.times);
}

int measure(const std::string& model, ElementType type, std::int64_t batch) {
  const auto found = models.find(model);
  if (found == models.end()) {
    fmt::print(stderr, "there is no model {}\n", model);
    return 2;
  }
  Sequence sequence;
  for (const Layer& layer : found->second) add_layer(sequence, layer, batch, type);
  const double peak = measure_fma_peak();
  fmt::print("\n{} {}, micro-batch {}, f32 peak {:.1f} GFLOP/s\n", model, superstep::name_of(type), batch,
             peak / 1e9);
  print_table(sequence, batch, peak, false);
  return 0;
}

}  // namespace
}  // namespace superstep::bench

int main(int argc, char** argv) try {
  using namespace superstep;
  if (argc < 2) {
    fmt::print(stderr, "bench_network_kernels MODEL [f32|bf16] [micro-batch ...]\n");
    return 2;
  }
  ElementType type = ElementType::f32;
  int next = 2;
  if (next < argc && (std::strcmp(argv[next], "bf16") == 0 || std::strcmp(argv[next], "f32") == 0))
    type = *element_type_from_name(argv[next++]);
  if (next == argc) return bench::measure(argv[1], type, 1);
  int status = 0;
  for (; next < argc; ++next) status = std::max(status, bench::measure(argv[1], type, std::atoi(argv[next])));
  return status;
} catch (const superstep::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
