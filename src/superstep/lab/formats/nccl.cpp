#include "superstep/lab/formats/nccl.h"

#include <algorithm>

namespace superstep::lab {

using nlohmann::json;

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

std::int64_t integer_member(const json& object, const char* name, std::int64_t otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

std::string text_member(const json& object, const char* name, const char* otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::string host_name_of(const Result& result) {
  if (!result.environment.is_object()) return "host";
  return text_member(result.environment.value("host", json::object()), "hostname", "host");
}

}  // namespace superstep::lab
