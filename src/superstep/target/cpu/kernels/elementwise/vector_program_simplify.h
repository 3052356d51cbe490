// The same VectorProgram in fewer instructions. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"

namespace superstep::kernels {

// Recognises x * sigmoid(x), its derivative and that of hard swish as graphs write them, joins a product and
// the sum that alone reads it into one fma, and leaves out what nobody reads. All inputs stay, and the
// outputs with their order. Differs from the program by rounding, and by NaN where a cotangent that is not
// finite meets a slope of 0. The program must be free of faults.
VectorProgram simplified(const VectorProgram& program);

}  // namespace superstep::kernels
