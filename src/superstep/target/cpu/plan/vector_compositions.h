// Element-wise operators that are several instructions of a vector program.
#pragma once

#include <optional>
#include <span>

#include "superstep/graph/graph.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"

namespace superstep::target::cpu {

using ComposedValue = kernels::VectorProgram::Value;
// Writes the operator over the values of its inputs; its attributes are those of the node.
using Compose = ComposedValue (*)(kernels::VectorProgram& program, std::span<const ComposedValue> inputs,
                                  const graph::Attributes& attributes);

ComposedValue compose_xor(kernels::VectorProgram&, std::span<const ComposedValue>, const graph::Attributes&);
ComposedValue compose_is_nan(kernels::VectorProgram&, std::span<const ComposedValue>,
                             const graph::Attributes&);
ComposedValue compose_is_inf(kernels::VectorProgram&, std::span<const ComposedValue>,
                             const graph::Attributes&);
ComposedValue compose_mean(kernels::VectorProgram&, std::span<const ComposedValue>, const graph::Attributes&);
ComposedValue compose_mod(kernels::VectorProgram&, std::span<const ComposedValue>, const graph::Attributes&);
ComposedValue compose_softsign(kernels::VectorProgram&, std::span<const ComposedValue>,
                               const graph::Attributes&);
ComposedValue compose_selu(kernels::VectorProgram&, std::span<const ComposedValue>, const graph::Attributes&);
ComposedValue compose_celu(kernels::VectorProgram&, std::span<const ComposedValue>, const graph::Attributes&);
ComposedValue compose_mish(kernels::VectorProgram&, std::span<const ComposedValue>, const graph::Attributes&);
ComposedValue compose_swish(kernels::VectorProgram&, std::span<const ComposedValue>,
                            const graph::Attributes&);
ComposedValue compose_swiglu(kernels::VectorProgram&, std::span<const ComposedValue>,
                             const graph::Attributes&);
ComposedValue compose_thresholded(kernels::VectorProgram&, std::span<const ComposedValue>,
                                  const graph::Attributes&);
ComposedValue compose_shrink(kernels::VectorProgram&, std::span<const ComposedValue>,
                             const graph::Attributes&);
ComposedValue compose_prelu(kernels::VectorProgram&, std::span<const ComposedValue>,
                            const graph::Attributes&);

// x to a constant power by products, roots and a division: multiples of a quarter up to 4, of either sign.
// Nothing where that cannot be.
std::optional<ComposedValue> constant_power(kernels::VectorProgram& program, ComposedValue x,
                                            double exponent);

}  // namespace superstep::target::cpu
