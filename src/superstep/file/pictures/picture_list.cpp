#include "superstep/file/pictures/picture_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/base/text.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/pictures/names.h"
#include "superstep/file/pictures/picture.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using namespace pictures;

struct Labelled {
  fs::path path;
  std::int64_t label = 0;
  double place = 0;  // within its class, in (0, 1)
  std::uint64_t mark = 0;
};

// Spread evenly: of every class the k-th of n, in the order of their marks, at (k + 1/2) / n.
void spread(std::vector<Labelled>& pictures) {
  std::map<std::int64_t, std::vector<Labelled*>> by_label;
  for (Labelled& picture : pictures) {
    picture.mark = mark_of(picture.path.generic_string());
    by_label[picture.label].push_back(&picture);
  }
  for (auto& [label, own] : by_label) {
    std::ranges::sort(own, [](const Labelled* a, const Labelled* b) {
      return std::pair(a->mark, a->path) < std::pair(b->mark, b->path);
    });
    for (std::size_t k = 0; k < own.size(); ++k)
      own[k]->place = (static_cast<double>(k) + 0.5) / static_cast<double>(own.size());
  }
  std::ranges::sort(pictures, [](const Labelled& a, const Labelled& b) {
    return std::tuple(a.place, a.mark, a.path) < std::tuple(b.place, b.mark, b.path);
  });
}

void add(PictureList& list, std::vector<Labelled> pictures) {
  spread(pictures);
  for (Labelled& picture : pictures) {
    list.paths.push_back(std::move(picture.path));
    list.labels.push_back(picture.label);
  }
}

std::vector<std::string> class_folders(const fs::path& folder) { return content_of(folder).folders; }

// Pictures of the class folders in `below`, which is a part of the root.
std::vector<Labelled> labelled_in(PictureList& list, const fs::path& below, std::int64_t& others) {
  std::vector<Labelled> found;
  for (const std::string& name : class_folders(list.root / below)) {
    const auto label = std::ranges::find(list.classes, name) - list.classes.begin();
    for (const fs::path& path : pictures_below(list.root / below / name, others))
      found.push_back({.path = below / name / path, .label = label});
  }
  return found;
}

void note_others(std::vector<std::string>& notes, std::int64_t others) {
  if (others > 0)
    notes.push_back(fmt::format("{} file{} no picture by {} name, and left out",
                                format_count(static_cast<double>(others)), others == 1 ? " is" : "s are",
                                others == 1 ? "its" : "their"));
}

// A class without pictures is a mistake of whoever made the folder, or of the one who names it.
void require_every_class(const PictureList& list) {
  const std::set<std::int64_t> shown(list.labels.begin(), list.labels.end());
  for (std::size_t i = 0; i < list.classes.size(); ++i)
    if (!shown.contains(static_cast<std::int64_t>(i)))
      throw Error(ErrorCode::bad_file,
                  fmt::format("the folder of class '{}' holds no pictures", list.classes[i]),
                  list.root.string(),
                  "JPEG, PNG, TIFF and WebP are read; remove the folder, or put its pictures there");
}

bool any_folder_with_pictures(const fs::path& folder, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    std::error_code ignored;
    int looked_at = 0;  // a folder of a million of something else is not walked through
    for (fs::directory_iterator entry(folder / name, ignored), end;
         !ignored && entry != end && looked_at < 1000; entry.increment(ignored), ++looked_at)
      if (is_picture_name(entry->path()) && !entry->is_directory(ignored)) return true;
    return false;
  });
}

std::size_t column_of(const CsvReader& table, std::initializer_list<std::string_view> names) {
  const auto& header = table.header();
  for (const std::string_view name : names)
    for (std::size_t i = 0; i < header.size(); ++i)
      if (in_small_letters(header[i]) == name) return i;
  return header.size();
}

std::size_t path_column(const CsvReader& table) {
  return column_of(table,
                   {"path", "file", "filename", "file_name", "image", "image_path", "filepath", "picture"});
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Numbers as they are; else names, numbered in their order.
std::vector<std::int64_t> numbered(const std::vector<std::string>& words, std::vector<std::string>& classes) {
  std::vector<std::int64_t> labels;
  for (const std::string& word : words) {
    const auto number = whole_number(word);
    if (!number || *number < 0) break;
    labels.push_back(*number);
  }
  if (labels.size() == words.size()) return labels;
  labels.clear();
  const std::set<std::string> names(words.begin(), words.end());
  classes.assign(names.begin(), names.end());
  for (const std::string& word : words)
    labels.push_back(std::ranges::lower_bound(classes, word) - classes.begin());
  return labels;
}

void require_inside(const fs::path& path, const CsvReader& reader, const fs::path& table) {
  if (path.is_relative() && *path.lexically_normal().begin() != "..") return;
  throw Error(ErrorCode::bad_file,
              fmt::format("line {} names '{}', which does not lie in the table's folder", reader.line(),
                          path.string()),
              table.string(), "put the table beside the pictures, or link their folder there");
}

}  // namespace

bool holds_classes(const fs::path& folder) {
  if (!is_folder(folder)) return false;
  const Content content = content_of(folder);
  const Split split = split_of(content);
  if (split.training.empty()) return any_folder_with_pictures(folder, content.folders);
  return any_folder_with_pictures(folder / split.training, class_folders(folder / split.training));
}

PictureList list_classes(const fs::path& folder) {
  PictureList list{.root = folder, .paths = {}, .labels = {}, .classes = {}, .training = {}, .notes = {}};
  const Content content = content_of(folder);
  const Split split = split_of(content);
  std::set<std::string> names;
  std::vector<fs::path> parts{split.training};
  if (!split.training.empty() && !split.validation.empty()) parts.push_back(split.validation);
  for (const fs::path& part : parts)
    for (const std::string& name : class_folders(folder / part)) names.insert(name);
  list.classes.assign(names.begin(), names.end());
  std::int64_t others = static_cast<std::int64_t>(content.others.size() + content.pictures.size());
  for (const fs::path& part : parts) {
    add(list, labelled_in(list, part, others));
    if (parts.size() > 1 && !list.training) list.training = static_cast<std::int64_t>(list.paths.size());
  }
  require_every_class(list);
  note_others(list.notes, others);
  return list;
}

bool holds_pictures(const fs::path& folder) {
  return is_folder(folder) && !content_of(folder).pictures.empty();
}

PictureList list_pictures(const fs::path& folder) {
  PictureList list{.root = folder, .paths = {}, .labels = {}, .classes = {}, .training = {}, .notes = {}};
  std::int64_t others = 0;
  list.paths = pictures_below(folder, others);
  note_others(list.notes, others);
  return list;
}

bool is_one_picture(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none) || !is_picture_name(path)) return false;
  std::byte begin[16] = {};
  open_regular_file(path).read(reinterpret_cast<char*>(begin), sizeof begin);
  const PictureForm form = picture_form_of(begin);
  return form != PictureForm::none && form != PictureForm::tiff;
}

bool names_pictures(const fs::path& table) {
  if (!is_text(table, {}) || !ends_in(table, {".csv", ".tsv", ".tab", ".txt"})) return false;
  try {
    CsvReader reader(table);
    const std::size_t column = path_column(reader);
    return column < reader.header().size() && reader.next() && is_picture_name(reader.text(column));
  } catch (const Error&) {
    return false;
  }
}

PictureList list_table(const fs::path& table) {
  PictureList list{
      .root = table.parent_path(), .paths = {}, .labels = {}, .classes = {}, .training = {}, .notes = {}};
  CsvReader reader(table);
  const std::size_t paths = path_column(reader), none = reader.header().size(),
                    labels = column_of(reader, {"label", "class", "category", "target"}),
                    splits = column_of(reader, {"split", "set", "subset", "fold"});
  std::vector<std::string> words;
  std::vector<fs::path> named;
  std::vector<bool> trains;
  while (reader.next()) {
    named.emplace_back(reader.text(paths));
    require_inside(named.back(), reader, table);
    if (labels < none) words.push_back(reader.text(labels));
    if (splits < none)
      trains.push_back(!is_named(reader.text(splits), {"val", "valid", "validation", "test"}));
  }
  if (named.empty()) throw Error(ErrorCode::bad_file, "names no pictures", table.string());
  const std::vector<std::int64_t> numbers = numbered(words, list.classes);
  if (labels == none) {
    list.paths = std::move(named);
    return list;
  }
  for (const bool training : {true, false}) {
    std::vector<Labelled> part;
    for (std::size_t i = 0; i < named.size(); ++i)
      if ((trains.empty() || trains[i]) == training) part.push_back({.path = named[i], .label = numbers[i]});
    add(list, std::move(part));
    if (training && !trains.empty()) list.training = static_cast<std::int64_t>(list.paths.size());
  }
  return list;
}

}  // namespace superstep::data
