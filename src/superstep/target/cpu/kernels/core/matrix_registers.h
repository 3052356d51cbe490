// Whether there are matrix registers (Intel AMX). Internal to the kernels.
#pragma once

namespace superstep::kernels {

// Whether processor and system let this process use them for products of bf16 and of bytes; the system is
// asked once.
bool has_matrix_registers();

}  // namespace superstep::kernels
