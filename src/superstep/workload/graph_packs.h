// Graphs of different sizes in packs of one fixed size, so that a program that is compiled for one shape
// takes any of them: the nodes of several graphs one after the other, their edges likewise, and for every
// node the number of its graph within the pack. What a pack has room for and does not use is padding.
//
// The largest graphs are placed first, each into the pack that it leaves the least room in (best fit
// decreasing; D. S. Johnson et al., SIAM J. Comput. 3, 299 (1974); for batches of training, M. M. Krell et
// al., arXiv 2107.02027). Which graph of a size takes which of the places for that size is drawn anew in
// every epoch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace superstep::workload {

struct GraphSize {
  std::int64_t nodes = 0, edges = 0;
  friend auto operator<=>(const GraphSize&, const GraphSize&) = default;
};

struct PackCapacity {
  std::int64_t nodes = 0, edges = 0, graphs = 0;
};

class GraphPacks {
 public:
  GraphPacks() = default;
  // Throws Error (invalid_argument) that names the number of a graph that is larger than a pack.
  GraphPacks(std::span<const GraphSize> sizes, const PackCapacity& capacity);

  std::int64_t count() const { return static_cast<std::int64_t>(packs_.size()); }
  const PackCapacity& capacity() const { return capacity_; }

  // The graphs of a pack, by number, in the order of their places.
  std::span<const std::int32_t> graphs(std::int64_t pack) const {
    return packs_[static_cast<std::size_t>(pack)];
  }
  // The same after graphs of equal size have changed places at random, all over the packs: a function of
  // (seed, epoch, pack). Every graph is in one pack of an epoch.
  std::vector<std::int32_t> shuffled(std::int64_t pack, std::uint64_t seed, std::uint64_t epoch) const;

  // The shares of all packs' room that is used.
  struct Fill {
    double nodes = 0, edges = 0, graphs = 0;
  };
  Fill fill() const;
  // In words: "7,558 graphs in 531 packs of 256 nodes, 576 edges and 24 graphs: 99.1 % of the nodes, ...".
  // The names are those of the field, in the plural.
  std::string describe(const std::string& graphs, const std::string& nodes, const std::string& edges) const;

 private:
  void place(std::int32_t graph, const GraphSize& size);
  void find_classes(std::span<const GraphSize> sizes);

  // What is used of a pack.
  struct Used {
    std::int64_t nodes = 0, edges = 0, graphs = 0;
  };
  bool fits(std::size_t pack, const GraphSize& size) const;

  PackCapacity capacity_;
  std::vector<std::vector<std::int32_t>> packs_;
  std::vector<Used> used_;
  std::vector<std::vector<std::size_t>>
      with_room_;  // packs by the nodes that they have room for; while placing
  std::vector<std::vector<std::int32_t>> classes_;       // graphs of equal size
  std::vector<std::int32_t> class_of_, place_in_class_;  // by graph
};

}  // namespace superstep::workload
