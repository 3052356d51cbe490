#include "superstep/study/quality/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/machine.h"
#include "superstep/run/model.h"

namespace superstep::study {
namespace {

struct RuleName {
  RateRule rule;
  const char* name;
};
constexpr std::array rules{RuleName{RateRule::none, "none"}, RuleName{RateRule::square_root, "sqrt"},
                           RuleName{RateRule::linear, "linear"}};

void require(bool met, const std::string& words, const std::string& where, const std::string& hint = {}) {
  if (!met) throw Error(ErrorCode::invalid_argument, words, where, hint);
}

}  // namespace

const char* name_of(RateRule rule) { return rules[static_cast<std::size_t>(rule)].name; }

RateRule rate_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const RuleName& each : rules) {
    if (name == each.name) return each.rule;
    names.emplace_back(each.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no rule", name), "--rate-rule",
              unknown_name_hint(name, names));
}

void check(const QualitySettings& settings) {
  require(!run::is_model_file(settings.workload),
          "is a model file, whose quality nobody has named: a workload of the zoo is trained",
          settings.workload, "superstep list workloads");
  require(!settings.batches.empty(), "needs a batch at least", "--batch");
  require(settings.seeds > 0, "needs a seed at least", "--seeds");
  for (const std::string& precision : settings.precisions) {
    const run::Model model(
        {.workload = settings.workload, .precision = precision, .model_options = settings.options});
    run::check_until(settings.until, model.workload());
    model.passes(true);  // what cannot be trained in is refused before anything is
  }
  if (settings.samples > 0)
    for (const std::int64_t batch : settings.batches)
      require(batch <= settings.samples,
              fmt::format("{} samples are more than there are ({})", batch, settings.samples), "--batch",
              "give more --samples");
  for (const std::string& name : settings.machines) {
    const machine::Machine machine = machine::find_machine(name);
    require(!machine.processor(), "is a processor, whose time is measured: leave it away", name);
  }
  for (const auto& [name, price] : settings.prices)
    require(std::ranges::find(settings.machines, name) != settings.machines.end(),
            "is not among the machines of --on", name, "--price is of a machine that is asked for");
}

}  // namespace superstep::study
