#include "superstep/lab/by_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/machine/rates/choices.h"
#include "superstep/machine/rates/network_by_law.h"
#include "superstep/machine/rates/sheet_machine.h"
#include "superstep/machine/rates/sums.h"

namespace superstep::lab {
namespace {

using machine::Machine;

// A sheet's own style: more kinds of machines are told apart there than there are models.
machine::MachineFacts stated_of(const Machine& machine) {
  const bool built_in = std::ranges::any_of(
      machine::machines(), [&](const Machine& one) { return one.digest() == machine.digest(); });
  return built_in || of_sheet(machine) ? machine::facts_named(machine.id()).facts
                                       : machine::facts_of(machine);
}

bool law_is_nearer(const Machine& machine, bool training) {
  const machine::Choice* choice = machine::kept_choice(name_of(machine.style()), training);
  return choice && choice->law();
}

}  // namespace

bool of_sheet(const Machine& machine) {
  return machine.file().starts_with("the data sheet of ") && machine::sheets().contains(machine.id());
}

ModelByLaw::ModelByLaw(const run::Model& model, bool training) : training_(training) {
  const std::int64_t batch = std::max<std::int64_t>(1, model.fixed_batch());
  sums_ = machine::sums_of(model.inference()(batch), static_cast<double>(batch));
}

Machine ModelByLaw::on(Machine machine, const std::string& software) const {
  if (machine.stack() || machine.processor() || sums_.macs <= 0) return machine;
  if (!law_is_nearer(machine, training_)) return machine;
  machine::NetworkByLaw network{.facts = stated_of(machine), .sums = sums_, .training = training_};
  if (!software.empty()) network.software = software;
  machine.set_by_law(std::make_shared<const machine::NetworkByLaw>(std::move(network)));
  return machine;
}

std::string why_by_law(const Machine& machine, bool training, bool by_law) {
  const machine::Choice* choice = machine::kept_choice(name_of(machine.style()), training);
  if (!choice) return {};
  // A mean of |log error| as a factor that a value is off by.
  const auto off = [](double error) { return fmt::format("{:.2f}", std::exp(error)); };
  if (by_law)
    return fmt::format(
        "by the law of networks: over {} measured ones it is off by a factor of {}, the model of such "
        "machines "
        "by {}",
        choice->rows, off(choice->law_error), off(choice->model_error));
  if (choice->law())
    return "by the model of such machines: the law of networks knows none that are so small, nor pipelines";
  return fmt::format(
      "by the model of such machines: over {} measured networks it is off by a factor of {}, the law of "
      "networks "
      "by {}",
      choice->rows, off(choice->model_error), off(choice->law_error));
}

std::vector<Machine> machines_of_sheets() {
  std::vector<Machine> made;
  for (const auto& [id, sheet] : machine::sheets()) {
    const bool known =
        std::ranges::any_of(machine::machines(), [&](const Machine& one) { return one.id() == id; });
    if (!known && machine::can_be_made(sheet.facts)) made.push_back(machine::machine_of(sheet));
  }
  return made;
}

}  // namespace superstep::lab
