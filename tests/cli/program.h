// Runs the program in a folder and keeps what it says.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace superstep {

struct Outcome {
  int code = -1;  // its exit code
  std::string output, errors;
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The program that is tested: the build's own, or what the environment variable SUPERSTEP_PROGRAM names.
inline std::string program_under_test() {
  const char* const other = std::getenv("SUPERSTEP_PROGRAM");
  return other != nullptr ? other : SUPERSTEP_PROGRAM;
}

// `before` is put in front of the program's name: "timeout -s INT 1".
inline Outcome run_program(const std::filesystem::path& folder, const std::string& arguments,
                           const std::string& before = "") {
  const std::filesystem::path output = folder / "stdout.txt", errors = folder / "stderr.txt";
  // The records of runs belong to the test, not to whoever runs it.
  const std::string command = "cd '" + folder.string() + "' && export SUPERSTEP_HOME='" +
                              (folder / "home").string() + "' && " + before + " " + program_under_test() +
                              " " + arguments + " >stdout.txt 2>stderr.txt";
  const int status = std::system(command.c_str());
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(output), content_of(errors)};
  std::filesystem::remove(output);
  std::filesystem::remove(errors);
  return outcome;
}

}  // namespace superstep
