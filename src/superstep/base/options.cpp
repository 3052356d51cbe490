#include "superstep/base/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep {
namespace {

Error bad_value(std::string_view name, std::string_view text, std::string wanted) {
  return Error(ErrorCode::invalid_argument, fmt::format("'{}' is not {}", text, wanted),
               fmt::format("option {}", name));
}

template <class T>
T parse(std::string_view name, std::string_view text, T low, T high, const char* kind) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) throw bad_value(name, text, kind);
  if (!std::isfinite(static_cast<double>(value))) throw bad_value(name, text, "finite");
  if (!(value >= low && value <= high)) throw bad_value(name, text, fmt::format("in [{}, {}]", low, high));
  return value;
}

}  // namespace

Options::Options(std::span<const OptionSpec> specs, std::span<const std::string> assignments) {
  std::vector<std::string> names;
  for (const OptionSpec& spec : specs) {
    values_[spec.name] = spec.default_value;
    names.push_back(spec.name);
  }
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorCode::invalid_argument, "an option is written name=value", assignment);
    const std::string name = assignment.substr(0, equals);
    const auto found = values_.find(name);
    if (found == values_.end())
      throw Error(ErrorCode::invalid_argument, "no option of this name", name,
                  unknown_name_hint(name, names));
    found->second = assignment.substr(equals + 1);
  }
}

const std::string& Options::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end())
    throw Error(ErrorCode::internal, fmt::format("option {} was never declared", name));
  return found->second;
}

double Options::number(std::string_view name, double low, double high) const {
  return parse<double>(name, text(name), low, high, "a number");
}

long long Options::integer(std::string_view name, long long low, long long high) const {
  return parse<long long>(name, text(name), low, high, "a whole number");
}

bool Options::flag(std::string_view name) const {
  const std::string& value = text(name);
  for (const char* yes : {"true", "yes", "on", "1"})
    if (value == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (value == no) return false;
  throw bad_value(name, value, "yes or no");
}

int Options::choice(std::string_view name, std::span<const std::string> choices) const {
  const std::string& value = text(name);
  for (std::size_t i = 0; i < choices.size(); ++i)
    if (value == choices[i]) return static_cast<int>(i);
  throw bad_value(name, value, "one of " + join(choices, ", "));
}

}  // namespace superstep
