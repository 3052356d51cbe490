#include "superstep/cli/call/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/machine/toml/parse_toml.h"
#include "superstep/machine/toml/toml_text.h"

namespace superstep::cli {
namespace {

using Words = std::vector<std::string>;

constexpr const char* option_name = "--config";
// Other commands have a --config of another meaning: this is the one that is a file of options.
constexpr const char* option_text =
    "options from this file, 'epochs = 20' a line; those of the command line override it";

bool has_config_file(const CLI::App& command) {
  const CLI::Option* const option = command.get_option_no_throw(option_name);
  return option && option->get_description() == option_text;
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

const CLI::App* find_command(const std::string& name, const CLI::App& program) {
  const auto found = program.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found[0];
}

// Whether one of the words behind the command is no option and no value of one.
bool has_positional(const Words& words, const CLI::App& command) {
  int values = 0;  // that may still follow the last option
  for (auto word = words.begin() + 1; word < words.end(); ++word) {
    if (word->starts_with("--")) {
      const std::size_t equals = word->find('=');
      const CLI::Option* const option = command.get_option_no_throw(word->substr(0, equals));
      values = option && equals == std::string::npos ? option->get_items_expected_max() : 0;
    } else if (values-- <= 0) {
      return true;
    }
  }
  return false;
}

// By its long name, or by that of a positional argument.
std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

bool is_given(const Words& words, const std::string& option) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return word == option || word.starts_with(option + "="); });
}

std::optional<std::string> file_of(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(std::string(option_name) + "="))
      return words[i].substr(std::string(option_name).size() + 1);
    if (words[i] == option_name && i + 1 < words.size()) return words[i + 1];
  }
  return std::nullopt;
}

toml::table read(const std::string& path) {
  try {
    return machine::parse_toml(machine::in_ascii(read_text_file(path)));
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::bad_file, std::string(error.description()),
                fmt::format("{}:{}", path, error.source().begin.line));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_file) throw;
    throw Error(ErrorCode::bad_file, error.message(), path, error.hint());
  }
}

// One file's options as words.
class Reader {
 public:
  Reader(std::string path, const CLI::App& command, const Words& words)
      : path_(std::move(path)), command_(command), words_(words) {}

  Words options() {
    const toml::table table = read(path_);
    for (const auto& [key, value] : table) take(std::string(key.str()), value);
    // Positional arguments first: who reads "option value" must not take one for a value.
    Words all = std::move(positional_);
    all.insert(all.end(), found_.begin(), found_.end());
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const toml::node& value, const std::string& why,
                           const std::string& hint = {}) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' {}", key, why),
                fmt::format("{}:{}", path_, value.source().begin.line), hint);
  }

  void take(const std::string& key, const toml::node& value) {
    const CLI::Option* option = command_.get_option_no_throw("--" + key);
    const bool is_positional = !option;
    if (!option) option = command_.get_option_no_throw(key);
    if (!option || option == command_.get_help_ptr()) unknown(key, value);
    if (key == "config" || key == "resume") refuse(key, value, "is of the command line alone");
    if (is_positional) {
      if (!has_positional(words_, command_)) positional_.push_back(text_of(key, value));
      return;
    }
    if (is_given(words_, "--" + key)) return;
    if (const toml::array* const list = value.as_array()) {
      for (const toml::node& each : *list) add(key, *option, each);
      return;
    }
    add(key, *option, value);
  }

  [[noreturn]] void unknown(const std::string& key, const toml::node& value) const {
    Words known;
    for (const CLI::Option* each : command_.get_options())
      known.push_back(each->get_lnames().empty() ? each->get_name() : each->get_lnames().front());
    refuse(key, value, fmt::format("is no option of {}", command_.get_name()), unknown_name_hint(key, known));
  }

  void add(const std::string& key, const CLI::Option& option, const toml::node& value) {
    if (is_flag(option) != value.is_boolean())
      refuse(key, value, is_flag(option) ? "is a switch: true or false" : "takes a value, not true or false");
    if (!is_flag(option))
      found_.push_back(fmt::format("--{}={}", key, text_of(key, value)));
    else if (*value.value<bool>())
      found_.push_back("--" + key);
  }

  std::string text_of(const std::string& key, const toml::node& value) const {
    if (value.is_string()) return *value.value<std::string>();
    if (value.is_integer()) return std::to_string(*value.value<std::int64_t>());
    if (value.is_floating_point()) return fmt::format("{}", *value.value<double>());
    refuse(key, value, "is a text, a number, true, false or a list of texts and numbers");
  }

  const std::string path_;
  const CLI::App& command_;
  const Words& words_;
  Words positional_, found_;
};

// As it is written in TOML: a number where it reads as the same one again.
std::string value_text(const std::string& word) {
  const bool short_enough = !word.empty() && word.size() <= 15;
  const bool digits = short_enough && word.find_first_not_of("0123456789") == std::string::npos;
  if (digits && (word == "0" || word[0] != '0')) return word;
  return nlohmann::json(word).dump();
}

}  // namespace

void add_config_option(CLI::App& command, std::string& text) {
  command.add_option(option_name, text, option_text)->type_name("FILE");
}

Words with_config_file(Words words, const CLI::App& program) {
  if (words.empty()) return words;
  const CLI::App* const command = find_command(words[0], program);
  if (!command || !has_config_file(*command)) return words;
  const std::optional<std::string> path = file_of(words);
  if (!path) return words;
  const Words options = Reader(*path, *command, words).options();
  words.insert(words.begin() + 1, options.begin(), options.end());
  return words;
}

std::string config_text(const CLI::App& command, const Words& left_out) {
  std::string text;
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = name_of(*option);
    if (option->count() == 0 || name == option_name || std::ranges::find(left_out, name) != left_out.end())
      continue;
    const std::string key = name.starts_with("--") ? name.substr(2) : name;
    if (is_flag(*option)) {
      text += key + " = true\n";
      continue;
    }
    Words values = option->results();
    std::ranges::transform(values, values.begin(), value_text);
    text += fmt::format("{} = {}\n", key, values.size() == 1 ? values[0] : "[" + join(values, ", ") + "]");
  }
  return text;
}

}  // namespace superstep::cli
