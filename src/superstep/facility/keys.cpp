#include "superstep/facility/keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"

namespace superstep::facility {

using machine::Keys;

namespace {

// Names become folders and variables of commands.
constexpr std::size_t longest_name = 64;

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_name && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

Amount amount(Keys& keys, std::string_view key, Dimension dimension, bool required) {
  const std::string text = keys.text(key, required);
  if (text.empty()) return {};
  const auto found = amount_from(text, dimension);
  if (!found) keys.refuse(key, found.error());
  return *found;
}

double exact(Keys& keys, std::string_view key, Dimension dimension, bool required) {
  const Amount found = amount(keys, key, dimension, required);
  if (!found.exact()) keys.refuse(key, "takes one value, no interval");
  return found.value;
}

double share(Keys& keys, std::string_view key) {
  const double value = keys.number(key, 0);
  if (value >= 1) keys.refuse(key, "must be below 1");
  return value;
}

Failures failures(Keys& keys, const std::string& where) {
  const auto tables = keys.tables("fails");
  if (tables.empty()) return {};
  if (tables.size() > 1) keys.refuse("fails", "must be one table");
  Keys inner(*tables.front(), where, "fails");
  Failures found{.every = exact(inner, "every", Dimension::time, true),
                 .lasts = exact(inner, "lasts", Dimension::time, true)};
  inner.refuse_others();
  return found;
}

std::vector<Named> named(Keys& keys, std::string_view kind) {
  const auto tables = keys.tables(kind);
  std::vector<Named> found;
  if (tables.empty()) return found;
  if (tables.size() > 1) keys.refuse(kind, fmt::format("must be tables with a name, [{}.NAME]", kind));
  for (const auto& [name, node] : *tables.front()) {
    if (!node.is_table()) keys.refuse(kind, fmt::format("must be tables with a name, [{}.NAME]", kind));
    if (!is_name(name.str()))
      keys.refuse(kind,
                  fmt::format("has the name '{}': names are of letters, digits, '-' and '_', at most {}",
                              printable(name.str()), longest_name));
    found.push_back({std::string(name.str()), node.as_table()});
  }
  // toml++ sorts keys; the file's own order is what people see first.
  std::ranges::stable_sort(found, {}, [](const Named& one) { return one.table->source().begin.line; });
  return found;
}

void refuse_name(const Keys& keys, std::string_view key, const std::string& name, std::string_view kind,
                 const std::vector<std::string>& known) {
  keys.refuse(key, fmt::format("'{}' is no {} of this file", name, kind), unknown_name_hint(name, known));
}

}  // namespace superstep::facility
