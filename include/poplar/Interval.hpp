// Half-open ranges of element numbers.
#ifndef poplar_Interval_hpp
#define poplar_Interval_hpp

#include <cstddef>
#include <ostream>

// Programs use these without including them.
#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace poplar {

class Interval {
 public:
  Interval() : begin_(0), end_(0) {}
  Interval(std::size_t begin, std::size_t end) : begin_(begin), end_(end) {}

  const std::size_t& begin() const { return begin_; }
  const std::size_t& end() const { return end_; }
  std::size_t size() const { return end_ - begin_; }

  friend bool operator==(const Interval& a, const Interval& b) {
    return a.begin_ == b.begin_ && a.end_ == b.end_;
  }
  friend bool operator!=(const Interval& a, const Interval& b) { return !(a == b); }
  friend bool operator<(const Interval& a, const Interval& b) {
    return a.begin_ != b.begin_ ? a.begin_ < b.begin_ : a.end_ < b.end_;
  }
  friend std::ostream& operator<<(std::ostream& out, const Interval& interval) {
    return out << "[" << interval.begin_ << "," << interval.end_ << ")";
  }

 private:
  std::size_t begin_, end_;
};

}  // namespace poplar

#endif
