#include "superstep/file/hdf5/nexus.h"

#include <algorithm>
#include <set>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

constexpr std::size_t most_looked_at = 64;  // chosen: a question to the library's process each

// An attribute that is a text; empty: there is none.
std::string text_attribute(const Hdf5File& file, const std::string& object, const char* name) {
  try {
    const auto attributes = file.attributes(object);
    const auto found = attributes.find(name);
    const auto* text = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
    return text ? *text : "";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found || error.code() == ErrorCode::unsupported) return "";
    throw;
  }
}

std::string inside(const std::string& group, const std::string& name) {
  return group.empty() ? name : group + "/" + name;
}

bool is_data_set(std::span<const DataSetInfo> data_sets, const std::string& name) {
  return std::ranges::any_of(data_sets,
                             [&](const DataSetInfo& info) { return info.type && info.name == name; });
}

std::string signal_of(const Hdf5File& file, std::span<const DataSetInfo> data_sets,
                      const std::string& group) {
  const std::string name = text_attribute(file, group, "signal");
  const std::string path = inside(group, name);
  return !name.empty() && is_data_set(data_sets, path) ? path : "";
}

// From the file on, as far as groups say where to go on.
std::string by_default(const Hdf5File& file, std::span<const DataSetInfo> data_sets) {
  constexpr int deepest = 16;
  std::string group;
  for (int level = 0; level < deepest; ++level) {
    if (std::string signal = signal_of(file, data_sets, group); !signal.empty()) return signal;
    const std::string next = text_attribute(file, group, "default");
    if (next.empty()) return "";
    group = inside(group, next);
  }
  return "";
}

std::string only_signal(const Hdf5File& file, std::span<const DataSetInfo> data_sets) {
  std::set<std::string> groups, found;
  for (const DataSetInfo& info : data_sets)
    if (const std::size_t slash = info.name.rfind('/'); slash != std::string::npos)
      groups.insert(info.name.substr(0, slash));
  if (groups.size() > most_looked_at) return "";
  for (const std::string& group : groups)
    if (std::string signal = signal_of(file, data_sets, group); !signal.empty()) found.insert(signal);
  return found.size() == 1 ? *found.begin() : "";
}

std::string only_marked(const Hdf5File& file, std::span<const DataSetInfo> data_sets) {
  if (data_sets.size() > most_looked_at) return "";
  std::string found;
  for (const DataSetInfo& info : data_sets) {
    if (!info.type || info.shape.rank() == 0) continue;
    const auto attributes = file.attributes(info.name);
    const auto mark = attributes.find("signal");
    if (mark == attributes.end() || mark->second != Attribute(std::int64_t{1})) continue;
    if (!found.empty()) return "";
    found = info.name;
  }
  return found;
}

}  // namespace

std::string nexus_signal(const Hdf5File& file, std::span<const DataSetInfo> data_sets) {
  for (const auto find : {by_default, only_signal, only_marked})
    if (std::string signal = find(file, data_sets); !signal.empty()) return signal;
  return "";
}

}  // namespace superstep::data
