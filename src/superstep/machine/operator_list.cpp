#include "superstep/machine/operator_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/machine/built_in.h"
#include "superstep/machine/toml/parse_toml.h"

namespace superstep::machine {
namespace {

constexpr std::array known_keys{"id",          "name",      "source",    "machines",
                                "serves_only", "operators", "as_others", "no_derivative"};

class ListReader {
 public:
  ListReader(std::string_view text, std::string where) : where_(std::move(where)) {
    try {
      table_ = parse_toml(text);
    } catch (const toml::parse_error& error) {
      refuse(fmt::format("line {}", error.source().begin.line), std::string(error.description()));
    }
    for (const auto& [key, value] : table_)
      if (std::ranges::find(known_keys, key.str()) == known_keys.end())
        refuse(std::string(key.str()), "is not a key of a list of operators");
  }

  std::string text_of(const char* key) const {
    const auto value = table_[key].value<std::string>();
    if (!value || value->empty()) refuse(key, "is not a text");
    return *value;
  }

  bool flag_of(const char* key) const {
    const auto value = table_[key].value<bool>();
    if (!value) refuse(key, "is not true or false");
    return *value;
  }

  std::vector<std::string> names_of(const char* key) const {
    const toml::array* array = table_[key].as_array();
    if (!array) refuse(key, "is not a list of names");
    std::vector<std::string> names;
    for (const toml::node& element : *array) {
      const auto name = element.value<std::string>();
      if (!name || name->empty()) refuse(key, "has an element that is not a name");
      if (std::ranges::find(names, *name) != names.end()) refuse(key, fmt::format("has '{}' twice", *name));
      names.push_back(*name);
    }
    return names;
  }

  std::set<std::string, std::less<>> set_of(const char* key) const {
    const std::vector<std::string> names = names_of(key);
    return {names.begin(), names.end()};
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& what) const {
    throw Error(ErrorCode::bad_file, what, where_ + ": " + key);
  }

 private:
  toml::table table_;
  std::string where_;
};

std::vector<OperatorList> read_all() {
  std::vector<OperatorList> lists;
  for (const BuiltIn& file : operator_list_files())
    lists.push_back(parse_operator_list(file.text, std::string(file.id)));
  return lists;
}

}  // namespace

OperatorList parse_operator_list(std::string_view text, const std::string& where) {
  const ListReader reader(text, where);
  OperatorList list{.id = reader.text_of("id"),
                    .name = reader.text_of("name"),
                    .source = reader.text_of("source"),
                    .machines = reader.names_of("machines"),
                    .serves_only = reader.flag_of("serves_only"),
                    .operators = reader.set_of("operators"),
                    .as_others = reader.set_of("as_others"),
                    .no_derivative = reader.set_of("no_derivative")};
  for (const std::string& op : list.as_others)
    if (list.operators.contains(op)) reader.refuse("as_others", fmt::format("'{}' is in operators too", op));
  for (const std::string& op : list.no_derivative)
    if (!list.takes(op)) reader.refuse("no_derivative", fmt::format("'{}' is not taken at all", op));
  return list;
}

const std::vector<OperatorList>& operator_lists() {
  static const std::vector<OperatorList> lists = read_all();
  return lists;
}

std::vector<const OperatorList*> operator_lists_of(std::string_view machine_id) {
  std::vector<const OperatorList*> found;
  for (const OperatorList& list : operator_lists())
    if (std::ranges::find(list.machines, machine_id) != list.machines.end()) found.push_back(&list);
  return found;
}

}  // namespace superstep::machine
