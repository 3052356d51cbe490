#include "superstep/bsp/graph/interval.h"

#include <algorithm>

namespace superstep::bsp {

void normalize(std::vector<Interval>& intervals) {
  std::erase_if(intervals, [](const Interval& interval) { return interval.size() <= 0; });
  if (!std::is_sorted(intervals.begin(), intervals.end())) std::sort(intervals.begin(), intervals.end());
  std::size_t kept = 0;
  for (const Interval& interval : intervals) {
    if (kept > 0 && interval.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, interval.end);
    else
      intervals[kept++] = interval;
  }
  intervals.resize(kept);
}

std::int64_t total_size(const std::vector<Interval>& intervals) {
  std::int64_t size = 0;
  for (const Interval& interval : intervals) size += interval.size();
  return size;
}

IntervalSet::IntervalSet(std::vector<Interval> intervals) : intervals_(std::move(intervals)) {
  normalize(intervals_);
}

void IntervalSet::add(const IntervalSet& other) {
  if (other.empty()) return;
  std::vector<Interval> merged(intervals_.size() + other.intervals_.size());
  std::merge(intervals_.begin(), intervals_.end(), other.intervals_.begin(), other.intervals_.end(),
             merged.begin());
  normalize(merged);
  intervals_ = std::move(merged);
}

IntervalSet IntervalSet::intersection(const IntervalSet& other) const {
  IntervalSet result;
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() && b != other.intervals_.end()) {
    const Interval common{std::max(a->begin, b->begin), std::min(a->end, b->end)};
    if (common.size() > 0) result.intervals_.push_back(common);
    if (a->end < b->end)
      ++a;
    else
      ++b;
  }
  return result;
}

IntervalSet IntervalSet::difference(const IntervalSet& other) const {
  IntervalSet result;
  auto cut = other.intervals_.begin();
  for (Interval rest : intervals_) {
    while (cut != other.intervals_.end() && cut->end <= rest.begin) ++cut;
    for (auto next = cut; next != other.intervals_.end() && next->begin < rest.end; ++next) {
      if (next->begin > rest.begin) result.intervals_.push_back({rest.begin, next->begin});
      rest.begin = std::max(rest.begin, next->end);
    }
    if (rest.size() > 0) result.intervals_.push_back(rest);
  }
  return result;
}

void IntervalSet::remove(const IntervalSet& other) { *this = difference(other); }

bool IntervalSet::covers(const IntervalSet& other) const { return other.difference(*this).empty(); }

}  // namespace superstep::bsp
