// What one exchange phase moves and how long it takes.
//
// Every request says: this tile needs these elements. Elements that live there already do not move; elements
// that a tile needs twice arrive once; elements that many tiles need are sent once (all listen). The phase
// takes, on its slowest tile, max(bytes in, bytes out) / rate + what its fragments cost, and a set-up.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/bsp/graph/mapping.h"

namespace superstep::bsp {

// The finished mapping of every variable of a graph of one replica.
class Placement {
 public:
  explicit Placement(const GraphData& graph) : graph_(graph), index_(graph.variables.size()) {}
  const TileIndex& operator[](VariableId id);
  std::uint64_t element_bytes(VariableId id) const { return size_in_bytes(graph_.variable(id).type); }
  const GraphData& graph() const { return graph_; }

 private:
  struct Entry {
    bool known = false;
    TileIndex index;
  };
  const GraphData& graph_;
  std::vector<Entry> index_;
};

struct TileTraffic {
  std::uint32_t tile = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0, fragments_in = 0, fragments_out = 0;
};

struct ExchangeCost {
  std::uint64_t cycles = 0;       // inside the chips: 0 when nothing moves
  std::uint64_t link_cycles = 0;  // between chips
  std::uint64_t bytes = 0;        // received by all tiles
  std::uint64_t link_bytes = 0;
  std::uint64_t tile_cycles = 0;  // summed over tiles
  std::uint64_t max_in = 0, max_out = 0, max_fragments = 0;
  std::uint32_t ipus = 1;          // chips that take part
  std::vector<TileTraffic> tiles;  // those that send or receive
};

class ExchangeCounter {
 public:
  explicit ExchangeCounter(Placement& placement) : placement_(placement) {}
  // `tile` needs elements [begin, end); those that live there are not counted.
  void request(VariableId variable, std::int64_t begin, std::int64_t end, std::uint32_t tile);
  // The same for elements begin, begin + stride, ... that nobody else asks for: counted at once, so that huge
  // rearranging copies stay cheap to compile.
  void move(VariableId variable, std::int64_t begin, std::int64_t stride, std::int64_t count,
            std::uint32_t tile);
  // Elements that `from` sends to where they live: outputs of a vertex elsewhere.
  void deliver(VariableId variable, std::int64_t begin, std::int64_t end, std::uint32_t from);
  ExchangeCost finish(const Device& device);

 private:
  struct Request {
    std::uint32_t tile;
    VariableId variable;
    std::int64_t begin, end;
    friend auto operator<=>(const Request&, const Request&) = default;
  };
  struct Totals;
  void add(VariableId variable, std::int64_t begin, std::int64_t end, std::uint32_t tile);
  static void sort_by_tile(std::vector<Request>& requests);
  void receive(Totals& totals);
  void send(Totals& totals);
  void cross(Totals& totals);

  Placement& placement_;
  std::vector<Request> requests_, deliveries_;
  std::unordered_map<std::uint32_t, TileTraffic> moved_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> moved_bytes_;  // tile to tile
};

// Cycles of moving `bytes` within one tile in `runs` contiguous runs of elements of `element_bytes`: the
// call, and for runs of at least 16 bytes the memcpy rate with a set-up a run, for shorter ones the
// regression of the vendor's rearranging copies (cycles a byte: 5.148, 3.125, 0.44 for atoms of 2, 4, 8
// bytes).
std::uint64_t local_copy_cycles(const Device& device, std::uint64_t bytes, std::uint64_t runs,
                                std::uint64_t element_bytes);

}  // namespace superstep::bsp
