// What one tile gets under a partition, and what it costs there.
#pragma once

#include <optional>
#include <string>

#include "superstep/machine/ipu/product_search.h"

namespace superstep::machine::ipu {

// The largest part.
struct TileShare {
  std::int64_t groups = 1, outputs = 1, inputs = 1, kernel_rows = 1, kernel_columns = 1;
  std::vector<std::int64_t> rows;
  std::int64_t positions = 1;                // of the rows
  double left = 0, right = 0, partials = 0;  // elements

  double macs() const;
};

TileShare share_of(const Product& product, const Grain& grain, const Partition& partition);
// The same into `share`, whose memory is used again: a search asks millions of times.
void find_share(const Product& product, const Grain& grain, const Partition& partition, TileShare& share);

// No more than the share of any partition that splits the axes of rows before `known` as `partition` does and
// the others into at most `tiles` parts together.
void find_least_share(const Product& product, const Grain& grain, const Partition& partition,
                      std::size_t known, std::int64_t tiles, TileShare& share);

// No more than the cycles of any of these partitions, where `share` is of find_least_share().
double least_cycles(const Hardware& hardware, const Product& product, const Grain& grain,
                    const Partition& partition, const TileShare& share);

// A lower bound of the compute cycles: multiply-accumulates at the peak rate.
double compute_bound(const Hardware& hardware, const Product& product, const Grain& grain,
                     const Partition& partition, const TileShare& share);

double temporary_bytes(const Product& product, const TileShare& share);

// Operands that all tiles together put in order, each an even share, before those that compute receive them:
// the bytes that stay together in such a copy; 0: who computes does it.
struct OrderedFirst {
  std::int64_t left = 0, right = 0;
};
// Those for which that takes fewer cycles, `share` being a tile's.
OrderedFirst ordered_first(const Hardware& hardware, const Product& product, const TileShare& share);

// Cycles of the vertex of such a share, and of putting its other operands in order on the tile: all that its
// tile computes.
double tile_cycles(const Hardware& hardware, const Product& product, const Grain& grain,
                   const TileShare& share, const OrderedFirst& ordered = {});

// The cycles of a plan, which is what a search compares.
Cycles cycles_of(const Hardware& hardware, const Product& product, const Grain& grain,
                 const Partition& partition, const TileShare& share);
Plan cost_of(const Hardware& hardware, const Product& product, const Grain& grain, const Partition& partition,
             const TileShare& share);

}  // namespace superstep::machine::ipu
