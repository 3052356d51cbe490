// Disjoint sets of numbered things: which belong together. The smallest number of a set stands for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace superstep::peaks {

class UnionFind {
 public:
  void reset(std::size_t count) {
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  std::int32_t add() {
    parent_.push_back(static_cast<std::int32_t>(parent_.size()));
    return parent_.back();
  }
  std::size_t size() const { return parent_.size(); }
  std::int32_t find(std::int32_t item) {
    while (at(item) != item) item = at(item) = at(at(item));
    return item;
  }
  void join(std::int32_t a, std::int32_t b) {
    a = find(a), b = find(b);
    if (a > b) std::swap(a, b);
    at(b) = a;
  }
  // `under` no longer stands for its set: `root` does.
  void put_under(std::int32_t under, std::int32_t root) { at(find(under)) = find(root); }

 private:
  std::int32_t& at(std::int32_t item) { return parent_[static_cast<std::size_t>(item)]; }
  std::vector<std::int32_t> parent_;
};

}  // namespace superstep::peaks
