#include "superstep/lab/formats/nccl.h"

#include <algorithm>

#include "superstep/record/member.h"

namespace superstep::lab {

NcclTotals nccl_totals(const std::vector<const record::Result*>& rows) {
  NcclTotals totals;
  std::size_t count = 0;
  for (const record::Result* row : rows)
    for (const char* place : {"out_of_place", "in_place"}) {
      if (const record::Quantity* busbw = row->find(std::string(place) + "_busbw")) {
        totals.bus_bandwidth += busbw->value;
        ++count;
      }
      if (const record::Quantity* bad = row->find(std::string(place) + "_wrong")) totals.wrong += bad->value;
    }
  if (count > 0) totals.bus_bandwidth /= static_cast<double>(count);
  return totals;
}

NcclRange nccl_range(const std::vector<const record::Result*>& rows) {
  NcclRange range{INT64_MAX, 0};
  for (const record::Result* row : rows) {
    range.least = std::min(range.least, record::integer_member(row->parameters, "bytes", 0));
    range.most = std::max(range.most, record::integer_member(row->parameters, "bytes", 0));
  }
  return range;
}

std::string host_name_of(const record::Result& result) {
  return record::text_member(record::object_member(result.environment, "host"), "hostname", "host");
}

}  // namespace superstep::lab
