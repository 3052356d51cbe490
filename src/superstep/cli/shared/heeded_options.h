// Options of a command that some of what it does heeds: given to anything else, one is refused rather than
// ignored.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace superstep::cli {

// `kinds`: bits, as the command numbers what it does.
struct HeededOption {
  std::string_view option;
  unsigned kinds;
  std::string_view only_with = {};  // another option, without which it means nothing
};

// Throws Error (invalid_argument) for the first option of the command line that none of `asked` heeds, naming
// those that do (`names`, a name for each bit), or whose other option is not there. Options that are not in
// the table are heeded by all.
void refuse_unheeded(const CLI::App& command, std::span<const HeededOption> options, unsigned asked,
                     std::span<const std::string_view> names);

// Throws Error (invalid_argument) for the first of `options` on the command line where `reason` is not empty:
// why what is asked heeds none of them, as in "means nothing with --list".
void refuse_given(const CLI::App& command, std::string_view reason,
                  std::initializer_list<std::string_view> options);

}  // namespace superstep::cli
