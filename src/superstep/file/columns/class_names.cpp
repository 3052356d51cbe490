#include "superstep/file/columns/class_names.h"

#include <nlohmann/json.hpp>

#include "superstep/base/json.h"

namespace superstep::data::columns {

void set_class_names(std::span<TableColumn> columns, std::string_view text) {
  const nlohmann::json json = parse_json(text);
  const nlohmann::json::json_pointer features("/info/features");
  if (json.is_discarded() || !json.is_object() || !json.contains(features)) return;
  const nlohmann::json& kinds = json[features];
  for (TableColumn& column : columns) {
    if (!kinds.is_object() || !kinds.contains(column.name) || !kinds[column.name].is_object()) continue;
    const nlohmann::json& kind = kinds[column.name];
    if (!kind.contains("names") || !kind["names"].is_array() || !is_integer(column.type)) continue;
    std::vector<std::string> names;
    for (const nlohmann::json& name : kind["names"])
      if (name.is_string()) names.push_back(name.get<std::string>());
    if (names.size() == kind["names"].size()) column.classes = std::move(names);
  }
}

}  // namespace superstep::data::columns
