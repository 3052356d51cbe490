#include "superstep/design/json_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/text.h"

namespace superstep::design {

void JsonMember::refuse(const std::string& what, const std::string& hint) const {
  throw Error(ErrorCode::bad_file, path_.empty() ? what : fmt::format("'{}' {}", printable(path_), what),
              where_, hint);
}

void JsonMember::require_object() const {
  if (!value_->is_object()) refuse("must be an object: { ... }");
}

void JsonMember::allow(std::initializer_list<std::string_view> names) const {
  require_object();
  const std::vector<std::string> known(names.begin(), names.end());
  for (const auto& [name, value] : value_->items())
    if (std::ranges::find(known, name) == known.end())
      JsonMember(value, where_, path_.empty() ? name : path_ + "." + name)
          .refuse("is no member that is known here", unknown_name_hint(name, known));
}

std::optional<JsonMember> JsonMember::find(std::string_view name) const {
  require_object();
  const auto found = value_->find(std::string(name));
  if (found == value_->end()) return {};
  return JsonMember(*found, where_, path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name));
}

JsonMember JsonMember::at(std::string_view name) const {
  if (const auto member = find(name)) return *member;
  refuse(fmt::format("{}lacks '{}'", path_.empty() ? "the file " : "", name));
}

double JsonMember::number(double low, double high) const {
  if (!value_->is_number()) refuse("must be a number");
  const double number = value_->get<double>();
  if (!(number >= low && number <= high))
    refuse(fmt::format("is {}, must be from {} to {}", number, low, high));
  return number;
}

int JsonMember::whole(int low, int high) const {
  const double value = number(low, high);
  if (value != std::floor(value)) refuse(fmt::format("is {}, must be a whole number", value));
  return static_cast<int>(value);
}

std::string JsonMember::text() const {
  if (!value_->is_string()) refuse("must be a text in quotes");
  return value_->get<std::string>();
}

std::vector<double> JsonMember::numbers() const {
  const auto finite = [](const nlohmann::json& v) { return v.is_number() && std::isfinite(v.get<double>()); };
  if (!value_->is_array() || value_->empty() || !std::ranges::all_of(*value_, finite))
    refuse("must be a list of numbers: [1, 2, ...]");
  return value_->get<std::vector<double>>();
}

}  // namespace superstep::design
