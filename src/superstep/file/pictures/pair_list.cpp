// Pictures with a mask each, by the names that such collections have.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/file/pictures/names.h"
#include "superstep/file/pictures/picture.h"
#include "superstep/file/pictures/picture_list.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using namespace pictures;

constexpr std::string_view mask_ends[] = {"_mask", "-mask", "_seg", "_label", "_gt"};

bool is_mask_name(const fs::path& path) {
  const std::string stem = in_small_letters(path.stem().string());
  return std::ranges::any_of(mask_ends, [&](std::string_view end) { return stem.ends_with(end); });
}

// The name that a mask shares with its picture.
std::string stem_of(const fs::path& path) {
  std::string stem = path.stem().string();
  const std::string small = in_small_letters(stem);
  for (const std::string_view end : mask_ends)
    if (small.ends_with(end)) return stem.substr(0, stem.size() - end.size());
  return stem;
}

std::string first_folder(const Content& content, std::initializer_list<std::string_view> names) {
  for (const std::string& folder : content.folders)
    if (is_named(folder, names)) return folder;
  return {};
}

// The folders of pictures and of masks, side by side.
struct SideBySide {
  std::string pictures, masks;
  bool is_there() const { return !pictures.empty() && !masks.empty(); }
};
SideBySide side_by_side(const Content& content) {
  return {first_folder(content, {"images", "image", "imgs", "img"}),
          first_folder(content, {"masks", "mask", "labels", "label", "annotations"})};
}

struct Pair {
  fs::path picture, mask;
  std::string group;
};

// The picture of every mask, by the names that they share. What has no partner is told, not paired.
std::vector<Pair> paired(const std::vector<fs::path>& pictures, const std::vector<fs::path>& masks,
                         PairList& list) {
  std::map<std::string, fs::path> by_name;
  for (const fs::path& mask : masks)
    by_name.emplace((mask.parent_path() / stem_of(mask)).generic_string(), mask);
  std::vector<Pair> pairs;
  std::vector<std::string> alone;
  for (const fs::path& picture : pictures) {
    const auto found = by_name.find((picture.parent_path() / picture.stem()).generic_string());
    if (found == by_name.end())
      alone.push_back(picture.generic_string());
    else
      pairs.push_back({picture, found->second, {}});
  }
  if (!alone.empty())
    list.notes.push_back(fmt::format("{} picture{} no mask, and left out: {}{}", alone.size(),
                                     alone.size() == 1 ? " has" : "s have", alone.front(),
                                     alone.size() > 1 ? ", ..." : ""));
  return pairs;
}

// Every folder a patient; of pictures that lie in the folder itself each is one.
std::string group_of(const fs::path& picture) {
  return picture.has_parent_path() ? picture.parent_path().generic_string() : picture.generic_string();
}

// Pictures and masks in one folder, or in folders of it.
std::vector<Pair> beside_each_other(const fs::path& part, PairList& list) {
  std::int64_t others = 0;
  std::vector<fs::path> pictures, masks;
  for (const fs::path& path : pictures_below(list.root / part, others))
    (is_mask_name(path) ? masks : pictures).push_back(path);
  std::vector<Pair> pairs = paired(pictures, masks, list);
  for (Pair& pair : pairs)
    pair = {part / pair.picture, part / pair.mask, (part / group_of(pair.picture)).generic_string()};
  return pairs;
}

std::vector<Pair> in_two_folders(const fs::path& part, const SideBySide& two, PairList& list) {
  std::int64_t others = 0;
  const auto pictures = pictures_below(list.root / part / two.pictures, others);
  const auto masks = pictures_below(list.root / part / two.masks, others);
  std::vector<Pair> pairs = paired(pictures, masks, list);
  for (Pair& pair : pairs)
    pair = {part / two.pictures / pair.picture, part / two.masks / pair.mask,
            (part / group_of(pair.picture)).generic_string()};
  return pairs;
}

// Patients by the marks of their names, slices by their numbers.
void add(PairList& list, std::vector<Pair> pairs) {
  std::ranges::sort(pairs, [](const Pair& a, const Pair& b) {
    const std::uint64_t first = mark_of(a.group), second = mark_of(b.group);
    if (first != second) return first < second;
    if (a.group != b.group) return a.group < b.group;
    return comes_before(a.picture.generic_string(), b.picture.generic_string());
  });
  std::int64_t group = list.groups.empty() ? -1 : list.groups.back();
  const std::string* last = nullptr;
  for (const Pair& pair : pairs) {
    if (!last || *last != pair.group) ++group;
    last = &pair.group;
    list.pictures.push_back(pair.picture);
    list.masks.push_back(pair.mask);
    list.groups.push_back(group);
  }
}

// Whether a folder has a mask beside its picture, as far as a glance says.
bool has_mask_beside(const fs::path& folder) {
  const std::vector<std::string> pictures = content_of(folder).pictures;
  return std::ranges::any_of(pictures, [&](const std::string& name) {
    return is_mask_name(name) && std::ranges::any_of(pictures, [&](const std::string& other) {
             return fs::path(other).stem().string() == stem_of(name);
           });
  });
}

constexpr std::size_t glanced_folders = 16;  // chosen: a patient without a mask may come first

bool holds_pairs_beside(const fs::path& folder) {
  if (has_mask_beside(folder)) return true;
  const std::vector<std::string> folders = content_of(folder).folders;
  for (std::size_t i = 0; i < std::min(folders.size(), glanced_folders); ++i)
    if (has_mask_beside(folder / folders[i])) return true;
  return false;
}

std::vector<Pair> pairs_in(const fs::path& part, PairList& list) {
  const SideBySide two = side_by_side(content_of(list.root / part));
  return two.is_there() ? in_two_folders(part, two, list) : beside_each_other(part, list);
}

}  // namespace

bool holds_pairs(const fs::path& folder) {
  if (!is_folder(folder)) return false;
  const Content content = content_of(folder);
  if (side_by_side(content).is_there() || holds_pairs_beside(folder)) return true;
  const Split split = split_of(content);
  return !split.training.empty() && holds_pairs(folder / split.training);
}

PairList list_pairs(const fs::path& folder) {
  PairList list{.root = folder, .pictures = {}, .masks = {}, .groups = {}, .training = {}, .notes = {}};
  const Content content = content_of(folder);
  const Split split = split_of(content);
  if (split.training.empty() || side_by_side(content).is_there()) {
    add(list, pairs_in({}, list));
  } else {
    add(list, pairs_in(split.training, list));
    if (!split.validation.empty()) {
      list.training = static_cast<std::int64_t>(list.pictures.size());
      add(list, pairs_in(split.validation, list));
    }
  }
  if (list.pictures.empty())
    throw Error(ErrorCode::bad_file, "holds no picture with a mask of its name", folder.string(),
                "X.tif belongs to X_mask.tif, images/X.png to masks/X.png");
  return list;
}

}  // namespace superstep::data
