#include "superstep/machine/toml/toml_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/toml/parse_toml.h"
#include "superstep/machine/toml/toml_text.h"

namespace superstep::machine {
namespace {

constexpr std::int64_t largest_count = 1'000'000'000'000;

std::optional<std::string> word_of(const toml::node& node) {
  if (const auto text = node.value<std::string>(); node.is_string() && text && !text->empty()) return text;
  if (const auto number = node.value<std::int64_t>(); node.is_integer() && number)
    return fmt::format("{}", *number);
  return std::nullopt;
}

}  // namespace

toml::table users_toml(std::string_view text, const std::string& where) {
  try {
    return parse_toml(in_ascii(text));
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::invalid_argument, std::string(error.description()),
                fmt::format("{}:{}", where, error.source().begin.line));
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, error.message(), where, error.hint());
  }
}

const toml::node* Keys::take(std::string_view key) {
  asked_.emplace_back(key);
  return table_.get(key);
}

std::string Keys::text(std::string_view key, bool required) {
  const toml::node* node = take(key);
  if (!node && required) refuse(key, "is missing");
  if (!node) return {};
  const auto text = node->value<std::string>();
  if (!node->is_string() || !text || text->empty()) refuse(key, "must be a text");
  return *text;
}

std::string Keys::one_of(std::string_view key, const std::vector<std::string>& known, bool required) {
  std::string word = text(key, required);
  if (!word.empty() && std::ranges::find(known, word) == known.end())
    refuse(key, fmt::format("'{}' is none of {}", word, join(known, ", ")), unknown_name_hint(word, known));
  return word;
}

bool Keys::flag(std::string_view key) {
  const toml::node* node = take(key);
  if (node && !node->is_boolean()) refuse(key, "must be true or false");
  return node && node->value_or(false);
}

std::int64_t Keys::count(std::string_view key, std::int64_t otherwise) {
  const toml::node* node = take(key);
  if (!node) return otherwise;
  const auto value = node->value<std::int64_t>();
  if (!node->is_integer() || !value || *value < 1 || *value > largest_count)
    refuse(key, "must be a whole number, 1 or more");
  return *value;
}

double Keys::number(std::string_view key, double otherwise) {
  const toml::node* node = take(key);
  if (!node) return otherwise;
  const auto value = node->value<double>();
  if (!node->is_number() || !value || !(*value > 0) || *value > static_cast<double>(largest_count))
    refuse(key, "must be a number above zero");
  return *value;
}

std::vector<std::string> Keys::list(std::string_view key) {
  const toml::node* node = take(key);
  if (!node) return {};
  std::vector<std::string> words;
  const auto add = [&](const toml::node& element) {
    const std::optional<std::string> word = word_of(element);
    if (!word) refuse(key, "must be a text or a whole number, or a list of them");
    words.push_back(*word);
  };
  if (const toml::array* array = node->as_array()) {
    for (const toml::node& element : *array) add(element);
    if (words.empty()) refuse(key, "is an empty list");
  } else {
    add(*node);
  }
  return words;
}

std::vector<const toml::table*> Keys::tables(std::string_view key) {
  const toml::node* node = take(key);
  if (!node) return {};
  if (const toml::table* table = node->as_table()) return {table};
  std::vector<const toml::table*> found;
  const toml::array* array = node->as_array();
  if (array)
    for (const toml::node& element : *array)
      if (const toml::table* table = element.as_table()) found.push_back(table);
  if (!array || found.size() != array->size())
    refuse(key, fmt::format("must be a table, [{0}] or [[{0}]]", key));
  return found;
}

void Keys::refuse_others() const {
  for (const auto& [key, value] : table_)
    if (std::ranges::find(asked_, key.str()) == asked_.end())
      refuse(key.str(), fmt::format("is not a key of {}", what_), unknown_name_hint(key.str(), asked_));
}

void Keys::refuse(std::string_view key, const std::string& what, std::string hint) const {
  std::uint32_t line = table_.source().begin.line;
  for (const auto& [name, value] : table_)
    if (name.str() == key) line = name.source().begin.line;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {}", key, what),
              fmt::format("{}:{}", file_, std::max(line, 1U)), std::move(hint));
}

std::string Keys::where() const {
  return fmt::format("{}:{}", file_, std::max(table_.source().begin.line, 1U));
}

}  // namespace superstep::machine
