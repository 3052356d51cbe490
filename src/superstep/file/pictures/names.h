// Inside of the pictures' layer: folders and their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::data::pictures {

// Whether `a` comes before `b`, numbers in them by their value: slice_2 before slice_10.
bool comes_before(std::string_view a, std::string_view b);

// A number that depends on a name alone and orders names as if by chance (FNV-1a, mixed).
std::uint64_t mark_of(std::string_view name);

bool is_folder(const std::filesystem::path& path);  // false also where that cannot be known

// What lies in a folder, in the order of names; names that begin with a dot are left out. Links are followed.
struct Content {
  std::vector<std::string> folders, pictures, others;  // names
};
// Throws Error (io) where it cannot be read.
Content content_of(const std::filesystem::path& folder);

// Pictures in a folder and, to a few levels, below it, as paths from it. Folders that are links are left
// out, so that none holds itself. `others` counts files that are no pictures by their names.
std::vector<std::filesystem::path> pictures_below(const std::filesystem::path& folder, std::int64_t& others);

// Folders of what trains and of what validates, the first of the usual names that are there; empty: none.
struct Split {
  std::string training, validation;
};
Split split_of(const Content& content);

bool is_named(std::string_view name, std::initializer_list<std::string_view> names);  // in small letters
std::string in_small_letters(std::string_view text);

}  // namespace superstep::data::pictures
