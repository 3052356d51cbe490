#include "superstep/cli/shared/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "superstep/base/error.h"
#include "superstep/base/file.h"

namespace superstep::cli {

std::string new_run_folder(std::string_view model) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  const std::string stem =
      fmt::format("runs/{}-{:%Y-%m-%d-%H%M%S}", std::filesystem::path(model).stem().string(), local);
  std::string folder = stem;
  std::error_code none;
  for (int i = 2; std::filesystem::exists(folder, none); ++i) folder = fmt::format("{}-{}", stem, i);
  try {
    require_writable_folder(folder);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), error.where(),
                "name a folder for the run: --out DIR, or keep nothing of it: --no-out");
  }
  return folder;
}

}  // namespace superstep::cli
