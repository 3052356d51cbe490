#include "superstep/file/pictures/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "superstep/base/error.h"
#include "superstep/file/pictures/picture.h"

namespace superstep::data::pictures {
namespace {

namespace fs = std::filesystem;

constexpr int deepest_folder = 8;  // below a class: chosen

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number that begins at `at`, without the zeros in front.
std::string_view number_at(std::string_view text, std::size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const std::size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

void add_below(const fs::path& root, const fs::path& below, int level, std::vector<fs::path>& found,
               std::int64_t& others) {
  const Content content = content_of(root / below);
  others += static_cast<std::int64_t>(content.others.size());
  for (const std::string& name : content.pictures) found.push_back(below / name);
  for (const std::string& name : content.folders) {
    if (fs::is_symlink(root / below / name)) continue;
    if (level == 0)
      throw Error(ErrorCode::bad_file, fmt::format("has folders more than {} levels deep", deepest_folder),
                  (root / below).string());
    add_below(root, below / name, level - 1, found, others);
  }
}

std::string first_there(const Content& content, std::initializer_list<const char*> names) {
  for (const char* name : names)
    for (const std::string& folder : content.folders)
      if (in_small_letters(folder) == name) return folder;
  return {};
}

}  // namespace

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

bool is_named(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, std::string_view(in_small_letters(name))) != names.end();
}

bool comes_before(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
      continue;
    }
    const std::string_view first = number_at(a, i), second = number_at(b, j);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;  // they differ in zeros in front, if at all
}

std::uint64_t mark_of(std::string_view name) {
  std::uint64_t mark = 0xcbf29ce484222325u;
  for (const char c : name) mark = (mark ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  mark = (mark ^ mark >> 30) *
         0xbf58476d1ce4e5b9u;  // names differ at their end, which the last steps mix little
  mark = (mark ^ mark >> 27) * 0x94d049bb133111ebu;
  return mark ^ mark >> 31;
}

bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

Content content_of(const fs::path& folder) {
  Content content;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.')) continue;
    if (entry->is_directory(ignored))
      content.folders.push_back(name);
    else
      (is_picture_name(name) ? content.pictures : content.others).push_back(name);
  }
  if (error) throw Error(ErrorCode::io, "cannot be read: " + error.message(), folder.string());
  for (auto* names : {&content.folders, &content.pictures, &content.others})
    std::ranges::sort(*names, comes_before);
  return content;
}

std::vector<fs::path> pictures_below(const fs::path& folder, std::int64_t& others) {
  std::vector<fs::path> found;
  add_below(folder, {}, deepest_folder, found, others);
  return found;
}

Split split_of(const Content& content) {
  return {first_there(content, {"train", "training"}),
          first_there(content, {"val", "valid", "validation", "test"})};
}

}  // namespace superstep::data::pictures
