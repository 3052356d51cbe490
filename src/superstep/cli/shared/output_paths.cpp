#include "superstep/cli/shared/output_paths.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/file/source/paths.h"

namespace superstep::cli {
namespace {

// The last as an argument of its own.
constexpr std::array<std::string_view, 8> outputs{"--out",   "--output", "--json", "--picture",
                                                  "--mllog", "--onnx",   "--dump", "OUT"};

bool names_output(const CLI::Option& option) {
  return std::ranges::find(outputs, std::string_view(option.get_name())) != outputs.end();
}

// Some generators fill a folder where others write a file.
bool may_be_either(const CLI::App& command) { return command.get_name() == "generate"; }

// The same file, by whatever names; one that is not there yet, where both would make it.
bool are_one_file(const std::filesystem::path& a, const std::filesystem::path& b, bool both_written) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (fs::is_regular_file(a, none) && fs::is_regular_file(b, none)) return fs::equivalent(a, b, none);
  return both_written && !fs::exists(a, none) && !fs::exists(b, none) &&
         fs::weakly_canonical(fs::absolute(a, none), none) ==
             fs::weakly_canonical(fs::absolute(b, none), none);
}

// Of a pattern, several names, or arrays with names.
bool is_read_of(const std::string& given, const std::filesystem::path& path) {
  if (given.find_first_of("=:*?[{@") == std::string::npos || !data::are_there(given)) return false;
  return std::ranges::any_of(data::named_paths(given), [&](const std::filesystem::path& each) {
    return are_one_file(each, path, false);
  });
}

// What is written in place of what the call reads, or writes, too, is lost.
void refuse_shared(const CLI::App& command, const CLI::Option& output, const std::string& path) {
  for (const CLI::Option* const option : command.get_options()) {
    if (option == &output || option->count() == 0) continue;
    for (const std::string& given : option->results())
      if (is_read_of(given, path))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("is one of the files that are read by {}: it would be overwritten",
                                option->get_name()),
                    path, "name another file to write");
      else if (are_one_file(given, path, names_output(*option)))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} and {} are the same file: it would be overwritten", option->get_name(),
                                output.get_name()),
                    path, "name another file to write");
  }
}

// A page in the place of something else is a slip: pages are written for people who look at them.
void refuse_page_over(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) == 0) return;
  std::string begin(9, '\0');
  open_regular_file(path).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  std::ranges::transform(begin, begin.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!begin.starts_with("<!doctype") && !begin.starts_with("<html"))
    throw Error(ErrorCode::invalid_argument, "a page would be written over this file, which is none", path,
                "name another file to write");
}

void try_output(const CLI::App& command, const CLI::Option& option) {
  const std::string path = option.count() > 0 ? option.results().back() : option.get_default_str();
  if (path.empty()) return;
  refuse_shared(command, option, path);
  if (option.get_type_name().ends_with(".html")) refuse_page_over(path);
  const bool folder =
      option.get_type_name() == "DIR" || (may_be_either(command) && std::filesystem::is_directory(path));
  folder ? require_writable_folder(path) : require_writable(path);
}

}  // namespace

void try_output_paths(CLI::App& command) {
  for (CLI::App* const inner : command.get_subcommands([](CLI::App*) { return true; }))
    try_output_paths(*inner);
  command.parse_complete_callback([&command] {
    for (const CLI::Option* const option : command.get_options())
      if (names_output(*option)) try_output(command, *option);
  });
}

}  // namespace superstep::cli
