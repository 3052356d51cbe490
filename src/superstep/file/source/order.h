// The order in which the samples of a source are trained on, epoch by epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::data {

// A permutation of [0, count) that depends on (seed, epoch) and, where there are shards (their first
// samples), on these and `buffer` alone: then shards come in a random order, and each place is given to one
// of the next `buffer` samples in it. Without shards every permutation is as likely.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch,
                                      std::span<const std::int64_t> shards = {}, std::int64_t buffer = 0);

}  // namespace superstep::data
