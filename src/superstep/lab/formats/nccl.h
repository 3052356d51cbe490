// What the two forms of nccl-tests, table and JSON, have in common. Internal to formats/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

// Of both places of all rows.
struct NcclTotals {
  double bus_bandwidth = 0, wrong = 0;  // B/s, the mean; elements
};
NcclTotals nccl_totals(const std::vector<const record::Result*>& rows);

// Bytes of the smallest and the largest row.
struct NcclRange {
  std::int64_t least = 0, most = 0;
};
NcclRange nccl_range(const std::vector<const record::Result*>& rows);

std::string host_name_of(const record::Result& result);

}  // namespace superstep::lab
