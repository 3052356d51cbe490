// A table of a TOML file, every key of which is asked for once; what is wrong is refused by file and line.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::machine {

// A document that a user wrote; `where` is its file. Throws Error (invalid_argument) with file and line.
toml::table users_toml(std::string_view text, const std::string& where);

class Keys {
 public:
  // `what` is named where a key is unknown: "a study", "[measure]".
  Keys(const toml::table& table, std::string file, std::string what)
      : table_(table), file_(std::move(file)), what_(std::move(what)) {}

  bool has(std::string_view key) const { return table_.contains(key); }
  std::string text(std::string_view key, bool required = false);
  std::string one_of(std::string_view key, const std::vector<std::string>& known, bool required = false);
  bool flag(std::string_view key);
  std::int64_t count(std::string_view key, std::int64_t otherwise = 0);
  double number(std::string_view key, double otherwise);
  // A text or a whole number, or a list of them; empty where there is none.
  std::vector<std::string> list(std::string_view key);
  // The tables of [[key]], or of [key].
  std::vector<const toml::table*> tables(std::string_view key);

  void refuse_others() const;
  [[noreturn]] void refuse(std::string_view key, const std::string& what, std::string hint = {}) const;
  std::string where() const;  // "my.toml:12"

 private:
  const toml::node* take(std::string_view key);

  const toml::table& table_;
  std::string file_, what_;
  std::vector<std::string> asked_;
};

}  // namespace superstep::machine
