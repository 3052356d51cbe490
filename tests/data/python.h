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
#include "tests/data/scratch.h"

namespace superstep {

// A Python that has these packages ("h5py, numpy"); empty when there is none.
inline std::string python_with(const std::string& packages) {
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
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

inline std::string python_command() {
  const char* chosen = std::getenv("SUPERSTEP_PYTHON");
  return chosen != nullptr ? chosen : "python3";
}

// `modules` separated by commas.
inline bool python_has(const std::string& modules) {
  const std::string look =
      "import sys, importlib.util as u; sys.exit(any(u.find_spec(m) is None for m in \"" + modules +
      "\".replace(\" \", \"\").split(\",\")))";
  return std::system((python_command() + " -c '" + look + "' >/dev/null 2>&1").c_str()) == 0;
}

// What the script prints; nothing when it failed (its error is on standard error then).
inline std::optional<std::string> run_python(const ScratchFolder& folder, const std::string& script) {
  write_file_atomically(folder / "check.py", script);
  std::FILE* pipe = ::popen((python_command() + " " + (folder / "check.py").string()).c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, got);
  if (::pclose(pipe) != 0) return std::nullopt;
  return output;
}

}  // namespace superstep

// At the start of a test: skips it, with a word, where the modules are not there.
#define SKIP_WITHOUT_PYTHON(modules) \
  if (!superstep::python_has(modules)) GTEST_SKIP() << "no Python with the modules " << (modules)
