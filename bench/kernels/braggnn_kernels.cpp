// Every kernel of a training step of BraggNN (11x11 patches) over one micro-batch: forward, loss gradient
// left out, backward. Prints share of the measured FMA peak.
//   bench_braggnn_kernels [micro-batch ...]
#include <fmt/format.h>

#include <cstdlib>

#include "bench/kernels/peak.h"
#include "bench/kernels/sequence.h"
#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/product/matmul.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "superstep/target/cpu/kernels/rows/softmax.h"

namespace superstep::bench {
namespace {

using namespace kernels;

constexpr std::int64_t positions = 81, score_stride = 96;
constexpr float slope = 0.01f;

class Bragg {
 public:
  Bragg(Sequence& sequence, std::int64_t batch, bool training) : s_(sequence), n_(batch) {
    forward();
    if (training) backward();
  }

 private:
  void* tensor(const std::string& name, std::int64_t a_sample) { return s_.tensor(name, a_sample * n_); }
  void* parameters(const std::string& name, const Convolution& c, WeightLayout layout) {
    return s_.tensor(name, static_cast<std::int64_t>(packed_elements(weight_transfer(c, layout))));
  }

  static Convolution layer(std::int64_t n, std::int64_t side, std::int64_t in, std::int64_t out,
                           std::int64_t window) {
    Convolution c;
    c.x = dense_image(side, side, n, in);
    c.y = dense_image(side - window + 1, side - window + 1, n, out);
    c.window.height = c.window.width = window;
    return c;
  }

  // y = epilogue(conv(x) + bias)
  void forward_layer(const std::string& name, Convolution c, void* x, void* y, bool activate,
                     void* residual = nullptr) {
    c.epilogue.bias();
    if (residual) c.epilogue.add();
    if (activate) c.epilogue.activate(Activation::leaky_relu, slope);
    Prepared kernel = convolution_forward().prepare(c);
    void* weights = kernel ? parameters("w " + name, c, (*kernel)->info().weights) : nullptr;
    std::vector<void*> inputs{x, weights, s_.tensor("b " + name, c.y.channels)};
    if (residual) inputs.push_back(residual);
    s_.add("forward", name, std::move(kernel), inputs, {y});
  }

  // dx, multiplied by the derivative of the activation that made x, plus another gradient of x
  void gradient_layer(const std::string& name, Convolution c, void* dy, void* dx, void* activated,
                      void* added = nullptr) {
    if (added) c.epilogue.add();
    if (activated) c.epilogue.activation_gradient(Activation::leaky_relu, slope);
    Prepared kernel = convolution_input_gradient().prepare(c);
    void* weights = kernel ? parameters("v " + name, c, (*kernel)->info().weights) : nullptr;
    std::vector<void*> inputs{dy, weights};
    if (added) inputs.push_back(added);
    if (activated) inputs.push_back(activated);
    s_.add("backward", name + " dx", std::move(kernel), inputs, {dx});
  }

  void weight_layer(const std::string& name, const Convolution& c, void* x, void* dy) {
    Prepared kernel = convolution_weight_gradient().prepare(c);
    void* dw = kernel ? parameters("dw " + name, c, (*kernel)->info().weights) : nullptr;
    s_.add("backward", name + " dw", std::move(kernel), {x, dy}, {dw});
  }

  // A product a sample of matrices [position][sample][channel] or scores [sample][position][position].
  MatrixStrides channels(std::int64_t stride) const { return {{stride, 0}, n_ * stride, 1}; }
  static MatrixStrides scores() { return {{positions * score_stride, 0}, score_stride, 1}; }
  static MatrixStrides transposed(MatrixStrides s) {
    std::swap(s.row, s.column);
    return s;
  }
  Matmul product(std::int64_t columns, std::int64_t inner, MatrixStrides a, MatrixStrides b,
                 MatrixStrides c) const {
    Matmul m;
    m.batch = {n_, 1};
    m.rows = positions, m.columns = columns, m.inner = inner;
    m.a = a, m.b = b, m.c = c;
    return m;
  }

  static float* at(void* base, std::int64_t offset) { return static_cast<float*>(base) + offset; }

  void forward();
  void backward();

  Sequence& s_;
  std::int64_t n_;
};

void Bragg::forward() {
  void *x0 = tensor("x0", 121), *a1 = tensor("a1", 81 * 64), *qkv = tensor("qkv", 81 * 96);
  void *p = tensor("p", positions * score_stride), *y = tensor("y", 81 * 32), *a2 = tensor("a2", 81 * 64);
  void *a3 = tensor("a3", 49 * 32), *a4 = tensor("a4", 25 * 8);
  forward_layer("conv1", layer(n_, 11, 1, 64, 3), x0, a1, false);
  forward_layer("theta phi g", layer(n_, 9, 64, 96, 1), a1, qkv, false);
  s_.add("forward", "scores",
         matmul().prepare(product(positions, 32, channels(96), transposed(channels(96)), scores())),
         {qkv, at(qkv, 32)}, {p});
  s_.add("forward", "softmax", prepare_softmax({n_ * positions, positions, score_stride, score_stride}), {p},
         {p});
  s_.add("forward", "attention",
         matmul().prepare(product(32, positions, scores(), channels(96), channels(32))), {p, at(qkv, 64)},
         {y});
  forward_layer("conv out", layer(n_, 9, 32, 64, 1), y, a2, true, a1);
  forward_layer("conv2", layer(n_, 9, 64, 32, 3), a2, a3, true);
  forward_layer("conv3", layer(n_, 7, 32, 8, 3), a3, a4, true);
  forward_layer("fc1", layer(n_, 5, 8, 16, 5), a4, tensor("f1", 16), true);
  static constexpr std::int64_t widths[] = {16, 8, 4, 2, 2};
  for (std::int64_t i = 1; i < 5; ++i)
    forward_layer(fmt::format("fc{}", i + 1), layer(n_, 1, widths[i - 1], widths[i], 1),
                  tensor(fmt::format("f{}", i), widths[i - 1]), tensor(fmt::format("f{}", i + 1), widths[i]),
                  i < 4);
}

void Bragg::backward() {
  void *x0 = tensor("x0", 121), *a1 = tensor("a1", 81 * 64), *qkv = tensor("qkv", 81 * 96);
  void *p = tensor("p", positions * score_stride), *y = tensor("y", 81 * 32), *a2 = tensor("a2", 81 * 64);
  void *a3 = tensor("a3", 49 * 32), *a4 = tensor("a4", 25 * 8);
  void *da4 = tensor("da4", 25 * 8), *da3 = tensor("da3", 49 * 32), *da2 = tensor("da2", 81 * 64);
  void *dy = tensor("dy", 81 * 32), *ds = tensor("ds", positions * score_stride);
  void *dqkv = tensor("dqkv", 81 * 96), *da1 = tensor("da1", 81 * 64);
  static constexpr std::int64_t widths[] = {16, 8, 4, 2, 2};
  for (std::int64_t i = 4; i >= 1; --i) {
    const Convolution c = layer(n_, 1, widths[i - 1], widths[i], 1);
    void *f = tensor(fmt::format("f{}", i), widths[i - 1]),
         *df = tensor(fmt::format("df{}", i + 1), widths[i]);
    weight_layer(fmt::format("fc{}", i + 1), c, f, df);
    gradient_layer(fmt::format("fc{}", i + 1), c, df, tensor(fmt::format("df{}", i), widths[i - 1]), f);
  }
  void* df1 = tensor("df1", 16);
  weight_layer("fc1", layer(n_, 5, 8, 16, 5), a4, df1);
  gradient_layer("fc1", layer(n_, 5, 8, 16, 5), df1, da4, a4);
  weight_layer("conv3", layer(n_, 7, 32, 8, 3), a3, da4);
  gradient_layer("conv3", layer(n_, 7, 32, 8, 3), da4, da3, a3);
  weight_layer("conv2", layer(n_, 9, 64, 32, 3), a2, da3);
  gradient_layer("conv2", layer(n_, 9, 64, 32, 3), da3, da2, a2);
  weight_layer("conv out", layer(n_, 9, 32, 64, 1), y, da2);
  gradient_layer("conv out", layer(n_, 9, 32, 64, 1), da2, dy, nullptr);
  s_.add("backward", "dp",
         matmul().prepare(product(positions, 32, channels(32), transposed(channels(96)), scores())),
         {dy, at(qkv, 64)}, {ds});
  s_.add("backward", "dg",
         matmul().prepare(product(32, positions, transposed(scores()), channels(32), channels(96))), {p, dy},
         {at(dqkv, 64)});
  s_.add("backward", "softmax gradient",
         prepare_softmax_gradient({n_ * positions, positions, score_stride, score_stride, score_stride}),
         {p, ds}, {ds});
  s_.add("backward", "dtheta", matmul().prepare(product(32, positions, scores(), channels(96), channels(96))),
         {ds, at(qkv, 32)}, {dqkv});
  s_.add("backward", "dphi",
         matmul().prepare(product(32, positions, transposed(scores()), channels(96), channels(96))),
         {ds, qkv}, {at(dqkv, 32)});
  weight_layer("theta phi g", layer(n_, 9, 64, 96, 1), a1, dqkv);
  gradient_layer("theta phi g", layer(n_, 9, 64, 96, 1), dqkv, da1, nullptr, da2);
  weight_layer("conv1", layer(n_, 11, 1, 64, 3), x0, da1);
}

void measure(std::int64_t batch) {
  for (const bool training : {false, true}) {
    Sequence sequence;
    const Bragg plan(sequence, batch, training);
    const double peak = measure_fma_peak();
    fmt::print("\nBraggNN {}, micro-batch {}, peak {:.1f} GFLOP/s\n",
               training ? "training step" : "inference", batch, peak / 1e9);
    print_table(sequence, batch, peak);
  }
}

}  // namespace
}  // namespace superstep::bench

int main(int argc, char** argv) try {
  for (int i = 1; i < argc; ++i) superstep::bench::measure(std::atoi(argv[i]));
  if (argc == 1)
    for (std::int64_t batch : {1, 8, 16, 32}) superstep::bench::measure(batch);
  return 0;
} catch (const superstep::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
