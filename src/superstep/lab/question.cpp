#include "superstep/lab/question.h"

#include <algorithm>

#include "superstep/base/option_range.h"
#include "superstep/machine/configuration/set_ups.h"
#include "superstep/run/user/user_model.h"

namespace superstep::lab {
namespace {

constexpr std::string_view length_option = "length=";

bool is_length(const std::string& option) { return option.starts_with(length_option); }

std::vector<std::string> without_length(std::vector<std::string> options) {
  std::erase_if(options, is_length);
  std::ranges::sort(options);
  return options;
}

std::int64_t length_of(const std::vector<std::string>& options) {
  std::int64_t length = 0;
  for (const std::string& option : options)
    if (is_length(option)) length = whole_number(option.substr(length_option.size())).value_or(0);
  return length;
}

}  // namespace

run::TrainSettings as_workload(run::TrainSettings settings) {
  const machine::Form* form = machine::form_of(settings.workload);
  if (!form || form->published_only) return settings;
  settings.workload = form->workload;
  settings.model_options.insert(settings.model_options.begin(), form->options.begin(), form->options.end());
  return settings;
}

std::string set_up_name(const run::TrainSettings& settings) {
  if (run::is_model_file(settings.workload)) return {};
  const std::vector<std::string> options = without_length(settings.model_options);
  if (options.empty()) return settings.workload;
  for (const machine::Form& form : machine::public_set_ups().forms)
    if (form.workload == settings.workload && without_length(form.options) == options) return form.name;
  return {};
}

machine::Question question_of(const run::Model& model, bool training) {
  machine::Question question{.workload = set_up_name(model.settings()),
                             .training = training,
                             .length = length_of(model.settings().model_options),
                             .fixed_batch = model.fixed_batch(),
                             .recipe_batch = training ? model.settings().batch : 1,
                             .own_recipe = true};
  if (!run::is_model_file(model.settings().workload)) {
    question.data_of = model.settings().workload;
    question.samples_per_item = model.workload().things_a_sample;
  }
  return question;
}

}  // namespace superstep::lab
