#include "superstep/record/member.h"

#include <nlohmann/json.hpp>

namespace superstep::record {

using nlohmann::json;

std::int64_t integer_member(const json& object, const char* name, std::int64_t otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

double number_member(const json& object, const char* name, double otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

bool flag_member(const json& object, const char* name, bool otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::string text_member(const json& object, const char* name, const std::string& otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

json object_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : json::object();
}

}  // namespace superstep::record
