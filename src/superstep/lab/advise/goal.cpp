#include "superstep/lab/advise/goal.h"

#include <array>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

struct GoalWords {
  Goal goal;
  const char *name, *unit;
  bool larger;
};

constexpr std::array<GoalWords, 5> table{{{Goal::throughput, "throughput", "samples/s", true},
                                          {Goal::latency, "latency", "s", false},
                                          {Goal::time_to_quality, "time-to-quality", "s", false},
                                          {Goal::energy, "energy", "J", false},
                                          {Goal::cost, "cost", "", false}}};

const GoalWords& words_of(Goal goal) { return table[static_cast<std::size_t>(goal)]; }

Figure scaled(const Figure& figure, double factor) {
  return {figure.value * factor, figure.low * factor, figure.high * factor};
}

// Samples of a unit of cost: a million, or a whole training.
double bought_samples(const GoalContext& context) {
  return context.recipe_samples > 0 ? context.recipe_samples : 1e6;
}

}  // namespace

const char* name_of(Goal goal) { return words_of(goal).name; }
const char* unit_of(Goal goal) { return words_of(goal).unit; }
bool larger_is_better(Goal goal) { return words_of(goal).larger; }

const std::vector<std::string>& goal_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const GoalWords& words : table) all.emplace_back(words.name);
    return all;
  }();
  return names;
}

Goal goal_from_name(std::string_view name) {
  for (const GoalWords& words : table)
    if (name == words.name) return words.goal;
  throw Error(ErrorCode::invalid_argument, "nothing is known of the goal '" + std::string(name) + "'",
              "--for", unknown_name_hint(name, goal_names()));
}

Figure fed_seconds(const machine::Prediction& prediction) {
  return {prediction.host.without_loader(prediction.step_seconds), prediction.fed.low_without_loader,
          prediction.fed.high_without_loader};
}

Figure figure_of(Goal goal, const machine::Prediction& prediction, const GoalContext& context) {
  if (!prediction.fits || prediction.samples <= 0) return {};
  const Figure step = fed_seconds(prediction);
  const Figure sample = scaled(step, 1 / prediction.samples);
  switch (goal) {
    case Goal::throughput: return {1 / sample.value, 1 / sample.high, 1 / sample.low};
    case Goal::latency: return step;
    case Goal::time_to_quality: return scaled(sample, context.recipe_samples);
    case Goal::energy: return scaled(sample, context.unit_power * prediction.units);
    case Goal::cost: {
      constexpr double seconds_an_hour = 3600;
      return scaled(sample,
                    context.unit_price * prediction.units * bought_samples(context) / seconds_an_hour);
    }
  }
  return {};
}

}  // namespace superstep::lab
