#include "superstep/facility/place/score.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::facility {
namespace {

// A figure that does not exist (no item came, no power is known) is as far off as a thousand times its limit.
constexpr double excess_of_none = 6.9;

}  // namespace

const std::vector<std::string>& aim_names() {
  static const std::vector<std::string> names{"end", "latency", "cost", "energy"};
  return names;
}

Aim aim_from_name(const std::string& name) {
  const auto found = std::ranges::find(aim_names(), name);
  if (found == aim_names().end())
    throw Error(ErrorCode::invalid_argument, "'" + name + "' is nothing to choose by", "--for",
                unknown_name_hint(name, aim_names()));
  return static_cast<Aim>(found - aim_names().begin());
}

int task_of_latency(const Workflow& workflow) {
  for (const Target& target : workflow.targets)
    if (target.wish == Wish::latency) return target.task;
  return workflow.order.back();
}

Target target_of(const Workflow& workflow, Aim aim) {
  switch (aim) {
    case Aim::end: return {.name = "end", .wish = Wish::end};
    case Aim::latency: {
      for (const Target& target : workflow.targets)
        if (target.wish == Wish::latency) return target;
      return {.name = "latency", .wish = Wish::latency, .task = task_of_latency(workflow)};
    }
    case Aim::cost: return {.name = "cost", .wish = Wish::cost};
    case Aim::energy: return {.name = "energy", .wish = Wish::energy};
  }
  return {};
}

Score score_of(const Workflow& workflow, const std::vector<double>& figures, double value) {
  Score score{.value = std::isfinite(value) ? value : 1e30};
  for (std::size_t k = 0; k < figures.size(); ++k) {
    const double limit = workflow.targets[k].limit;
    if (!std::isfinite(figures[k]))
      score.excess += excess_of_none;
    else if (figures[k] > limit)
      score.excess += std::log(figures[k] / limit);
  }
  return score;
}

Score score_of(const Workflow& workflow, Aim aim, const Simulated& simulated) {
  std::vector<double> figures;
  for (const Target& target : workflow.targets) figures.push_back(figure_of(target, simulated));
  return score_of(workflow, figures, figure_of(target_of(workflow, aim), simulated));
}

}  // namespace superstep::facility
