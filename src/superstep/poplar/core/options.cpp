#include <cstdlib>
#include <nlohmann/json.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/base/json.h"

namespace poplar {
namespace {

using Json = nlohmann::ordered_json;

void set_from(const Json& json, OptionFlags& flags) {
  if (!json.is_object())
    throw parse_error("options are a JSON object of names and values: {\"name\": \"value\"}");
  OptionFlags read;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_primitive() || value.is_null())
      throw parse_error("the option '" + name + "' is text, a number, true or false");
    read.set(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const auto& [name, value] : read) flags.set(name, value);
}

Json parsed(const std::string& text, const std::string& where) {
  // Options stand in their order: the depth is what the one reader would look at, too.
  const bool shallow = superstep::depth_of_json(text) <= superstep::deepest_json;
  Json json = shallow ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
  if (json.is_discarded()) throw parse_error(where + " is no JSON: " + text.substr(0, 80));
  return json;
}

}  // namespace

const std::string& OptionFlags::at(StringRef option) const {
  const auto found = flags_.find(option);
  if (found == flags_.end()) throw invalid_option("the option '" + option + "' is not set");
  return found->second;
}

std::ostream& operator<<(std::ostream& out, const OptionFlags& flags) {
  Json json = Json::object();
  for (const auto& [name, value] : flags) json[name] = value;
  return out << json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ProfileValue getAsProfileValue(const OptionFlags& flags) {
  ProfileValue::Map values;
  for (const auto& [name, value] : flags) values.emplace(name, value);
  return values;
}

void readJSON(StringRef text, OptionFlags& flags) {
  set_from(parsed(text, "what options are read from"), flags);
}

void readJSON(std::istream& in, OptionFlags& flags) {
  readJSON(std::string(std::istreambuf_iterator<char>(in), {}), flags);
}

void readJSONFromEnv(StringRef variable, OptionFlags& flags) {
  const std::string name = variable;
  const char* text = std::getenv(name.c_str());
  if (text && *text) set_from(parsed(text, "the environment variable " + name), flags);
}

}  // namespace poplar
