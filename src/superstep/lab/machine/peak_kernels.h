// Loops that do one thing as fast as a core of this machine can: what its peak rates are measured with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace superstep::lab {

// Runs `rounds` rounds of independent fused multiply-adds of f32 vectors in registers; returns the number
// of operations (2 a multiply-add). `Sink` keeps the compiler from dropping the work.
double run_f32_fma(std::int64_t rounds, float& sink);

// The same with dot products of bf16 pairs accumulated in f32 (AVX512_BF16). 0 where there are none.
double run_bf16_dot(std::int64_t rounds, float& sink);

// The same with dot products of groups of four bytes accumulated in i32 (AVX512_VNNI). 0 where there are
// none.
double run_int8_dot(std::int64_t rounds, float& sink);

// One pass over `bytes` bytes (a multiple of 1024); returns the bytes moved, reads and writes counted once
// each.
double read_pass(const std::byte* data, std::size_t bytes, float& sink);
double write_pass(std::byte* data, std::size_t bytes);
double copy_pass(const std::byte* from, std::byte* to, std::size_t bytes);
// to = b + factor x c in f32: McCalpin's STREAM triad; three times `bytes` are moved.
double triad_pass(const std::byte* b, const std::byte* c, std::byte* to, std::size_t bytes);

std::string vector_target();  // the instruction set that was chosen: "AVX3_DL"
int f32_lanes();

}  // namespace superstep::lab
