// Half-open ranges of element numbers, and sets of them.
#pragma once

#include <cstdint>
#include <vector>

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

struct Interval {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  friend auto operator<=>(const Interval&, const Interval&) = default;
};

// Sorts and joins touching or overlapping intervals; empty ones vanish.
void normalize(std::vector<Interval>& intervals);
std::int64_t total_size(const std::vector<Interval>& intervals);

// A set of element numbers as sorted, disjoint, non-touching intervals. Few intervals are added to many,
// taken from many and looked for among many without going through all of these.
class IntervalSet {
 public:
  IntervalSet() = default;
  explicit IntervalSet(std::vector<Interval> intervals);  // in any order, may overlap

  void add(const IntervalSet& other);
  void remove(const IntervalSet& other);
  IntervalSet intersection(const IntervalSet& other) const;
  IntervalSet difference(const IntervalSet& other) const;  // what is here and not in `other`
  bool covers(const IntervalSet& other) const;
  bool empty() const { return intervals_.empty(); }
  std::int64_t size() const { return total_size(intervals_); }
  const std::vector<Interval>& intervals() const { return intervals_; }
  friend bool operator==(const IntervalSet&, const IntervalSet&) = default;

 private:
  void add(Interval one);
  void remove(const Interval& one);
  bool many_beside(const IntervalSet& other) const;

  std::vector<Interval> intervals_;
};

}  // namespace superstep::bsp

#pragma GCC visibility pop
