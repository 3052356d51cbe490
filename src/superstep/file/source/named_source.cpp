#include "superstep/file/source/named_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/file/source/arranged_source.h"

namespace superstep::data {
namespace {

constexpr std::size_t most_named = 12;  // in a message: chosen

std::string names_in(const SampleSource& source) {
  std::vector<std::string> names;
  for (const SourceArray& array : source.arrays()) names.push_back(printable(array.name));
  const bool more = names.size() > most_named;
  if (more) names.resize(most_named);
  return names.empty() ? "no array of numbers"
                       : fmt::format("{}{}", fmt::join(names, ", "), more ? ", ..." : "");
}

// With or without the '/' that paths within a file may begin with.
std::size_t array_in(const SampleSource& source, const NamedArray& named) {
  const std::string bare = named.array.starts_with('/') ? named.array.substr(1) : named.array;
  for (const std::string& name : {named.array, bare, "/" + bare})
    if (const std::size_t at = find_array(source, name); at < source.arrays().size()) return at;
  return require_array(source, bare, named.path.string());
}

std::size_t chosen_array(const SampleSource& source, const NamedArray& named) {
  if (!named.array.empty()) return array_in(source, named);
  const std::size_t at = find_array(source, named.name);
  if (at < source.arrays().size()) return at;
  if (source.arrays().size() == 1) return 0;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it is not said which of its arrays is '{}'", named.name), named.path.string(),
              fmt::format("write {}={}:ARRAY; it has {}", named.name, named.path.string(), names_in(source)));
}

// Forms with a choice make an array in the size that is wanted of it, under its name in the file.
void add_request(const NamedArray& named, const SourceRequest& request, SourceRequest& own) {
  if (named.array.empty()) own.signal = named.name;
  for (SourceArray wanted : request.wanted)
    if (wanted.name == (named.name.empty() ? request.unnamed : named.name)) {
      if (!named.array.empty()) wanted.name = named.array;
      own.wanted.push_back(std::move(wanted));
    }
}

// Files that are named several times are opened once.
struct Opened {
  std::filesystem::path path;
  SourceRequest request;
};

}  // namespace

std::unique_ptr<SampleSource> open_named(std::span<const NamedArray> named, const SourceRequest& request,
                                         OpenFiles open) {
  std::vector<Opened> opened;
  std::vector<std::size_t> part_of;
  for (const NamedArray& each : named) {
    const auto found = std::ranges::find(opened, each.path, &Opened::path);
    part_of.push_back(static_cast<std::size_t>(found - opened.begin()));
    if (found == opened.end())
      opened.push_back({each.path, {.options = request.options, .skip_broken = request.skip_broken}});
    add_request(each, request, opened[part_of.back()].request);
  }
  std::vector<std::shared_ptr<const SampleSource>> parts;
  for (const Opened& each : opened) parts.push_back(open(each.path, each.request));
  std::vector<Arranged> arrays;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::size_t at = chosen_array(*parts[part_of[i]], named[i]);
    SourceArray as = parts[part_of[i]]->arrays()[at];
    as.name = named[i].name;
    arrays.push_back({.part = part_of[i], .array = at, .as = as, .from = as.row, .whole = false});
  }
  return arranged_source(std::move(parts), std::move(arrays), {});
}

std::unique_ptr<SampleSource> named_as(std::unique_ptr<SampleSource> source, const std::string& name) {
  if (source->arrays().size() != 1 || !source->arrays()[0].name.empty()) return source;
  SourceArray as = source->arrays()[0];
  as.name = name;
  const Shape row = as.row;
  return arranged_source({std::shared_ptr<const SampleSource>(std::move(source))},
                         {{.part = 0, .array = 0, .as = std::move(as), .from = row, .whole = false}}, {});
}

}  // namespace superstep::data
