// Where every item of a run comes from, in PROV-JSON (W3C Member Submission, 2013).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/facility/run/firing_folder.h"
#include "superstep/facility/run/run.h"

namespace superstep::facility {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string entity(const Workflow& workflow, const ItemName& item) {
  const std::string& name =
      item.of_source ? workflow.sources[item.producer].name : workflow.tasks[item.producer].name;
  return fmt::format("ss:{}/{:05}", name, item.number);
}

void add_firing(Json& prov, const Workflow& workflow, const FiringRecord& firing, const std::string& agent) {
  const std::string& task = workflow.tasks[firing.task].name;
  const std::string activity = fmt::format("ss:firing/{}/{:05}", task, firing.number);
  const std::string gives = entity(workflow, {false, firing.task, firing.number});
  prov["activity"][activity] = {{"prov:label", task},
                                {"ss:begun", firing.begun},
                                {"ss:ended", *firing.ended},
                                {"ss:emulated", firing.emulated},
                                {"ss:command", workflow.tasks[firing.task].run}};
  if (!firing.job.empty()) prov["activity"][activity]["ss:slurmJob"] = firing.job;
  prov["entity"][gives] = {{"prov:location", fmt::format("work/{}/{:05}/out", task, firing.number)}};
  prov["wasGeneratedBy"]["_:g" + gives] = {{"prov:entity", gives}, {"prov:activity", activity}};
  prov["wasAssociatedWith"]["_:a" + activity] = {{"prov:activity", activity}, {"prov:agent", agent}};
  for (std::size_t i = 0; i < firing.taken.size(); ++i) {
    const std::string used = entity(workflow, firing.taken[i].second);
    if (!prov["entity"].contains(used)) prov["entity"][used] = Json::object();
    prov["used"][fmt::format("_:u{}/{}", activity, i)] = {{"prov:activity", activity}, {"prov:entity", used}};
  }
}

}  // namespace

std::string provenance_of(const RunSettings& settings, const Ran& ran) {
  const Workflow& workflow = ran.placed.problem.workflow;
  Json prov{{"prefix", {{"ss", "urn:superstep:run:"}}}};
  for (const char* kind : {"entity", "activity", "agent", "used", "wasGeneratedBy", "wasAssociatedWith"})
    prov[kind] = Json::object();
  for (std::size_t t = 0; t < workflow.tasks.size(); ++t) {
    const std::string agent =
        "ss:partition/" +
        ran.placed.problem.facility
            .partitions[static_cast<std::size_t>(
                ran.placed.problem.choices[t]
                    .choices[static_cast<std::size_t>(ran.placed.best.front().candidate.chosen[t])]
                    .place.partition)]
            .name;
    prov["agent"][agent] = Json::object();
    for (const auto& entry : fs::directory_iterator(settings.out / "work" / workflow.tasks[t].name)) {
      auto firing = read_firing(entry.path());
      if (!firing || !firing->ended) continue;
      firing->task = t;
      firing->number = std::stoul("0" + entry.path().filename().string());
      add_firing(prov, workflow, *firing, agent);
    }
  }
  return prov.dump(1) + "\n";
}

}  // namespace superstep::facility
