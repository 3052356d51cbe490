// What follows a product or a convolution while its result is still in the first-level cache.
//
// An epilogue is a short ordered list of steps applied to each element of the result, v. Steps that read a
// tensor take the next input slot after the kernel's own, in the order of the list; steps that write one
// take the next output slot. An empty list leaves the result as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

enum class Activation : std::uint8_t {
  identity,
  relu,        // max(v, 0)
  leaky_relu,  // v < 0 ? alpha * v : v
  sigmoid,     // 1 / (1 + exp(-v))
  tanh,
  gelu_erf,      // v * (1 + erf(v / sqrt 2)) / 2
  gelu_tanh,     // v * (1 + tanh(sqrt(2/pi) * (v + 0.044715 v^3))) / 2
  silu,          // v * sigmoid(v), also called swish
  hard_sigmoid,  // min(max(alpha * v + beta, 0), 1); ONNX defaults alpha = 1/5, beta = 1/2
  hard_swish,    // v * min(max(v / 6 + 1/2, 0), 1)
  clip,          // min(max(v, alpha), beta)
  elu,           // v < 0 ? alpha * (exp(v) - 1) : v
  softplus,      // log(1 + exp(v))
};

const char* name_of(Activation activation);

// Whether the derivative can be had from the activation's output y alone (relu, leaky relu with alpha > 0,
// sigmoid, tanh, hard sigmoid, clip, elu with alpha > 0), so that the input need not be kept.
// At a kink the derivative is that of the side on which ONNX Runtime and PyTorch take it: 0 for relu at 0,
// alpha for leaky relu at 0, 0 at and beyond the bounds of clip and hard sigmoid when computed from y.
bool gradient_from_output(Activation activation, float alpha);

enum class EpilogueOp : std::uint8_t {
  bias,                 // v += b[c]; b: `channels` f32 values
  scale_channels,       // v *= s[c]; s: `channels` f32 values
  scale,                // v *= alpha
  add,                  // v += t(h, w, n, c)
  subtract,             // v -= t(h, w, n, c)
  multiply,             // v *= t(h, w, n, c)
  activate,             // v = activation(v)
  activation_gradient,  // v *= activation'(...), t: the saved output where gradient_from_output() says so
                        // (and `from_output` is left true), else the saved input of the activation
  round_half,           // v = v rounded to f16
  save,                 // writes v to an output tensor as it is now (for instance the input of a GELU)
};

struct EpilogueStep {
  EpilogueOp op = EpilogueOp::bias;
  Activation activation = Activation::identity;
  float alpha = 0, beta = 0;  // of the activation, or the factor of `scale`
  bool from_output = true;    // of activation_gradient: false forces the derivative from the saved input
  // The tensor of add, subtract, multiply, activation_gradient and save: same extents as the result, own
  // strides and type (f32 or bf16; u8 for multiply: a mask of 0 and 1; u8 for add: (byte - beta) * alpha).
  // Zero strides stand for the result's own.
  ElementType type = ElementType::f32;
  std::int64_t column_stride = 0, row_stride = 0;

  bool reads_input() const;   // takes an input slot
  bool reads_tensor() const;  // one as large as the result
};

struct Epilogue {
  std::vector<EpilogueStep> steps;

  // Builders of the usual lists: Epilogue{}.bias().activate(Activation::relu).
  Epilogue& bias();
  Epilogue& scale(float factor);
  Epilogue& scale_channels();
  Epilogue& add(ElementType type = ElementType::f32);
  Epilogue& add_bytes(float scale, float zero_point);
  Epilogue& subtract(ElementType type = ElementType::f32);
  Epilogue& multiply(ElementType type = ElementType::f32);
  Epilogue& activate(Activation activation, float alpha = 0, float beta = 0);
  Epilogue& activation_gradient(Activation activation, float alpha = 0, float beta = 0,
                                ElementType type = ElementType::f32);
  Epilogue& round_half();
  Epilogue& save(ElementType type = ElementType::f32);

  std::size_t inputs() const;   // input slots the steps take
  std::size_t outputs() const;  // output slots they take
};

std::string to_string(const Epilogue& epilogue);  // "bias, leaky relu 0.01"; "" when empty

}  // namespace superstep::kernels
