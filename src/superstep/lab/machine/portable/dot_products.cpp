#include "superstep/lab/machine/peak_kernels.h"

namespace superstep::lab {

double run_bf16_dot(std::int64_t, float&) { return 0; }
double run_int8_dot(std::int64_t, float&) { return 0; }

}  // namespace superstep::lab
