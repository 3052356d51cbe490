#include "superstep/machine/numerics.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/machine.h"

namespace superstep::machine {
namespace {

constexpr Habit habits[] = {
    {"allreduce", "ring or tree: the order in which devices' gradients are summed"},
    {"allreduce_type", "type that they are sent and summed in"},
    {"loss_scale", "what losses are usually multiplied by"},
};

bool is_file(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".toml");
}

NamedArithmetic of_mode(const Machine& machine, std::string_view mode) {
  if (machine.numerics().empty())
    throw Error(ErrorCode::invalid_argument, "nothing is known of this machine's arithmetic", machine.id(),
                "superstep list numerics; machine files say it in [numerics] (docs/numerics.md)");
  std::vector<std::string> known;
  for (const NumericsMode& each : machine.numerics()) {
    if (mode.empty() || each.name == mode) return {machine.id() + "-" + each.name, each.arithmetic};
    known.push_back(machine.id() + "-" + each.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("the machine has no mode '{}'", mode), machine.id(),
              unknown_name_hint(fmt::format("{}-{}", machine.id(), mode), known));
}

// A built-in machine whose id the name is, or begins with; then "-" and a mode. An id itself goes first, then
// the longest id before a '-', then an id that the name abbreviates.
NamedArithmetic of_machine(std::string_view name) {
  const Machine* best = nullptr;
  for (const Machine& machine : machines()) {
    if (machine.id() == name) return of_mode(machine, "");
    const bool longer = !best || machine.id().size() > best->id().size();
    if (longer && name.starts_with(machine.id() + "-")) best = &machine;
  }
  if (best) return of_mode(*best, name.substr(best->id().size() + 1));
  const std::string_view stem = name.substr(0, name.find('-'));
  const std::string_view mode = stem.size() < name.size() ? name.substr(stem.size() + 1) : std::string_view();
  for (const Machine& machine : machines())
    if (!stem.empty() && machine.id().starts_with(stem)) return of_mode(machine, mode);
  throw Error(ErrorCode::invalid_argument, "there is no such arithmetic", std::string(name),
              unknown_name_hint(std::string(name), arithmetic_names()));
}

NamedArithmetic without_switches(std::string_view name) {
  if (const auto plain = numerics::plain_arithmetic(name)) return {std::string(name), *plain};
  if (is_file(name)) return of_mode(find_machine(std::string(name)), "");
  return of_machine(name);
}

}  // namespace

std::span<const Habit> numerics_habits() { return habits; }

NamedArithmetic find_arithmetic(std::string_view text) {
  const std::size_t colon = text.find(':');
  NamedArithmetic found = without_switches(text.substr(0, colon));
  if (colon == std::string_view::npos) return found;
  found.name += text.substr(colon);
  std::vector<std::string> given;
  for (const std::string& item : split(text.substr(colon + 1), ',')) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no switch: one is NAME=VALUE", item),
                  std::string(text), "superstep list numerics");
    const std::string name = item.substr(0, equals);
    if (std::ranges::find(given, name) != given.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is given twice", name), std::string(text));
    given.push_back(name);
    try {
      numerics::set(found.arithmetic, name, item.substr(equals + 1));
    } catch (const Error& error) {  // it knows the switch, not where it stands
      throw Error(error.code(), fmt::format("{}: {}", error.where(), error.message()), std::string(text),
                  error.hint());
    }
  }
  numerics::check(found.arithmetic, std::string(text));
  return found;
}

std::vector<std::string> arithmetic_names() {
  std::vector<std::string> names = numerics::plain_names();
  for (const Machine& machine : machines())
    for (const NumericsMode& mode : machine.numerics()) names.push_back(machine.id() + "-" + mode.name);
  return names;
}

}  // namespace superstep::machine
