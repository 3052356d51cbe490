// Options of the form name=value ("--set photons=1e6"), as generators and conventional methods take them.
//
// A table of OptionSpec says what there is, so that help texts, defaults and refusals of unknown names all
// come from one place.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep {

struct OptionSpec {
  std::string name;
  std::string default_value;  // as the user would write it
  std::string help;           // one line, with the unit
};

class Options {
 public:
  // Every option of `specs` at its default, then `assignments` ("name=value") on top. Throws Error
  // (invalid_argument) on an unknown name, with the nearest one, and on a text without '='.
  Options(std::span<const OptionSpec> specs, std::span<const std::string> assignments);

  // Each throws Error (invalid_argument) when the text is not of that kind or outside [low, high].
  const std::string& text(std::string_view name) const;
  double number(std::string_view name, double low, double high) const;
  long long integer(std::string_view name, long long low, long long high) const;
  bool flag(std::string_view name) const;  // true/false, yes/no, on/off, 1/0
  // One of `choices`, as its position.
  int choice(std::string_view name, std::span<const std::string> choices) const;

  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace superstep
