// Where machines are found: built in, by their data sheets, in files (machine.h).
#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/rates/sheet_machine.h"

namespace superstep::machine {
namespace {

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

}  // namespace

const std::vector<Machine>& machines() {
  static const std::vector<Machine> table = [] {
    std::vector<Machine> parsed;
    for (const BuiltIn& file : built_in_files()) {
      parsed.push_back(parse_machine(file.text, fmt::format("machines/{}.toml", file.id)));
      parsed.back().set_file(fmt::format("built in: machines/{}.toml", file.id));
    }
    return parsed;
  }();
  return table;
}

Machine find_machine(const std::string& name_or_path) {
  if (is_path(name_or_path)) {
    Machine machine = parse_machine(read_text_file(name_or_path), name_or_path);
    machine.set_file(name_or_path);
    return machine;
  }
  std::vector<std::string> names;
  for (const Machine& machine : machines()) {
    if (machine.id() == name_or_path) return machine;
    names.push_back(machine.id());
  }
  if (const auto sheet = sheets().find(name_or_path); sheet != sheets().end())
    return machine_of(sheet->second);
  for (const auto& [id, sheet] : sheets())
    if (can_be_made(sheet.facts) && std::ranges::find(names, id) == names.end()) names.push_back(id);
  throw Error(ErrorCode::invalid_argument, "there is no such machine", name_or_path,
              unknown_name_hint(name_or_path, names));
}

}  // namespace superstep::machine
