// All-reduce between ranks, measured as nccl-tests does: in place and out of place, every element checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "superstep/record/result.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::lab {

struct CollectiveSettings {
  std::vector<std::int64_t> sizes;                            // bytes of one rank's buffer; multiples of 4
  std::vector<run::SumOrder> orders{run::SumOrder::by_rank};  // contenders: five iterations each in turn
  int warm_up = 5, iterations = 20;
  std::function<void(const record::Result&)> done = {};
};

// Collective: every rank calls it. A time is that of the slowest rank; the median of all iterations is given,
// and algbw = bytes / time, busbw = algbw x 2 (n - 1) / n. A result a size and order, the orders of a size
// one after the other; without program and environment.
std::vector<record::Result> bench_all_reduce(run::Communicator& world, const CollectiveSettings& settings);

// Where results hold both orders: our bandwidth beside that of the library's MPI_Allreduce, by medians and by
// the fastest iterations, which say more on a busy machine. Empty otherwise.
std::string contenders_table(const std::vector<record::Result>& results);

// "4K..256M" (doubling), or a list "4096,1M"; K, M and G are 2^10, 2^20 and 2^30. Throws Error
// (invalid_argument) naming the part that is no size.
std::vector<std::int64_t> parse_sizes(const std::string& text);

}  // namespace superstep::lab
