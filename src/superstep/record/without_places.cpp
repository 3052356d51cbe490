#include "superstep/record/without_places.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace superstep::record {
namespace {

using nlohmann::json;

// What stands behind a '=' or a ',' counts, too: "name=/home/me/model.onnx".
std::string shortened(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || text[at - 1] == '=' || text[at - 1] == ',' || text[at - 1] == ' ';
    const bool is_path = begins && (text[at] == '/' || text.compare(at, 2, "~/") == 0);
    const std::size_t end = is_path ? std::min(text.find_first_of(",\n", at), text.size()) : at + 1;
    const std::string part = text.substr(at, end - at);
    const std::filesystem::path path = std::filesystem::path(part).lexically_normal();
    result += !is_path              ? part
              : path.has_filename() ? path.filename().string()
                                    : path.parent_path().filename().string();
    at = end;
  }
  return result;
}

void shorten(json& value) {
  if (value.is_string()) value = shortened(value.get<std::string>());
  if (value.is_structured())
    for (json& inner : value) shorten(inner);
}

}  // namespace

json without_places(json facts) {
  shorten(facts);
  return facts;
}

Result without_places(Result result) {
  if (result.environment.is_object())
    for (auto& [name, part] : result.environment.items())
      if (name == "hostname")
        part = nullptr;
      else if (part.is_object() && part.contains("hostname"))
        part["hostname"] = nullptr;
  for (json* part : {&result.environment, &result.parameters, &result.config, &result.details})
    shorten(*part);
  result.workload = shortened(result.workload);
  result.id = shortened(result.id);
  result.folder = shortened(result.folder);
  return result;
}

}  // namespace superstep::record
