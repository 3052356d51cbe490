// Whether products of bf16 pairs are worth their instruction on this processor.
#pragma once

namespace superstep {

// Whether there is an instruction that adds the products of two pairs of bf16 to an f32, in vectors of 16
// sums (AVX-512 BF16).
bool has_pair_products();

// Whether that multiplies numbers faster than f32's does. Some processors take as long for a vector of pairs
// as for a multiply-add of f32, twice the rate, and some four times as long, half of it: both are measured
// once a process, in a tenth of a millisecond.
bool pair_products_are_fast();

// Whether it begins two of them in a cycle, or one, as processors do that take vectors of 512 bits in halves:
// what is loaded, converted and stored beside products takes half the share of their time then. Measured like
// that, beside a chain of products of integers, three cycles each on all that have this instruction. False
// without it.
bool begins_two_pair_products();

}  // namespace superstep
