#include "superstep/workload/recipe.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::workload {
namespace {

const std::vector<std::string> recipe_names = {"quick", "published"};

std::string optimizer_in_words(const Recipe& recipe) {
  const transform::OptimizerSpec& optimizer = recipe.optimizer;
  std::string text = transform::name_of(optimizer.kind);
  if (optimizer.momentum != 0) text += fmt::format(" of momentum {:g}", optimizer.momentum);
  text += fmt::format(" at {:g}", recipe.learning_rate);
  if (recipe.rate_of_batch > 0) text += fmt::format(" for {} samples per step", recipe.rate_of_batch);
  if (optimizer.weight_decay != 0) text += fmt::format(", weight decay {:g}", optimizer.weight_decay);
  if (optimizer.clip != 0) text += fmt::format(", gradients of a norm up to {:g}", optimizer.clip);
  return text;
}

std::string warm_up_in_words(const Schedule& schedule) {
  if (schedule.warm_up_epochs == 0 && schedule.warm_up_share == 0) return {};
  const std::string length = schedule.warm_up_epochs > 0
                                 ? fmt::format("{:g} epochs", schedule.warm_up_epochs)
                                 : fmt::format("{:g} % of the steps", 100 * schedule.warm_up_share);
  const std::string from =
      schedule.warm_up_from > 0 ? fmt::format(" from {:g}", schedule.warm_up_from) : std::string();
  return fmt::format(" after a warm-up of {}{}", length, from);
}

std::string schedule_in_words(const Schedule& schedule) {
  using Kind = Schedule::Kind;
  switch (schedule.kind) {
    case Kind::constant: return "one rate" + warm_up_in_words(schedule);
    case Kind::linear: return "linear" + warm_up_in_words(schedule);
    case Kind::cosine: return "cosine" + warm_up_in_words(schedule);
    case Kind::triangular:
    case Kind::triangular2:
      return fmt::format("{} from {:g} of it, half a cycle {:g} epochs", name_of(schedule.kind),
                         schedule.final_share, schedule.period);
    case Kind::exponential:
    case Kind::stairs:
      return fmt::format("times {:g} {} {:g} epochs{}", schedule.factor,
                         schedule.kind == Kind::stairs ? "after each" : "over each", schedule.period,
                         warm_up_in_words(schedule));
    case Kind::plateau:
      return fmt::format("times {:g} after {} epochs without a gain in {}{}", schedule.factor,
                         schedule.patience, schedule.monitor.empty() ? "the first metric" : schedule.monitor,
                         warm_up_in_words(schedule));
  }
  return {};
}

}  // namespace

const char* name_of(RecipeName name) { return recipe_names[static_cast<std::size_t>(name)].c_str(); }

RecipeName recipe_name_from_text(std::string_view text) {
  for (std::size_t i = 0; i < recipe_names.size(); ++i)
    if (recipe_names[i] == text) return static_cast<RecipeName>(i);
  throw Error(ErrorCode::invalid_argument, "there is no such recipe", std::string(text),
              unknown_name_hint(text, recipe_names));
}

std::string to_string(const Recipe& recipe) {
  std::string text = fmt::format("{}; {}; batch {}, {:g} epochs", optimizer_in_words(recipe),
                                 schedule_in_words(recipe.schedule), recipe.batch, recipe.epochs);
  if (recipe.schedule.give_up > 0)
    text += fmt::format(", fewer after {} without a gain", recipe.schedule.give_up);
  if (recipe.average > 0) text += fmt::format("; weights averaged by {:g}", recipe.average);
  for (const transform::LossTerm& term : recipe.loss.terms)
    if (term.smoothing > 0) text += fmt::format("; labels smoothed by {:g}", term.smoothing);
  if (recipe.passes > 0) text += fmt::format("; served by {} passes with masks", recipe.passes);
  if (!recipe.model_options.empty()) text += "; " + join(recipe.model_options, ", ");
  return text;
}

}  // namespace superstep::workload
