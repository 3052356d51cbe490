#include "superstep/record/details.h"

#include <nlohmann/json.hpp>

#include "superstep/record/member.h"

namespace superstep::record {
namespace {

using nlohmann::json;

json extras_of(const Quantity& quantity) {
  json extras = json::object();
  if (!quantity.statistic.empty()) extras["statistic"] = quantity.statistic;
  if (!quantity.flags.empty()) extras["flags"] = quantity.flags;
  if (!quantity.details.empty()) extras["details"] = quantity.details;
  return extras;
}

void add_extras(Quantity& quantity, const json& extras) {
  quantity.statistic = text_member(extras, "statistic", "");
  quantity.details = object_member(extras, "details");
  const auto flags = extras.find("flags");
  if (flags == extras.end() || !flags->is_array()) return;
  for (const json& flag : *flags)
    if (flag.is_string()) quantity.flags.push_back(flag);
}

}  // namespace

json details_of(const Result& result) {
  json extras = json::object();
  for (const Quantity& quantity : result.quantities)
    if (json extra = extras_of(quantity); !extra.empty()) extras[quantity.name] = std::move(extra);
  json details{{"id", result.id},       {"mode", result.mode},       {"parameters", result.parameters},
               {"units", result.units}, {"program", result.program}, {"metrics", std::move(extras)}};
  if (result.flop_per_sample) details["flop_per_sample"] = *result.flop_per_sample;
  if (!result.details.empty()) details["further"] = result.details;
  return details;
}

void add_details(Result& result, const json& details) {
  result.id = text_member(details, "id", "");
  if (result.id.empty()) result.id = usual_id(result);
  result.mode = text_member(details, "mode", "");
  if (result.mode.empty()) result.mode = result.command;
  result.parameters = object_member(details, "parameters");
  result.units = integer_member(details, "units", 1);
  if (const double flop = number_member(details, "flop_per_sample", -1); flop >= 0)
    result.flop_per_sample = flop;
  result.program = object_member(details, "program");
  result.details = object_member(details, "further");
  const json extras = object_member(details, "metrics");
  for (Quantity& quantity : result.quantities)
    if (extras.contains(quantity.name)) add_extras(quantity, extras[quantity.name]);
}

}  // namespace superstep::record
