// Activation functions, element by element on floating-point types.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var relu(Var x);  // any numeric type; the derivative at 0 is 0
Var leaky_relu(Var x, double alpha = 0.01);
Var sigmoid(Var x);
Var tanh(Var x);
Var softplus(Var x);  // log(1 + e^x)
Var softsign(Var x);  // x / (1 + |x|)
Var elu(Var x, double alpha = 1.0);
Var selu(Var x, double alpha = 1.67326319217681884765625, double gamma = 1.05070102214813232421875);
Var celu(Var x, double alpha = 1.0);
Var hard_sigmoid(Var x, double alpha = 0.2, double beta = 0.5);  // max(0, min(1, alpha x + beta))
Var hard_swish(Var x);                                           // x max(0, min(1, x/6 + 1/2))
// x Phi(x) with the normal distribution's Phi; `tanh_approximation` takes
// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Var gelu(Var x, bool tanh_approximation = false);
Var mish(Var x);                       // x tanh(softplus(x))
Var swish(Var x, double alpha = 1.0);  // x sigmoid(alpha x)
Var thresholded_relu(Var x, double alpha = 1.0);
Var shrink(Var x, double bias = 0.0, double lambd = 0.5);
Var prelu(Var x, Var slope);  // slope broadcasts to x
// Limits x to [low, high]; an invalid Var is no limit. Any numeric type.
Var clip(Var x, Var low, Var high);
Var clip(Var x, double low, double high);

Var swiglu(Var a, Var b, double alpha = 1.0);  // swish(a, alpha) * b, of one shape

std::span<const Definition> activation_operators();
std::span<const Definition> clip_operators();              // Clip, PRelu
std::span<const Definition> gated_activation_operators();  // SwiGLU

}  // namespace superstep::op
