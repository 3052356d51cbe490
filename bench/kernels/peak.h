// What the processor can do at most, measured in the same process as what is compared with it.
#pragma once

namespace superstep::bench {

// f32 multiply-adds of one core with the widest vectors, FLOP/s: the best of several short runs of twelve
// independent chains in registers.
double measure_fma_peak();

// Seconds of one call of `body`, the best of `repeats` batches of at least `batch_seconds`.
template <class Body>
double best_seconds(const Body& body, int repeats = 9, double batch_seconds = 2e-3);

double now();

}  // namespace superstep::bench

#include <algorithm>

template <class Body>
double superstep::bench::best_seconds(const Body& body, int repeats, double batch_seconds) {
  long calls = 1;
  double best = 1e30;
  for (int r = 0; r < repeats;) {
    const double start = now();
    for (long i = 0; i < calls; ++i) body();
    const double elapsed = now() - start;
    if (elapsed < batch_seconds / 2) {
      calls *= elapsed < batch_seconds / 20 ? 10 : 2;
      continue;
    }
    best = std::min(best, elapsed / static_cast<double>(calls));
    ++r;
  }
  return best;
}
