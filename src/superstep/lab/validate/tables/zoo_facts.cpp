#include "superstep/lab/validate/tables/zoo_facts.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/lab/validate/row_run.h"
#include "superstep/machine/configuration/set_ups.h"
#include "superstep/machine/rates/sums.h"
#include "superstep/run/model.h"

namespace superstep::lab {
namespace {

graph::Graph served(const std::string& name, std::int64_t length) {
  std::vector<std::string> options;
  if (const machine::Form* form = machine::form_of(name)) options = form->options;
  if (length > 0) options.push_back(fmt::format("length={}", length));
  return run::Model({.workload = known_workload(name), .model_options = options}).inference()(1);
}

}  // namespace

std::optional<ModelFacts> zoo_facts(const std::string& name, std::int64_t length) {
  if (known_workload(name).empty()) return std::nullopt;
  ModelFacts facts{.kind = "model"};
  try {
    facts.sums = machine::sums_of(served(name, length), 1);
  } catch (const Error&) {
    return std::nullopt;  // no option of this model: it has no sequences, or none that long
  }
  return facts;
}

}  // namespace superstep::lab
