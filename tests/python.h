// Runs Python with the packages that users open our files with; tests that need them skip without.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "superstep/base/file.h"
#include "tests/oracles/folder.h"
#include "tests/scratch.h"

namespace superstep {

// A Python that has these packages ("h5py, numpy"); empty when there is none. Asked in turn:
// $SUPERSTEP_PYTHON, that of tools/setup-oracles, the first on the path, the distribution's.
inline std::string python_with(const std::string& packages) {
  const char* chosen = std::getenv("SUPERSTEP_PYTHON");
  for (const std::string& python :
       {std::string(chosen != nullptr ? chosen : ""), std::string(oracles_folder()) + "/bin/python",
        std::string("python3"), std::string("/usr/bin/python3")}) {
    if (python.empty()) continue;
    const std::string probe = python + " -c 'import " + packages + "' >/dev/null 2>&1";
    if (std::system(probe.c_str()) == 0) return python;
  }
  return "";
}

// Runs a script in `folder`; its output is shown when it fails.
inline ::testing::AssertionResult run_python(const std::string& python, const std::filesystem::path& folder,
                                             const std::string& script) {
  std::ofstream(folder / "script.py") << script;
  const std::string command = "cd '" + folder.string() + "' && " + python + " script.py > output.txt 2>&1";
  if (std::system(command.c_str()) == 0) return ::testing::AssertionSuccess();
  std::ifstream output(folder / "output.txt");
  return ::testing::AssertionFailure() << std::string(std::istreambuf_iterator<char>(output), {});
}

// What the script prints; nothing when it failed (its error is on standard error then).
inline std::optional<std::string> python_output(const std::string& python, const ScratchFolder& folder,
                                                const std::string& script) {
  write_file_atomically(folder / "check.py", script);
  std::FILE* pipe = ::popen((python + " " + (folder / "check.py").string()).c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, got);
  if (::pclose(pipe) != 0) return std::nullopt;
  return output;
}

}  // namespace superstep
