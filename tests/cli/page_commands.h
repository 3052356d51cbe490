// The commands that a page shows, for tests that run them.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace superstep {

// Indented lines that begin with the program's name, without what is said of them behind two spaces.
inline std::vector<std::string> commands_of(const std::string& page) {
  std::vector<std::string> commands;
  std::istringstream lines(page);
  const std::string start = "    superstep ";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(start)) {
      const std::string command = line.substr(start.size());
      commands.push_back(command.substr(0, command.find("  ")));
    }
  return commands;
}

}  // namespace superstep
