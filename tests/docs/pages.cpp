#include "tests/docs/pages.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace superstep::docs {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The text from each line `begin` to the next line `end`, without these.
std::vector<std::string> between(const std::string& text, const std::string& begin, const std::string& end) {
  std::vector<std::string> parts;
  bool inside = false;
  for (const std::string& line : lines_of(text)) {
    if (!inside && line == begin) {
      inside = true;
      parts.emplace_back();
    } else if (inside && line == end) {
      inside = false;
    } else if (inside) {
      parts.back() += line + "\n";
    }
  }
  return parts;
}

std::string without_blocks(const std::string& page) {
  std::string prose;
  bool fenced = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```"))
      fenced = !fenced;
    else if (!fenced && !line.starts_with("    "))
      prose += line + "\n";
  }
  return prose;
}

// What is in the pattern's first group, for each match.
std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    found.push_back((*it)[1]);
  return found;
}

bool is_placeholder(const std::string& path) {
  static const std::regex capitals("(^|[/_])[A-Z]{2,}([/._]|$)");
  static const std::regex files("(README|CONTRIBUTING|LICENSE|CMakeLists)");
  return std::regex_search(path, capitals) && !std::regex_search(path, files);
}

// A training run is kept in run/ by convention, and that is a room's name too: only sources are checked.
bool is_users(const std::string& path) {
  return path.starts_with("run/") && !path.ends_with(".h") && !path.ends_with(".cpp");
}

bool is_source_file(const std::string& path) {
  return path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with(".md") || path.ends_with(".txt");
}

}  // namespace

std::vector<std::string> code_blocks(const std::string& page, const std::string& language) {
  return between(page, "```" + language, "```");
}

std::vector<std::string> sections(const std::string& source, const std::string& name) {
  return between(source, "// [" + name + "]", "// [end]");
}

std::vector<std::string> section_names(const std::string& source) {
  static const std::regex mark("(?:^|\n)// \\[([a-z-]+)\\](?=\n)");
  std::vector<std::string> names = matches(source, mark);
  std::erase(names, "end");
  return names;
}

std::vector<std::string> repository_paths(const std::string& page, const std::filesystem::path& root) {
  static const std::regex ticked("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]*)*)`");
  std::vector<std::string> paths;
  for (const std::string& path : matches(without_blocks(page), ticked)) {
    const std::size_t slash = path.find('/');
    const std::string first = path.substr(0, slash);
    const bool inside = slash != std::string::npos && first != "build" && exists_in_repository(first, root);
    if ((inside || is_source_file(path)) && !is_placeholder(path) && !is_users(path)) paths.push_back(path);
  }
  return paths;
}

std::vector<std::string> relative_links(const std::string& page) {
  static const std::regex link("\\]\\(([^)#\\s]+)[^)]*\\)");
  std::vector<std::string> targets = matches(without_blocks(page), link);
  std::erase_if(targets, [](const std::string& target) {
    return target.find("://") != std::string::npos || target.starts_with("mailto:");
  });
  return targets;
}

bool exists_in_repository(const std::string& path, const std::filesystem::path& root) {
  return std::filesystem::exists(root / path) || std::filesystem::exists(root / "src/superstep" / path) ||
         std::filesystem::exists(root / "include" / path);
}

}  // namespace superstep::docs
