// Runs Python with the packages that users open our files with; tests that need them skip without.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace superstep
