// The order in which the samples of a source are trained on, epoch by epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace superstep::data {

// Of samples that can only be read in their order: the first ones of the shards, and how many are kept to be
// drawn from. No shards: any order is as good.
struct ForcedOrder {
  std::vector<std::int64_t> shards = {};
  std::int64_t buffer = 0;
};

// A permutation of [0, count) that depends on (seed, epoch) and, where there are shards (their first
// samples), on these and the buffer alone: then shards come in a random order, and each place is given to one
// of the next `buffer` samples in it. Without shards every permutation is as likely.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch,
                                      const ForcedOrder& forced = {});

}  // namespace superstep::data
