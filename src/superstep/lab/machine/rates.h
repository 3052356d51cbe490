// Peak rates of this machine: operations and bytes a second, of any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace superstep::lab {

// Does some work `repeats` times and returns how much that was (operations, bytes).
using Work = std::function<double(std::int64_t repeats)>;
using MakeWork = std::function<Work()>;

// Amount a second of all threads together, a trial of about five milliseconds each: short enough to fit
// between interruptions by others, so that the best of them is a peak. Threads are pinned, each calls `make`
// for itself so that its memory is near, and in every trial all start at once. There are never more of them
// than processors: threads that take turns would each be timed alone, and their sum be a multiple of the
// truth.
std::vector<double> measure_rates(int threads, const MakeWork& make, int trials = 12);
int measuring_threads(int wanted);  // how many that are
double best(const std::vector<double>& rates);

Work f32_fma_work();
Work bf16_dot_work();            // empty where the processor has no such instruction
Work int8_dot_work();            // likewise
Work dependent_addition_work();  // a cycle each: the clock

enum class Access { read, write, copy, triad };
const char* name_of(Access access);

// Passes over a buffer of about `bytes` bytes in all; returns bytes moved, reads and writes counted once.
Work memory_work(std::size_t bytes, Access access);

// While one lives, buffers that a work lets go of serve the next work of their size and processor: to make
// the pages of a buffer for memory takes longer than to measure with it.
class KeptBuffers {
 public:
  KeptBuffers();
  ~KeptBuffers();
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;
};

// The peak of products in a precision (f32, bf16, int8), FLOP/s; 0 where nothing of the kind is there.
double peak_flops(int threads, const std::string& precision);

// A level of the memory and the bytes of a buffer that lies in it, a thread of those that measure.
struct MemoryLevel {
  std::string name;  // "L1", "L2", "L3", "memory"
  std::size_t bytes;
};
std::vector<MemoryLevel> memory_levels(int threads);

}  // namespace superstep::lab
