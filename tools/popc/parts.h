// What was compiled, kept within the file that was linked from it: files are joined by linking it again.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace popc {

struct Part {
  std::string id;      // of its table of vertices: a word of letters and digits
  std::string object;  // an object file's bytes
};

// A source (C++) that holds these object files, of which the second of the pair is where the bytes lie.
std::string source_of_parts(const std::vector<std::pair<std::string, std::string>>& files);

// Out of a file that popc has made; nothing where it is no such file.
std::optional<std::vector<Part>> parts_of(const std::string& file_bytes);

// A word that another text hardly has.
std::string word_of(const std::string& text);

}  // namespace popc
