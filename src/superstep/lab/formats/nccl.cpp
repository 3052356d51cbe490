#include "superstep/lab/formats/nccl.h"

#include <algorithm>

#include "superstep/lab/formats/member.h"

namespace superstep::lab {

NcclTotals nccl_totals(const std::vector<const Result*>& rows) {
  NcclTotals totals;
  std::size_t count = 0;
  for (const Result* row : rows)
    for (const char* place : {"out_of_place", "in_place"}) {
      if (const Quantity* busbw = row->find(std::string(place) + "_busbw")) {
        totals.bus_bandwidth += busbw->value;
        ++count;
      }
      if (const Quantity* bad = row->find(std::string(place) + "_wrong")) totals.wrong += bad->value;
    }
  if (count > 0) totals.bus_bandwidth /= static_cast<double>(count);
  return totals;
}

NcclRange nccl_range(const std::vector<const Result*>& rows) {
  NcclRange range{INT64_MAX, 0};
  for (const Result* row : rows) {
    range.least = std::min(range.least, integer_member(row->parameters, "bytes", 0));
    range.most = std::max(range.most, integer_member(row->parameters, "bytes", 0));
  }
  return range;
}

std::string host_name_of(const Result& result) {
  return text_member(object_member(result.environment, "host"), "hostname", "host");
}

}  // namespace superstep::lab
