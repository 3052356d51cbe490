// All-reduce between ranks of one host, of values that lie in memory of their own: through small buffers in
// shared memory that stay in the caches, so that main memory is read once and written once.
#pragma once

#include <span>

#include "superstep/run/ranks/shared/segments.h"

namespace superstep::run {

class StagedSum {
 public:
  static std::unique_ptr<StagedSum> open(const Meeting& meeting);  // collective; null: see SharedSegments

  // Each element becomes the sum over ranks, in the order of ranks. Collective, the same length on all.
  void sum(std::span<float> values);
  // Returns when every rank has called it.
  void meet() { sum_small({}); }

 private:
  struct Segment;
  explicit StagedSum(std::unique_ptr<SharedSegments> memory);
  Segment& segment(std::size_t rank) const;
  void sum_small(std::span<float> values);
  // A chunk's way: each rank lays out the pieces that others add up, adds up its own, and fetches theirs.
  void lay_out(std::span<float> chunk, std::uint64_t number);
  void add_up(std::span<float> chunk, std::uint64_t number);
  void fetch(std::span<float> chunk, std::uint64_t number);
  std::size_t piece_begin(std::size_t count, std::size_t rank) const;

  std::unique_ptr<SharedSegments> memory_;
  std::size_t rank_, ranks_;
  std::vector<const float*> terms_;
  std::uint64_t chunks_ = 0, small_ = 0;  // done so far
};

}  // namespace superstep::run
