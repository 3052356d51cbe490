// Whether there are matrix registers (Intel AMX).
#pragma once

namespace superstep {

// Whether processor and system let this process use them for products of bf16 and of bytes; the system is
// asked once.
bool has_matrix_registers();

}  // namespace superstep
