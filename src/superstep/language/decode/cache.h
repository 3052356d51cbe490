// Keys and values of the tokens so far, in pages that are made when a text grows into them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace superstep::language {

class KeyValueCache {
 public:
  static constexpr std::int64_t page_positions = 64;

  KeyValueCache(std::int64_t layers, std::int64_t key_heads, std::int64_t head_size)
      : heads_(key_heads), size_(head_size), pages_(static_cast<std::size_t>(layers)) {}

  // Room for positions below `count`, in every layer.
  void grow(std::int64_t count) {
    for (auto& pages : pages_)
      while (static_cast<std::int64_t>(pages.size()) * page_positions < count)
        pages.push_back(std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(page_floats())));
  }

  // `head_size` numbers each. Positions of a page lie one after another.
  float* key(std::int64_t layer, std::int64_t head, std::int64_t position) {
    float* page =
        pages_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(position / page_positions)].get();
    return page + (head * page_positions + position % page_positions) * size_;
  }
  float* value(std::int64_t layer, std::int64_t head, std::int64_t position) {
    return key(layer, head, position) + heads_ * page_positions * size_;
  }

  std::size_t bytes() const {
    std::size_t pages = 0;
    for (const auto& each : pages_) pages += each.size();
    return pages * static_cast<std::size_t>(page_floats()) * sizeof(float);
  }

 private:
  std::int64_t page_floats() const { return 2 * heads_ * page_positions * size_; }

  std::int64_t heads_, size_;
  std::vector<std::vector<std::unique_ptr<float[]>>> pages_;  // by layer
};

}  // namespace superstep::language
