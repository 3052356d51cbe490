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

// Chosen: an insertion moves what is behind it, some tens of times quicker than it is merged.
bool IntervalSet::many_beside(const IntervalSet& other) const {
  return intervals_.size() / 32 > other.intervals_.size();
}

void IntervalSet::add(Interval one) {
  const auto first = std::ranges::lower_bound(intervals_, one.begin, {}, &Interval::end);
  auto last = first;
  for (; last != intervals_.end() && last->begin <= one.end; ++last) {
    one.begin = std::min(one.begin, last->begin);
    one.end = std::max(one.end, last->end);
  }
  if (first == last) {
    intervals_.insert(first, one);
  } else {
    *first = one;
    intervals_.erase(first + 1, last);
  }
}

void IntervalSet::remove(const Interval& one) {
  const auto first = std::ranges::upper_bound(intervals_, one.begin, {}, &Interval::end);
  const auto last = std::ranges::lower_bound(first, intervals_.end(), one.end, {}, &Interval::begin);
  if (first == last) return;
  const Interval before{first->begin, one.begin}, after{one.end, (last - 1)->end};
  auto here = intervals_.erase(first, last);
  if (after.size() > 0) here = intervals_.insert(here, after);
  if (before.size() > 0) intervals_.insert(here, before);
}

void IntervalSet::add(const IntervalSet& other) {
  if (other.empty()) return;
  if (many_beside(other)) {
    for (const Interval& one : other.intervals_) add(one);
    return;
  }
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
    if (other.many_beside(*this))
      cut = std::ranges::upper_bound(cut, other.intervals_.end(), rest.begin, {}, &Interval::end);
    while (cut != other.intervals_.end() && cut->end <= rest.begin) ++cut;
    for (auto next = cut; next != other.intervals_.end() && next->begin < rest.end; ++next) {
      if (next->begin > rest.begin) result.intervals_.push_back({rest.begin, next->begin});
      rest.begin = std::max(rest.begin, next->end);
    }
    if (rest.size() > 0) result.intervals_.push_back(rest);
  }
  return result;
}

void IntervalSet::remove(const IntervalSet& other) {
  if (many_beside(other)) {
    for (const Interval& one : other.intervals_) remove(one);
    return;
  }
  *this = difference(other);
}

bool IntervalSet::covers(const IntervalSet& other) const { return other.difference(*this).empty(); }

}  // namespace superstep::bsp
