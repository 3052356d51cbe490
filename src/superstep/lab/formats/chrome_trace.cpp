// Chrome's trace event format: https://ui.perfetto.dev and chrome://tracing open it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "superstep/lab/formats/writers.h"

namespace superstep::lab {
namespace {

using Json = nlohmann::ordered_json;

Json named(const char* what, std::size_t process, std::int64_t thread, const std::string& name) {
  return {{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}};
}

Json event_of(const record::TimelineEvent& event, std::size_t process) {
  return {{"ph", "X"},
          {"pid", process},
          {"tid", event.unit},
          {"ts", 1e6 * event.start},
          {"dur", 1e6 * event.duration},
          {"name", event.name},
          {"cat", event.category},
          {"args", {{"flop", event.flop}, {"bytes", event.bytes}}}};
}

}  // namespace

std::string write_chrome_trace(const std::vector<record::Result>& results) {
  Json events = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].timeline.empty()) continue;
    const std::size_t process = i + 1;
    events.push_back(named("process_name", process, 0,
                           fmt::format("{} {} (measured)", results[i].machine, results[i].id)));
    std::set<std::int64_t> units;
    for (const record::TimelineEvent& event : results[i].timeline) {
      if (units.insert(event.unit).second)
        events.push_back(named("thread_name", process, event.unit, fmt::format("unit {}", event.unit)));
      events.push_back(event_of(event, process));
    }
  }
  const Json trace{{"traceEvents", events}, {"displayTimeUnit", "ms"}};
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace superstep::lab
