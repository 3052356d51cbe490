#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/lab/profile/report.h"

namespace superstep::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int process = 1;

Json named(const char* what, int thread, const std::string& name) {
  return {{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}};
}

const char* category_of(target::PlanPart part) {
  switch (part) {
    case target::PlanPart::prepare: return "prepare";
    case target::PlanPart::body: return "micro-batch";
    case target::PlanPart::update: return "update";
  }
  return "";
}

Json event_of(const target::StepEvent& event, const target::PlanStep& step, const MachineFloor& machine) {
  Json arguments{
      {"node", step.node},        {"kernel", step.kernel},
      {"flop", step.flops},       {"bytes", step.bytes},
      {"threads", event.threads}, {"floor_us", 1e6 * floor_of(step, machine).seconds() / event.threads}};
  if (event.micro_batch >= 0) arguments["micro_batch"] = event.micro_batch;
  return {{"ph", "X"},
          {"pid", process},
          {"tid", event.thread},
          {"ts", 1e6 * event.begin},
          {"dur", 1e6 * event.seconds},
          {"name", step.op},
          {"cat", category_of(step.part)},
          {"args", std::move(arguments)}};
}

}  // namespace

std::string profile_trace(const Profile& profile) {
  Json events = Json::array();
  events.push_back(
      named("process_name", 0,
            fmt::format("{} {}, batch {} (measured)", profile.name, profile.mode, profile.plan.batch)));
  for (int thread = 0; thread < profile.plan.threads; ++thread)
    events.push_back(named("thread_name", thread, fmt::format("thread {}", thread)));
  for (const target::StepEvent& event : profile.timeline.events)
    events.push_back(event_of(event, profile.timeline.steps[event.step], profile.machine));
  const Json trace{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace superstep::lab
