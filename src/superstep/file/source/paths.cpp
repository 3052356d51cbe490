#include "superstep/file/source/paths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/system/regular_file.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

constexpr int most_levels = 8;               // of lists in lists and braces in braces: chosen
constexpr std::size_t most_names = 1 << 20;  // of one call: chosen, a million files

void name_all(const std::string& given, const fs::path& folder, int level, Paths& names);

// The parts of "a,b{c,d}" that commas separate.
std::vector<std::string> parts_of(std::string_view inside) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : inside) {
    depth += letter == '{' ? 1 : letter == '}' ? -1 : 0;
    if (letter == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

// "000..127": as wide as they are written.
std::optional<std::vector<std::string>> numbers_of(std::string_view inside, const std::string& given) {
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) return {};
  const std::string_view from = inside.substr(0, dots), to = inside.substr(dots + 2);
  std::size_t first = 0, last = 0;
  const auto whole = [](std::string_view text, std::size_t& value) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && end == text.data() + text.size();
  };
  if (!whole(from, first) || !whole(to, last)) return {};
  if (last < first || last - first >= most_names)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' counts no files", inside), given,
                "as in shard-{000..127}.tar");
  std::vector<std::string> numbers;
  for (std::size_t i = first; i <= last; ++i)
    numbers.push_back(fmt::format("{:0{}}", i, from.starts_with('0') ? from.size() : 0));
  return numbers;
}

// The first pair of braces of a name, each of what it stands for in its place; nothing where there are none.
std::vector<std::string> without_braces(const std::string& given) {
  const std::size_t open = given.find('{');
  if (open == std::string::npos) return {};
  std::size_t close = open;
  for (int depth = 0; close < given.size(); ++close) {
    depth += given[close] == '{' ? 1 : given[close] == '}' ? -1 : 0;
    if (depth == 0) break;
  }
  if (close == given.size()) return {};
  const std::string inside = given.substr(open + 1, close - open - 1);
  std::vector<std::string> names;
  const auto numbers = numbers_of(inside, given);
  for (const std::string& part : numbers ? *numbers : parts_of(inside))
    names.push_back(given.substr(0, open) + part + given.substr(close + 1));
  return names;
}

// Those that fit, sorted by their bytes, whatever the language of the system.
Paths fitting(const fs::path& pattern) {
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &found);
  Paths paths(found.gl_pathv, found.gl_pathv + (code == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (code == GLOB_ABORTED) throw Error(ErrorCode::io, "a folder of it cannot be read", pattern.string());
  if (paths.empty()) throw Error(ErrorCode::not_found, "no file fits this pattern", pattern.string());
  std::ranges::sort(paths);
  return paths;
}

void name_list(const fs::path& list, int level, Paths& names) {
  std::ifstream stream = open_regular_file(list);
  const std::size_t before = names.size();
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.pop_back();
    if (!line.empty() && line[0] != '#') name_all(line, list.parent_path(), level + 1, names);
  }
  if (names.size() == before)
    throw Error(ErrorCode::bad_file, "names no file", list.string(), "a file's name goes on each line");
}

void name_all(const std::string& given, const fs::path& folder, int level, Paths& names) {
  const fs::path path = folder / given;
  std::error_code none;
  if (level > most_levels || names.size() > most_names)
    throw Error(ErrorCode::invalid_argument, "names too many files, or itself", path.string());
  if (fs::exists(path, none)) return names.push_back(path);
  if (given.starts_with('@')) return name_list(folder / given.substr(1), level, names);
  if (const std::vector<std::string> each = without_braces(given); !each.empty()) {
    for (const std::string& name : each) name_all(name, folder, level + 1, names);
    return;
  }
  if (given.find_first_of("*?[") == std::string::npos)
    throw Error(ErrorCode::not_found, "there is no such file", path.string());
  std::ranges::copy(fitting(path), std::back_inserter(names));
}

bool plain_are_there(const fs::path& given) {
  try {
    Paths names;
    name_all(given.string(), {}, 0, names);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// "x" of "x=scan.h5"; empty where no such name is in front: those of files may hold a '=' behind a folder.
std::string name_before(const std::string& part) {
  const std::size_t equals = part.find('=');
  const bool plain = equals != std::string::npos && equals > 0 &&
                     part.substr(0, equals).find_first_of("/*?{}@") == std::string::npos;
  return plain ? part.substr(0, equals) : "";
}

// PATH or PATH:ARRAY.
NamedArray array_at(std::string name, const std::string& place) {
  const std::size_t first = place.find(':');
  if (first == std::string::npos || plain_are_there(place)) return {std::move(name), place, ""};
  for (std::size_t colon = first; colon != std::string::npos; colon = place.find(':', colon + 1))
    if (plain_are_there(place.substr(0, colon)))
      return {std::move(name), place.substr(0, colon), place.substr(colon + 1)};
  return {std::move(name), place.substr(0, first), place.substr(first + 1)};
}

// "x=a,b=c.npy" where there is a file of the name "a,b=c.npy".
bool goes_on(const std::string& before, const std::string& part) {
  const std::string name = name_before(before);
  return plain_are_there(before.substr(name.empty() ? 0 : name.size() + 1) + "," + part);
}

void refuse_twice(const std::vector<NamedArray>& arrays, const std::string& given) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (arrays[i].name == arrays[k].name)
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is given twice", arrays[i].name), given,
                    "several files of one array are a pattern, or x={a.h5,b.h5}:NAME");
}

}  // namespace

std::vector<NamedArray> named_arrays(const fs::path& given) {
  const std::string text = given.string();
  if (text.empty() || text[0] == '@' || text.find_first_of("=:") == std::string::npos ||
      plain_are_there(given))
    return {};
  std::vector<std::string> parts;
  for (const std::string& part : parts_of(text))
    if (parts.empty() || (!name_before(part).empty() && !goes_on(parts.back(), part)))
      parts.push_back(part);
    else
      parts.back() += "," + part;  // a comma of the path's own
  std::vector<NamedArray> arrays;
  for (const std::string& part : parts) {
    const std::string name = name_before(part);
    arrays.push_back(array_at(name, name.empty() ? part : part.substr(name.size() + 1)));
  }
  if (arrays[0].name.empty() &&
      (arrays.size() > 1 || arrays[0].array.empty() || !plain_are_there(arrays[0].path)))
    return {};
  refuse_twice(arrays, text);
  return arrays;
}

std::vector<fs::path> named_paths(const fs::path& given) {
  Paths names;
  const std::vector<NamedArray> arrays = named_arrays(given);
  if (arrays.empty()) name_all(given.string(), {}, 0, names);
  for (const NamedArray& array : arrays) {
    Paths own;
    name_all(array.path.string(), {}, 0, own);
    for (fs::path& path : own)
      if (std::ranges::find(names, path) == names.end()) names.push_back(std::move(path));
  }
  return names;
}

fs::path joined_names(std::span<const std::string> names) {
  if (names.size() == 1) return names[0];
  if (std::ranges::all_of(names, [](const std::string& name) { return !name_before(name).empty(); }))
    return fmt::format("{}", fmt::join(names, ","));
  for (const std::string& name : names)
    if (name.find_first_of("{},") != std::string::npos)
      throw Error(ErrorCode::invalid_argument, "a name with { } or a comma among several", name,
                  "write the names into a file, one per line, and give @FILE");
  return fmt::format("{{{}}}", fmt::join(names, ","));
}

bool are_there(const std::filesystem::path& given) {
  try {
    named_paths(given);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace superstep::data
