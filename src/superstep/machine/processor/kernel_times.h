// What the engine's kernels take on a processor: times of steps of plans that were measured there, and the
// time of another step by those nearest to it.
//
// A kernel's description names it and how it is blocked ("convolution, libxsmm, tiles of 64 x 60 + bias").
// Steps whose descriptions differ in numbers alone are a family; the numbers, with the operations and the
// bytes, say how near two of them are. What is carried over is how much longer a step took than its
// arithmetic and bytes at the machine's peaks.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace superstep::machine {

// A step of a plan: what a time depends on, and the time.
struct KernelTime {
  std::string kernel;  // element type and description: "f32 softmax, 648 rows of 81"
  double flops = 0, bytes = 0;
  double working_set = 0;  // bytes of the plan around it, a thread's: what the caches would have to hold
  int sharing = 1;         // threads that share it
  int busy = 1;            // threads that work at the same time
  double seconds = 0;
};

// What `superstep machine measure` found; machine files have it under [kernels].
struct ProcessorTimes {
  std::string instructions;  // of the kernels: "avx2"
  int threads = 1;           // the most that was measured with
  double step_overhead = 0;  // s, of a step of a plan beside its kernel
  double uncertainty = 0;    // of the logarithm of a plan's time, 80 %: every plan by the steps of all others
  std::vector<KernelTime> times;
};

// Peaks that times are held against, of one thread.
struct ThreadPeaks {
  double flops = 1, bytes = 1;  // a second; bytes from the last cache
  double memory_bytes =
      0;             // a second, where a plan's working set is larger than that cache; 0: as from the cache
  double cache = 0;  // bytes that the last cache holds for a thread
};

class KernelTimes {
 public:
  KernelTimes(std::vector<KernelTime> times, ThreadPeaks peaks);

  struct Estimate {
    double seconds = 0;
    bool known = false;  // there are times of its own family
  };
  // `kernel` without its seconds. Times of the group `left_out` (below) do not count.
  Estimate estimate(const KernelTime& kernel, int left_out = none) const;

  // A number for each of the times, which have none at first.
  static constexpr int none = -1;
  void set_groups(std::vector<int> groups);

 private:
  struct Point {
    std::vector<double> numbers;  // logarithms of those in the description
    double flops = 0, bytes = 0, working_set = 0;
    std::vector<std::string> added, functions;  // what is added on the way; of it what takes long by itself
    bool from_memory = false;
    int sharing = 1, busy = 1, group = none;
    double excess = 0;  // logarithm of its seconds over those at the peaks
  };
  Point point_of(const KernelTime& kernel) const;
  bool from_memory(const KernelTime& kernel) const;
  double least_seconds(const KernelTime& kernel) const;

  ThreadPeaks peaks_;
  std::map<std::string, std::vector<std::size_t>> families_, kinds_;  // places in points_
  std::vector<Point> points_;
};

// "f32 convolution, libxsmm, tiles of # x #": the description without numbers and without what is added to
// it.
std::string family_of(const std::string& kernel);

}  // namespace superstep::machine
