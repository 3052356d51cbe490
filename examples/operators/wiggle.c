/* y = x + sin^2(a x) / a, an activation for signals that repeat (L. Ziyin et al., NeurIPS 2020, "Neural
 * networks fail to learn periodic functions and how to fix it"), as an operator of one's own with its
 * gradient.
 *
 *   cc -O2 -shared -fPIC -I INCLUDE wiggle.c -lm -o wiggle.so
 */
#include <math.h>
#include <superstep/operator.h>

static int64_t count_of(const superstep_operand* x) {
  int64_t count = 1;
  for (int32_t i = 0; i < x->rank; ++i) count *= x->shape[i];
  return count;
}

static double frequency_of(superstep_operator_call* call) {
  const double a = call->number(call, "frequency", 1.0);
  if (!(a > 0)) call->fail(call, "the frequency must be above 0");
  return a;
}

/* As the first input: for the operator and for its gradient. */
static void infer(superstep_operator_call* call) {
  if (call->inputs[0].element != SUPERSTEP_F32) call->fail(call, "takes f32");
  frequency_of(call);
  call->outputs[0] = call->inputs[0];
}

static void evaluate(superstep_operator_call* call) {
  const double a = frequency_of(call);
  const float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  const int64_t count = count_of(&call->inputs[0]);
  for (int64_t i = 0; i < count; ++i) {
    const double s = sin(a * x[i]);
    y[i] = (float)(x[i] + s * s / a);
  }
}

/* Inputs: x, y, and the derivative by y. dy/dx = 1 + sin(2 a x). */
static void gradient(superstep_operator_call* call) {
  const double a = frequency_of(call);
  const float *x = call->inputs[0].data, *dy = call->inputs[2].data;
  float* dx = call->outputs[0].data;
  const int64_t count = count_of(&call->inputs[0]);
  for (int64_t i = 0; i < count; ++i) dx[i] = (float)(dy[i] * (1 + sin(2 * a * x[i])));
}

static const superstep_operator operators[] = {
    {.size = sizeof(superstep_operator),
     .domain = "com.example",
     .name = "Wiggle",
     .min_inputs = 1,
     .max_inputs = 1,
     .outputs = 1,
     .attributes = "frequency",
     .sample_by_sample = 1,
     .infer = infer,
     .evaluate = evaluate,
     .gradient = "WiggleGradient"},
    {.size = sizeof(superstep_operator),
     .domain = "com.example",
     .name = "WiggleGradient",
     .min_inputs = 3,
     .max_inputs = 3,
     .outputs = 1,
     .attributes = "frequency",
     .sample_by_sample = 1,
     .infer = infer,
     .evaluate = gradient},
};

const superstep_operator* superstep_operators(int abi, size_t* count) {
  *count = sizeof operators / sizeof operators[0];
  return abi == SUPERSTEP_OPERATOR_ABI ? operators : 0;
}
