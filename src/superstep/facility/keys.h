// Keys of these files that are quantities, beside those that every TOML file has.
#pragma once

#include <string>
#include <string_view>

#include "superstep/facility/facility.h"
#include "superstep/facility/quantities.h"
#include "superstep/machine/toml/toml_keys.h"

namespace superstep::facility {

// 0 where it is not there and not required. Each refuses with file, line and key.
Amount amount(machine::Keys& keys, std::string_view key, Dimension dimension, bool required = false);
// The same of a key that takes no interval.
double exact(machine::Keys& keys, std::string_view key, Dimension dimension, bool required = false);
// A number from 0 to below 1.
double share(machine::Keys& keys, std::string_view key);
// { every = "30 d", lasts = "10 min" }
Failures failures(machine::Keys& keys, const std::string& where);

// The tables [kind.NAME], in the order of the file.
struct Named {
  std::string name;
  const toml::table* table;
};
std::vector<Named> named(machine::Keys& keys, std::string_view kind);

// The position of `name` among things that have one. Refuses at `key` with what there is.
template <class Things>
int position_of(const machine::Keys& keys, std::string_view key, const Things& things,
                const std::string& name, std::string_view kind);

[[noreturn]] void refuse_name(const machine::Keys& keys, std::string_view key, const std::string& name,
                              std::string_view kind, const std::vector<std::string>& known);

template <class Things>
int position_of(const machine::Keys& keys, std::string_view key, const Things& things,
                const std::string& name, std::string_view kind) {
  std::vector<std::string> known;
  for (const auto& thing : things) {
    if (thing.name == name) return static_cast<int>(known.size());
    known.push_back(thing.name);
  }
  refuse_name(keys, key, name, kind, known);
}

}  // namespace superstep::facility
