// How an array is divided over ranks that add up a piece each: as many bytes over the wire as any all-reduce
// needs, 2 (n - 1) / n of the array a rank.
#pragma once

#include <cstddef>
#include <vector>

namespace superstep::run {

struct Pieces {
  Pieces(std::size_t values, std::size_t ranks, std::size_t rank)
      : counts(ranks), offsets(ranks), own_counts(ranks), own_offsets(ranks) {
    for (std::size_t r = 0; r < ranks; ++r) {
      offsets[r] = static_cast<int>(r * values / ranks);
      counts[r] = static_cast<int>((r + 1) * values / ranks) - offsets[r];
    }
    mine = static_cast<std::size_t>(counts[rank]);
    for (std::size_t r = 0; r < ranks; ++r) {
      own_counts[r] = static_cast<int>(mine);
      own_offsets[r] = static_cast<int>(r * mine);
    }
  }

  std::vector<int> counts, offsets;  // of every rank's piece in the array
  std::vector<int> own_counts,
      own_offsets;       // of this rank's piece as it comes from every rank, laid side by side
  std::size_t mine = 0;  // values of this rank's piece
};

}  // namespace superstep::run
