#include "superstep/machine/rates/machines.h"

#include <algorithm>
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"

namespace superstep::machine {
namespace {

constexpr double tera = 1e12, giga = 1e9, mega = 1e6;
constexpr std::size_t columns = 18;  // of the header

MachineFacts facts_in(const std::vector<std::string>& cells) {
  const auto at = [&](std::size_t column, double unit) { return unit * std::atof(cells[column].c_str()); };
  MachineFacts facts{.id = cells[0], .name = cells[1], .style = cells[2]};
  double* const targets[] = {&facts.processors,  &facts.clock,       &facts.peak_f32, &facts.peak_tf32,
                             &facts.peak_bf16,   &facts.peak_f16,    &facts.peak_fp8, &facts.peak_i8,
                             &facts.memory,      &facts.memory_rate, &facts.cache,    &facts.link_rate,
                             &facts.units_joined};
  constexpr double units[] = {1, giga, tera, tera, tera, tera, tera, tera, giga, giga, mega, giga, 1};
  for (std::size_t i = 0; i < std::size(units); ++i) *targets[i] = at(3 + i, units[i]);
  complete(facts);
  return facts;
}

}  // namespace

const std::map<std::string, SheetFacts>& sheets() {
  static const auto all = [] {
    std::map<std::string, SheetFacts> read;
    for (const BuiltIn& file : rate_files()) {
      if (file.id != "machines") continue;
      for (const std::string& line : split(file.text, '\n')) {
        if (line.empty() || line.front() == '#' || line.starts_with("id,")) continue;
        const std::vector<std::string> cells = split(line, ',');
        if (cells.size() != columns)
          throw Error(ErrorCode::bad_file, "has another number of cells than its header", line);
        read[cells[0]] = {facts_in(cells), cells[columns - 1], cells[columns - 2] != "check"};
      }
    }
    return read;
  }();
  return all;
}

SheetFacts facts_named(const std::string& asked) {
  // Of two memories, the one that most tables have.
  const std::string name = asked == "v100" ? "v100-16gb" : asked;
  if (const auto found = sheets().find(name); found != sheets().end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [id, sheet] : sheets()) known.push_back(id);
  for (const Machine& machine : machines())
    if (!sheets().contains(machine.id())) known.push_back(machine.id());
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".toml");
  if (!is_file && std::ranges::find(known, name) == known.end())
    throw Error(ErrorCode::invalid_argument, "is no machine", name, unknown_name_hint(name, known));
  const Machine machine = find_machine(name);
  return {facts_of(machine), machine.file(), true};
}

}  // namespace superstep::machine
