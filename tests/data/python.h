// Checks against the tools users have, through Python where it and the modules can be found:
// $SUPERSTEP_PYTHON or python3. A test that cannot find them is skipped and says so.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "superstep/base/file.h"
#include "tests/data/scratch.h"

namespace superstep {

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
