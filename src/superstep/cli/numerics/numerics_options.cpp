#include "superstep/cli/numerics/numerics_options.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/machine.h"
#include "superstep/target/numerics/numerics_target.h"

namespace superstep::cli {
namespace {

// "published" and the like, of a fact's kind.
const char* known_as(machine::Kind kind) {
  switch (kind) {
    case machine::Kind::measured: return "measured";
    case machine::Kind::vendor_code:
    case machine::Kind::datasheet: return "published";
    case machine::Kind::derived: return "derived";
    case machine::Kind::guess: break;
  }
  return "assumed";
}

void list_mode(const machine::Machine& machine, const machine::NumericsMode& mode, bool usual) {
  fmt::print("\n{}-{}{}: {}\n", machine.id(), mode.name,
             usual ? fmt::format(" (also: {})", machine.id()) : "", numerics::to_string(mode.arithmetic));
  TextTable table({"setting", "value", "is", "source, note"});
  for (const machine::NumericsFact& fact : mode.facts)
    table.add_row({fact.setting, fact.value, known_as(fact.kind),
                   fact.source + (fact.source.empty() || fact.note.empty() ? "" : ": ") + fact.note});
  fmt::print("{}", table.to_string());
}

}  // namespace

void add_numerics_options(CLI::App& command, std::string& target) {
  const auto named = std::make_shared<std::string>();
  command
      .add_option_function<std::string>(
          "--numerics",
          [named, &target](const std::string& name) {
            if (target != "cpu")
              throw Error(ErrorCode::invalid_argument, "arithmetic is emulated on the cpu", "--on " + target,
                          "leave --on or --numerics out");
            *named = name;
            target = target::numerics::numerics_target_name(name, {});
          },
          "compute as this machine does, on the cpu: gc200, a100-tf32, ...: superstep list numerics")
      ->type_name("NAME");
  command
      .add_option_function<std::vector<std::string>>(
          "--numerics-of",
          [named, &target](const std::vector<std::string>& nodes) {
            if (named->empty())
              throw Error(ErrorCode::invalid_argument,
                          "goes with --numerics, which says what all other nodes are in", "--numerics-of",
                          "--numerics f32 --numerics-of " + nodes.front());
            target = target::numerics::numerics_target_name(*named, nodes);
          },
          "with --numerics: nodes in another arithmetic, by their names; may be repeated")
      ->type_name("PATTERN=NAME")
      ->allow_extra_args(false);
}

std::string numerics_of_target(std::string_view target) {
  const std::string_view prefix = target::numerics::target_prefix;
  return target.starts_with(prefix) ? std::string(target.substr(prefix.size())) : std::string();
}

void list_numerics() {
  fmt::print("{}\n", "Arithmetic that is no machine's");
  TextTable plain({"name", "what it is"});
  for (const std::string& name : numerics::plain_names())
    plain.add_row({name, numerics::to_string(*numerics::plain_arithmetic(name))});
  fmt::print("{}\nSwitches of all of them, --numerics NAME:SWITCH=VALUE,...\n", plain.to_string());
  TextTable switches({"switch", "what it is"});
  for (const numerics::Setting& setting : numerics::settings())
    switches.add_row({std::string(setting.name), std::string(setting.meaning)});
  for (const machine::Habit& habit : machine::numerics_habits())
    switches.add_row({std::string(habit.name), std::string(habit.meaning) + " (told, not followed)"});
  fmt::print("{}", switches.to_string());
  for (const machine::Machine& machine : machine::machines())
    for (const machine::NumericsMode& mode : machine.numerics())
      list_mode(machine, mode, &mode == &machine.numerics().front());
}

}  // namespace superstep::cli
