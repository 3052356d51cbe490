// The code that a program has on every tile, in bytes: the same numbers as the executed programs'
// (bsp/compile/device.cpp, which this room does not see; tests/target/test_ipu_cycles.cpp holds them
// together).
#pragma once

namespace superstep::machine::ipu {

// Stacks of a supervisor and six workers, as a memory report in the documentation of the vendor's port of
// TensorFlow has them.
constexpr double stack_bytes = 3168;
constexpr double vertex_code_bytes = 512;  // of a kind of vertex. A guess: 128 to 4096
constexpr double vertex_state_bytes =
    32;  // of a vertex: pointers and sizes of a few fields. No source: chosen
constexpr double control_code_bytes = 32;  // of a superstep. A guess: a few supervisor instructions
// Of a piece that is received or sent: a change of the source and one of the pointer, or a send and its
// delay, in words of 4 bytes, as PopLibs counts exchange instructions (sdk-release-2.6, MIT licence).
constexpr double exchange_code_bytes = 8;

}  // namespace superstep::machine::ipu
