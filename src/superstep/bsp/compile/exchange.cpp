#include "superstep/bsp/compile/exchange.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "superstep/base/integers.h"

namespace superstep::bsp {
namespace {

constexpr std::uint64_t word = 4;  // bytes that the exchange moves at least

std::uint64_t rounded_cycles(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

std::uint64_t words_of(std::uint64_t bytes) { return round_up<std::uint64_t>(bytes, word); }

// A copy that rearranges data within a tile: cycles to begin, and cycles a byte by the size of the atoms that
// stay together. The vendor's regression over measured copies, in the source of PopLibs (sdk-release-2.0, MIT
// licence); machine/ipu/superstep_cost.cpp, which sees nothing of this room, keeps the ratios of the rates.
constexpr double rearrange_start = 587;                                                        // cycles
constexpr double rearrange_rate_2 = 5.148, rearrange_rate_4 = 3.125, rearrange_rate_8 = 0.44;  // cycles/B

double rearrange_rate(std::uint64_t atom_bytes) {
  return atom_bytes >= 8 ? rearrange_rate_8 : atom_bytes >= 4 ? rearrange_rate_4 : rearrange_rate_2;
}

}  // namespace

const TileIndex& Placement::operator[](VariableId id) {
  Entry& entry = index_[id.index()];
  if (!entry.known) {
    entry.index = TileIndex(graph_.variable(id).mapping.intervals());
    entry.known = true;
  }
  return entry.index;
}

namespace {

// Counts pieces that follow one another in a sender's memory as one: a tile keeps what it has of a variable
// packed, in the order of elements.
class Fragments {
 public:
  // From here on another receiver, or another variable.
  void restart() { ++stamp_; }
  // A piece of `length` elements at `address` of the sender: true when a new fragment begins.
  bool begins(std::uint32_t sender, std::int64_t address, std::int64_t length) {
    if (sender >= last_.size()) last_.resize(sender + 1);
    Last& last = last_[sender];
    const bool follows = last.stamp == stamp_ && last.end == address;
    last = {stamp_, address + length};
    return !follows;
  }

 private:
  struct Last {
    std::uint64_t stamp = 0;
    std::int64_t end = 0;
  };
  std::vector<Last> last_;
  std::uint64_t stamp_ = 1;
};

// Calls f(owner, bytes, address, length) for the pieces of [begin, end) by their owners.
template <class F>
void for_each_piece(const TileIndex& index, std::int64_t begin, std::int64_t end, F&& f) {
  if (begin >= end) return;
  const auto all = index.intervals();
  for (std::size_t i = index.position_of(begin); begin < end; ++i) {
    const std::int64_t stop = std::min(end, all[i].end);
    f(all[i].tile, index.packed_begin(i) + begin - all[i].begin, stop - begin);
    begin = stop;
  }
}

}  // namespace

struct ExchangeCounter::Totals {
  const Device& device;
  std::unordered_map<std::uint32_t, std::size_t> position;
  std::vector<TileTraffic> tiles;
  std::vector<ChipFlow> flows;
  std::uint64_t link_bytes = 0;

  TileTraffic& of(std::uint32_t tile) {
    const auto [place, added] = position.emplace(tile, tiles.size());
    if (added) tiles.push_back({tile});
    return tiles[place->second];
  }
};

void ExchangeCounter::add(VariableId variable, std::int64_t begin, std::int64_t end, std::uint32_t tile) {
  if (begin < end) requests_.push_back({tile, variable, begin, end});
}

void ExchangeCounter::request(VariableId variable, std::int64_t begin, std::int64_t end, std::uint32_t tile) {
  // Cut out what lives on the tile.
  const TileIndex& index = placement_[variable];
  const auto all = index.intervals();
  const auto own = index.on_tile(tile);
  auto first =
      std::partition_point(own.begin(), own.end(), [&](std::uint32_t i) { return all[i].end <= begin; });
  for (; first != own.end() && all[*first].begin < end; ++first) {
    add(variable, begin, all[*first].begin, tile);
    begin = std::max(begin, all[*first].end);
  }
  add(variable, begin, end, tile);
}

void ExchangeCounter::move(VariableId variable, std::int64_t begin, std::int64_t stride, std::int64_t count,
                           std::uint32_t tile) {
  const std::uint64_t bytes = placement_.element_bytes(variable);
  placement_[variable].for_each_owned(begin, stride, count,
                                      [&](std::int64_t, std::int64_t part, std::uint32_t owner) {
                                        if (owner == tile) return;
                                        const auto size = static_cast<std::uint64_t>(part);
                                        const std::uint64_t pieces = stride == 1 || stride == -1 ? 1 : size;
                                        TileTraffic &to = moved_[tile], &from = moved_[owner];
                                        to.bytes_in += words_of(size * bytes);
                                        to.fragments_in += pieces;
                                        from.bytes_out += words_of(size * bytes);
                                        from.fragments_out += pieces;
                                        moved_bytes_[{owner, tile}] += words_of(size * bytes);
                                      });
}

void ExchangeCounter::deliver(VariableId variable, std::int64_t begin, std::int64_t end, std::uint32_t from) {
  if (begin < end) deliveries_.push_back({from, variable, begin, end});
}

// Sorts what mostly comes tile after tile.
void ExchangeCounter::sort_by_tile(std::vector<Request>& requests) {
  const auto by_tile = [](const Request& a, const Request& b) { return a.tile < b.tile; };
  if (!std::is_sorted(requests.begin(), requests.end(), by_tile)) {
    std::sort(requests.begin(), requests.end());
    return;
  }
  for (auto begin = requests.begin(); begin != requests.end();) {
    const auto end =
        std::find_if(begin, requests.end(), [&](const Request& r) { return r.tile != begin->tile; });
    if (!std::is_sorted(begin, end)) std::sort(begin, end);
    begin = end;
  }
}

// Requests of one tile for one variable, joined; then bytes and fragments by the tile that sends.
void ExchangeCounter::receive(Totals& totals) {
  sort_by_tile(requests_);
  std::size_t kept = 0;
  for (const Request& request : requests_) {
    Request* last = kept > 0 ? &requests_[kept - 1] : nullptr;
    if (last && last->tile == request.tile && last->variable == request.variable &&
        request.begin <= last->end)
      last->end = std::max(last->end, request.end);
    else
      requests_[kept++] = request;
  }
  requests_.resize(kept);
  Fragments fragments;
  const Request* last = nullptr;
  for (const Request& request : requests_) {
    if (last && (last->tile != request.tile || last->variable != request.variable)) fragments.restart();
    last = &request;
    TileTraffic& tile = totals.of(request.tile);
    tile.bytes_in += words_of(static_cast<std::uint64_t>(request.end - request.begin) *
                              placement_.element_bytes(request.variable));
    for_each_piece(placement_[request.variable], request.begin, request.end,
                   [&](std::uint32_t owner, std::int64_t address, std::int64_t length) {
                     tile.fragments_in += fragments.begins(owner, address, length);
                   });
  }
}

// What anybody asked for is sent once by its owner; outputs go straight from who made them.
void ExchangeCounter::send(Totals& totals) {
  std::vector<Request> wanted = requests_;
  for (Request& request : wanted) request.tile = 0;
  std::sort(wanted.begin(), wanted.end());
  std::int64_t reached = 0;
  VariableId variable;
  Fragments fragments;
  for (const Request& request : wanted) {
    if (request.variable != variable) {
      reached = 0;
      fragments.restart();
    }
    variable = request.variable;
    const std::int64_t begin = std::max(request.begin, reached);
    reached = std::max(reached, request.end);
    for_each_piece(placement_[variable], begin, request.end,
                   [&](std::uint32_t owner, std::int64_t address, std::int64_t length) {
                     TileTraffic& tile = totals.of(owner);
                     tile.bytes_out +=
                         words_of(static_cast<std::uint64_t>(length) * placement_.element_bytes(variable));
                     tile.fragments_out += fragments.begins(owner, address, length);
                   });
  }
  for (const Request& delivery : deliveries_) {
    const auto all = placement_[delivery.variable].intervals();
    std::int64_t begin = delivery.begin;
    for (std::size_t i = placement_[delivery.variable].position_of(begin); begin < delivery.end; ++i) {
      const std::int64_t stop = std::min(delivery.end, all[i].end);
      if (all[i].tile != delivery.tile) {
        const std::uint64_t bytes =
            words_of(static_cast<std::uint64_t>(stop - begin) * placement_.element_bytes(delivery.variable));
        TileTraffic& to = totals.of(all[i].tile);
        to.bytes_in += bytes;
        ++to.fragments_in;
        TileTraffic& from = totals.of(delivery.tile);
        from.bytes_out += bytes;
        ++from.fragments_out;
        const std::uint32_t source = totals.device.ipu_of(delivery.tile),
                            sink = totals.device.ipu_of(all[i].tile);
        if (source != sink) totals.flows.push_back({source, sink, bytes});
      }
      begin = stop;
    }
  }
}

// Between chips an element passes once to each chip that needs it.
void ExchangeCounter::cross(Totals& totals) {
  if (totals.device.ipus > 1) {
    std::vector<Request> wanted = requests_;
    for (Request& request : wanted) request.tile = totals.device.ipu_of(request.tile);
    std::sort(wanted.begin(), wanted.end());
    const Request* last = nullptr;
    std::int64_t reached = 0;
    for (const Request& request : wanted) {
      if (!last || last->tile != request.tile || last->variable != request.variable) reached = 0;
      last = &request;
      std::int64_t begin = std::max(request.begin, reached);
      reached = std::max(reached, request.end);
      if (begin >= request.end) continue;
      const auto all = placement_[request.variable].intervals();
      for (std::size_t i = placement_[request.variable].position_of(begin); begin < request.end; ++i) {
        const std::int64_t stop = std::min(request.end, all[i].end);
        const std::uint32_t source = totals.device.ipu_of(all[i].tile);
        if (source != request.tile)
          totals.flows.push_back({source, request.tile,
                                  words_of(static_cast<std::uint64_t>(stop - begin) *
                                           placement_.element_bytes(request.variable))});
        begin = stop;
      }
    }
  }
  for (const ChipFlow& flow : totals.flows) totals.link_bytes += flow.bytes;
}

ExchangeCost ExchangeCounter::finish(const Device& device) {
  Totals totals{device, {}, {}, {}};
  for (const auto& [tile, moved] : moved_) {
    TileTraffic& traffic = totals.of(tile);
    traffic = moved;
    traffic.tile = tile;
  }
  for (const auto& [pair, bytes] : moved_bytes_) {
    const std::uint32_t source = device.ipu_of(pair.first), sink = device.ipu_of(pair.second);
    if (source != sink) totals.flows.push_back({source, sink, bytes});
  }
  receive(totals);
  send(totals);
  cross(totals);
  ExchangeCost cost;
  cost.link_bytes = totals.link_bytes;
  std::uint32_t low = 0xffffffffu, high = 0;
  std::uint64_t slowest = 0;
  const double fragment = device.constants.exchange_fragment_cycles.value;
  for (const TileTraffic& tile : totals.tiles) {
    const std::uint64_t bytes = std::max(tile.bytes_in, tile.bytes_out);
    const std::uint64_t fragments = std::max(tile.fragments_in, tile.fragments_out);
    // Many small pieces are put in order on the tile instead, when that is cheaper.
    const double pieces = static_cast<double>(fragments) * fragment;
    const double ordered =
        rearrange_start + static_cast<double>(bytes) * rearrange_rate(fragments ? bytes / fragments : 8);
    const std::uint64_t cycles =
        (bytes + device.exchange_bytes_per_cycle - 1) / device.exchange_bytes_per_cycle +
        rounded_cycles(std::min(pieces, ordered));
    slowest = std::max(slowest, cycles);
    cost.tile_cycles += cycles;
    cost.bytes += tile.bytes_in;
    cost.max_in = std::max(cost.max_in, tile.bytes_in);
    cost.max_out = std::max(cost.max_out, tile.bytes_out);
    cost.max_fragments = std::max(cost.max_fragments, fragments);
    low = std::min(low, device.ipu_of(tile.tile));
    high = std::max(high, device.ipu_of(tile.tile));
  }
  if (!totals.tiles.empty()) {
    cost.cycles = rounded_cycles(device.constants.exchange_setup_cycles.value) + slowest;
    cost.ipus = high - low + 1;
    cost.link_cycles =
        static_cast<std::uint64_t>(std::ceil(link_seconds(device, totals.flows) * device.clock_hz));
  }
  // Pieces that are put in order first are one from, and one to, each other tile.
  for (TileTraffic& tile : totals.tiles) {
    tile.fragments_in = std::min<std::uint64_t>(tile.fragments_in, device.num_tiles());
    tile.fragments_out = std::min<std::uint64_t>(tile.fragments_out, device.num_tiles());
  }
  cost.tiles = std::move(totals.tiles);
  return cost;
}

std::uint64_t local_copy_cycles(const Device& device, std::uint64_t bytes, std::uint64_t runs,
                                std::uint64_t element_bytes) {
  if (bytes == 0) return 0;
  const std::uint64_t run_bytes = std::max(element_bytes, bytes / std::max<std::uint64_t>(runs, 1));
  const double moving =
      run_bytes >= 16
          ? static_cast<double>((bytes + device.memcpy_bytes_per_cycle - 1) / device.memcpy_bytes_per_cycle) +
                static_cast<double>(runs) * device.constants.local_copy_run_cycles.value
          : static_cast<double>(bytes) * rearrange_rate(run_bytes);
  return rounded_cycles(device.constants.local_copy_call_cycles.value + moving);
}

}  // namespace superstep::bsp
