// How many samples go through a model at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace superstep::target::cpu {

// What a plan computes and touches.
struct Footprint {
  double flops_a_sample = 0;       // of f32, or what takes as long in a type that is multiplied faster
  std::size_t bytes_a_sample = 0;  // of activations that live at once
  // That each micro-batch reads, as packed for the kernels, and of the sums of gradients that it reads and
  // writes: bytes that move.
  std::size_t weight_traffic = 0;
  std::size_t weight_bytes = 0;  // that the cache would have to hold for none to move
  bool trains = false;
};

// The divisor of the batch that leaves every thread something to do (of a training step eight threads: more
// of them divide its steps) and takes the least time, by this count: operations, and bytes between the
// second-level cache and what lies behind it, one of which costs as much as eight operations of a wide vector
// unit. Of activations what does not fit into twice that cache (not all that lives at once is touched at
// once) moves: written and read, and read again by a backward pass. Weights that do not fit move once a
// micro-batch. Of choices within 3 % the smallest: it takes the least memory.
//
// Where the weights fit, that is the micro-batch whose activations stay near the cache's size.
std::int64_t choose_micro_batch(std::int64_t batch, int threads, const Footprint& footprint);

// The micro-batch of a model whose micro-batches run in step (executable_in_step.cpp); the batch itself where
// its steps had better be divided. `few_weights`: their gradients are summed in groups whose number does not
// depend on the threads, and neither does this choice; else every micro-batch has sums of its own, and there
// is one a thread, eight at most.
std::int64_t choose_in_step(std::int64_t batch, int threads, bool few_weights);

// The largest divisor of `batch` that is at most `limit`.
std::int64_t largest_divisor(std::int64_t batch, std::int64_t limit);

}  // namespace superstep::target::cpu
