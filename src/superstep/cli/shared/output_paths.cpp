#include "superstep/cli/shared/output_paths.h"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "superstep/base/file.h"

namespace superstep::cli {
namespace {

constexpr std::array<std::string_view, 7> outputs{"--out",   "--output", "--json", "--picture",
                                                  "--mllog", "--onnx",   "--dump"};

bool names_output(const CLI::Option& option) {
  return std::ranges::find(outputs, std::string_view(option.get_name())) != outputs.end();
}

// Some generators fill a folder where others write a file.
bool may_be_either(const CLI::App& command) { return command.get_name() == "generate"; }

void try_output(const CLI::App& command, const CLI::Option& option) {
  const std::string path = option.count() > 0 ? option.results().back() : option.get_default_str();
  if (path.empty()) return;
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
