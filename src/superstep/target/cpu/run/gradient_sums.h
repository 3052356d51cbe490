// Sums over the micro-batches of a run: what every group of micro-batches adds up, and how the groups meet.
//
// The groups are two halves. Each half is added up in order, then the halves: so the bits do not depend on
// the number of threads. A group that is complete joins the sum of its half at once where all before it are
// in, while it lies in the cache of the thread that made it, and its memory serves the next group; one that
// is ahead of a slower neighbour waits for finish(). A thread that works on a half of its own needs two
// buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "superstep/target/cpu/kernels/rows/column_sum.h"
#include "superstep/target/cpu/plan/plan.h"
#include "superstep/target/cpu/run/memory.h"

namespace superstep::target::cpu {

class GradientSums {
 public:
  // Of `groups` groups, at least 1, of which at most `buffers` lie in memory at once. `shared`: where the
  // total is wanted, which others read in the middle of a run: then nothing is added up before finish() asks
  // for it. `plan` must outlive this.
  GradientSums(const Plan& plan, std::size_t groups, std::size_t buffers,
               std::optional<std::span<float>> shared = std::nullopt);

  void begin_run();
  // Memory for a group; what is added to is zero. By any thread, each group once a run.
  std::byte* begin(std::size_t group);
  // By the thread that summed the group.
  void complete(std::size_t group);
  // The total of some values, times `scale`. Every group has completed them; each value once a run.
  void finish(ValueRange range, float scale);

  std::byte* total() const { return buffers_[0].data(); }
  void release();

 private:
  struct Half {
    std::size_t begin = 0, end = 0;      // groups
    std::atomic<std::size_t> summed{0};  // groups before this one are in the sum
  };
  Half& half_of(std::size_t group) { return halves_[group < halves_[0].end ? 0 : 1]; }
  float* values(std::size_t group) { return reinterpret_cast<float*>(buffers_[buffer_of_[group]].data()); }
  // Adds some values of a group to another's.
  void add(std::size_t group, std::size_t to, ValueRange range);

  const Plan& plan_;
  bool at_once_;
  kernels::ColumnSum* add_;
  std::array<Half, 2> halves_;  // the second is empty where there is one group
  std::vector<Memory> buffers_;
  std::vector<std::size_t> buffer_of_;  // by group; the first group's is the first
  std::mutex free_mutex_;
  std::vector<std::size_t> free_;  // the one that was used last is taken first
};

}  // namespace superstep::target::cpu
