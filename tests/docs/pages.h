// Reading the pages: their code blocks, the paths they name, their links; and the sections of the examples.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace superstep::docs {

// The blocks between ```LANGUAGE and ```, without those lines.
std::vector<std::string> code_blocks(const std::string& page, const std::string& language);

// The parts of a source file between "// [NAME]" and "// [end]".
std::vector<std::string> sections(const std::string& source, const std::string& name);
std::vector<std::string> section_names(const std::string& source);  // each as often as it occurs

// What stands in single backticks outside code blocks and looks like a path of the repository: it has a
// slash, and starts with one of its folders or rooms, or is a file at its top. Words that stand for something
// (tests/ROOM), patterns (example_*.cpp), what the build makes (build/) and users' files (run/peaks.h5) are
// not.
std::vector<std::string> repository_paths(const std::string& page, const std::filesystem::path& root);

// The targets of [text](target) that are files, without the part after '#'.
std::vector<std::string> relative_links(const std::string& page);

// Does the repository have it, from its top or from src/superstep?
bool exists_in_repository(const std::string& path, const std::filesystem::path& root);

}  // namespace superstep::docs
