#include "superstep/target/pjrt/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/base/wildcard.h"

namespace superstep::target::pjrt {
namespace {

namespace fs = std::filesystem;

// Files of one component with a pattern in it: "jax_plugins/xla_cuda*/xla_cuda_plugin.so". Sorted, the last
// first: the newest CUDA before the one before it.
std::vector<fs::path> matching(const fs::path& folder, std::string_view pattern) {
  const std::size_t slash = pattern.find('/');
  const std::string_view first = pattern.substr(0, slash);
  std::error_code failure;
  std::vector<fs::path> found, result;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    if (fits(first, at->path().filename().string())) found.push_back(at->path());
  std::ranges::sort(found, std::greater());
  if (slash == std::string_view::npos) return found;
  for (const fs::path& inner : found) {
    const std::vector<fs::path> deeper = matching(inner, pattern.substr(slash + 1));
    result.insert(result.end(), deeper.begin(), deeper.end());
  }
  return result;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void append_packages(const fs::path& prefix, std::vector<fs::path>& folders) {
  for (const char* library : {"lib", "lib64"})
    for (const fs::path& python : matching(prefix / library, "python3*"))
      for (const char* packages : {"site-packages", "dist-packages"})
        if (std::error_code failure; fs::is_directory(python / packages, failure))
          folders.push_back(python / packages);
}

// The packages that a file is among: where this program or this library is part of a Python package.
void append_packages_around(const fs::path& file, std::vector<fs::path>& folders) {
  for (fs::path folder = file.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "site-packages" || folder.filename() == "dist-packages")
      folders.push_back(folder);
}

// Of the program or the library that this function is in.
fs::path own_file() {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(&own_file), &info) != 0 && info.dli_fname ? fs::path(info.dli_fname)
                                                                                  : fs::path();
}

// Python's packages: of an active environment, of the user, of each Python on the path, of the system.
void append_python(std::vector<fs::path>& folders) {
  for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string value = variable(prefix); !value.empty()) append_packages(value, folders);
  if (const std::string home = variable("HOME"); !home.empty())
    append_packages(fs::path(home) / ".local", folders);
  for (const std::string& folder : split(variable("PATH"), ':')) {
    std::error_code failure;
    const fs::path python = fs::canonical(fs::path(folder) / "python3", failure);
    if (!failure) append_packages(python.parent_path().parent_path(), folders);
  }
  append_packages("/usr/local", folders);
  append_packages("/usr", folders);
}

std::size_t device_number(std::string_view text, std::string_view digits) {
  const bool number = !digits.empty() && digits.size() < 6 &&
                      std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!number)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not the number of a device", digits),
                std::string(text), "devices are counted from 0: cuda:1");
  return static_cast<std::size_t>(std::stoul(std::string(digits)));
}

std::string places(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) text += (text.empty() ? "" : ", ") + folder.string();
  return text.empty() ? "no folder of packages was found" : "looked in " + text;
}

fs::path existing(const fs::path& file, const std::string& named_by) {
  std::error_code failure;
  if (fs::exists(file, failure)) return file;
  throw Error(ErrorCode::not_found, "there is no such plug-in", file.string(), named_by);
}

}  // namespace

std::span<const Kind> kinds() {
  static const std::vector<Kind> table = {
      {"cuda",
       "NVIDIA GPUs",
       "pip install 'jax-cuda13-plugin[with-cuda]'",
       {"jax_plugins/xla_cuda*/xla_cuda_plugin.so"}},
      {"rocm",
       "AMD GPUs",
       "pip install jax-rocm7-plugin, with ROCm installed",
       {"jax_plugins/xla_rocm*/xla_rocm_plugin.so"}},
      {"oneapi",
       "Intel GPUs",
       "pip install jax-oneapi-pjrt, with oneAPI installed",
       {"jax_plugins/*oneapi*/*plugin*.so", "jax_plugins/*extension_for_openxla*/pjrt_plugin_xpu.so"}},
      {"tpu", "Google's TPUs", "pip install libtpu", {"libtpu/libtpu.so"}},
      {"tt",
       "Tenstorrent's cards",
       "pip install jax-tt-plugin",
       {"jax_plugins/*tt*/pjrt_plugin_tt*.so", "pjrt_plugin_tt*/pjrt_plugin_tt*.so"}},
      {"metal",
       "Apple's GPUs",
       "pip install jax-metal",
       {"jax_plugins/metal_plugin/pjrt_plugin_metal*.dylib"}},
      {"pjrt-cpu",
       "this processor, through XLA: for tests",
       "tools/setup-plugins cpu",
       {"lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"}},
  };
  return table;
}

const Kind* find_kind(std::string_view name) {
  const auto found = std::ranges::find(kinds(), name, &Kind::name);
  return found == kinds().end() ? nullptr : &*found;
}

std::optional<Choice> parse_choice(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Choice choice{.kind = find_kind(name)};
  if (!choice.kind && name != "pjrt") return std::nullopt;
  if (colon == std::string_view::npos) return choice;
  const std::string_view rest = text.substr(colon + 1);
  if (!choice.kind && rest.find_first_of("/.") != std::string_view::npos)
    choice.path = fs::path(rest);
  else
    choice.device = device_number(text, rest);
  return choice;
}

std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  for (const std::string& folder : split(variable("SUPERSTEP_PJRT_PLUGINS"), ':'))
    if (!folder.empty()) folders.emplace_back(folder);
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (!failure && fs::is_directory(program.parent_path() / "plugins", failure))
    folders.push_back(program.parent_path() / "plugins");
  append_packages_around(own_file(), folders);
  append_packages_around(program, folders);
  append_python(folders);
  std::vector<fs::path> once;
  for (const fs::path& folder : folders)
    if (std::ranges::find(once, folder) == once.end()) once.push_back(folder);
  return once;
}

std::optional<fs::path> find_plugin(const Kind& kind) {
  for (const fs::path& folder : plugin_folders())
    for (const std::string_view pattern : kind.files)
      if (const std::vector<fs::path> found = matching(folder, pattern); !found.empty()) return found.front();
  return std::nullopt;
}

fs::path plugin_of(const Choice& choice) {
  if (!choice.path.empty()) return existing(choice.path, "");
  if (choice.kind) {
    if (const auto found = find_plugin(*choice.kind)) return *found;
    throw Error(ErrorCode::not_found, fmt::format("there is no PJRT plug-in for {}", choice.kind->devices),
                std::string(choice.kind->name),
                fmt::format("{}; {}", choice.kind->packages, places(plugin_folders())));
  }
  if (const std::string file = variable("SUPERSTEP_PJRT_PLUGIN"); !file.empty())
    return existing(file, "SUPERSTEP_PJRT_PLUGIN names it");
  for (const Kind& kind : kinds())
    if (const auto found = find_plugin(kind)) return *found;
  throw Error(ErrorCode::not_found, "there is no PJRT plug-in", "pjrt",
              fmt::format("for this processor: tools/setup-plugins cpu; for NVIDIA GPUs: {}; "
                          "docs/accelerators.md has the others; {}",
                          kinds().front().packages, places(plugin_folders())));
}

}  // namespace superstep::target::pjrt
