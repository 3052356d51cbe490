// Members of JSON that others may have written: what is missing, or is of another kind than expected, is
// `otherwise`, and so are all members of what is no object.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace superstep::record {

std::int64_t integer_member(const nlohmann::json& object, const char* name, std::int64_t otherwise);
double number_member(const nlohmann::json& object, const char* name, double otherwise);
bool flag_member(const nlohmann::json& object, const char* name, bool otherwise);
std::string text_member(const nlohmann::json& object, const char* name, const std::string& otherwise);
// An empty object where there is none.
nlohmann::json object_member(const nlohmann::json& object, const char* name);

}  // namespace superstep::record
