// One arena for all activations: blocks of memory with lifetimes, packed so that blocks that live at the
// same time do not overlap.
#pragma once

#include <cstddef>
#include <vector>

namespace superstep::target::cpu {

struct Block {
  std::size_t bytes = 0;
  int first = 0, last = 0;  // steps of the plan at which it is alive, both included
  std::size_t offset = 0;   // result
};

inline constexpr std::size_t arena_alignment = 64;

// Places the blocks (largest first, each at the lowest offset where its lifetime is free: the greedy that
// comes closest to the lower bound on real networks) and returns the arena's size. Offsets are multiples
// of arena_alignment.
std::size_t pack(std::vector<Block>& blocks);

// The bytes alive at the fullest step: no packing can be smaller.
std::size_t lower_bound(const std::vector<Block>& blocks);

}  // namespace superstep::target::cpu
