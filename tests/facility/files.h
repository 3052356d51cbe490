// Facilities and workflows of tests: what all of them need, and room for what one is about.
#pragma once

#include <fmt/format.h>

#include <string>

#include "superstep/facility/place/search.h"

namespace superstep::facility {

// Two sites, a link of 1 MB/s between them, and four devices at each.
inline std::string two_sites(const std::string& more = {}, const std::string& of_far = {},
                             const std::string& of_link = {}) {
  return fmt::format(R"(name = "two sites"
currency = "EUR"
[site.near]
[site.far]
[link.line]
between = ["near", "far"]
rate = "1 MB/s"
{}
[partition.near]
at = "near"
devices = 4
price = 1
power = "100 W"
[partition.far]
at = "far"
devices = 4
price = 2
power = "50 W"
{}
{}
)",
                     of_link, of_far, more);
}

// With every task at the first of its choices.
inline Problem problem_of(const std::string& workflow, const std::string& facility) {
  Problem problem;
  problem.workflow = parse_workflow(workflow, "workflow.toml");
  problem.facility = parse_facility(facility, "facility.toml");
  problem.source_sites = sites_of_sources(problem.workflow, problem.facility);
  problem.choices = choices_of(problem.workflow, problem.facility, {});
  problem.power = power_of(problem.facility);
  return problem;
}

inline Simulated simulated(const Problem& problem, const SimulationSettings& settings = {},
                           std::vector<int> chosen = {}) {
  chosen.resize(problem.workflow.tasks.size(), 0);
  const Plan plan = problem.plan_of(chosen);
  return simulate(plan, settings);
}

inline Simulated simulated(const std::string& workflow, const std::string& facility,
                           const SimulationSettings& settings = {}) {
  return simulated(problem_of(workflow, facility), settings);
}

}  // namespace superstep::facility
