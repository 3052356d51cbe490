// Plug-ins of PJRT by name, and where they lie. docs/accelerators.md says how to come by each.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::target::pjrt {

// A kind of device, as `--on` names it. This processor is "pjrt-cpu": "cpu" is the target of that name.
struct Kind {
  std::string_view name;                // "cuda"
  std::string_view devices;             // "NVIDIA GPUs"
  std::string_view packages;            // what to install, in the user's words
  std::vector<std::string_view> files;  // below a folder of packages, the first there is; with * for letters
};
std::span<const Kind> kinds();
const Kind* find_kind(std::string_view name);

// What `--on` says: a kind, a path, or whatever there is; and which device of it.
struct Choice {
  const Kind* kind = nullptr;  // null: by path, or the first there is
  std::filesystem::path path;  // empty: looked for
  std::size_t device = 0;
};
// "pjrt", "pjrt:2", "pjrt:/opt/plugin.so", "cuda", "cuda:1". Nothing where the text is of another kind of
// target. Throws Error (invalid_argument) on a device that is no number.
std::optional<Choice> parse_choice(std::string_view text);

// Where plug-ins are looked for, in order: SUPERSTEP_PJRT_PLUGINS (folders, joined by colons), the folder
// `plugins` beside the program, which tools/setup-plugins fills, and Python's packages: those that this is
// one of itself, those of an environment that is active, of the user, of each Python on the path, of the
// system.
std::vector<std::filesystem::path> plugin_folders();
std::optional<std::filesystem::path> find_plugin(const Kind& kind);

// The library of a choice: the path, SUPERSTEP_PJRT_PLUGIN (for "pjrt" alone), or the first kind there is.
// Throws Error (not_found) that says what to install, and where was looked.
std::filesystem::path plugin_of(const Choice& choice);

}  // namespace superstep::target::pjrt
