// Members of a JSON file that a person wrote: what is wrong with one is said with its name.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::design {

// A value in a file and the way to it: "unknowns.purge_a". All that refuse throw Error (bad_file) with both.
class JsonMember {
 public:
  JsonMember(const nlohmann::json& value, std::string where, std::string path = {})
      : value_(&value), where_(std::move(where)), path_(std::move(path)) {}

  const nlohmann::json& json() const { return *value_; }
  const std::string& path() const { return path_; }
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const;

  void require_object() const;
  // That an object has no other members than these: a misspelt name is not passed over.
  void allow(std::initializer_list<std::string_view> names) const;
  std::optional<JsonMember> find(std::string_view name) const;
  JsonMember at(std::string_view name) const;  // refuses where it is missing

  double number(double low, double high) const;  // within [low, high]
  int whole(int low, int high) const;
  std::string text() const;
  std::vector<double> numbers() const;  // finite

 private:
  const nlohmann::json* value_;
  std::string where_, path_;
};

}  // namespace superstep::design
