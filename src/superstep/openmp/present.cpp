#include "superstep/openmp/present.h"

#include <fmt/format.h>

namespace superstep::openmp {

PresentArray* PresentTable::find(const void* host) {
  const auto place = present_.find(static_cast<const std::byte*>(host));
  return place == present_.end() ? nullptr : &place->second;
}

PresentArray* PresentTable::containing(const void* host) {
  const auto* byte = static_cast<const std::byte*>(host);
  auto place = present_.upper_bound(byte);
  if (place == present_.begin()) return nullptr;
  PresentArray& before = std::prev(place)->second;
  return byte < before.host + before.bytes ? &before : nullptr;
}

PresentArray& PresentTable::get(const void* host, const std::string& name) {
  if (PresentArray* there = find(host)) return *there;
  refuse("unmapped", fmt::format("{} is not on the device", name), {},
         "map it, or enclose the region in target data");
}

PresentArray& PresentTable::add(void* host, const std::string& name, ElementType type, std::int64_t count) {
  auto* begin = static_cast<std::byte*>(host);
  const std::size_t bytes = static_cast<std::size_t>(count) * size_in_bytes(type);
  auto after = present_.lower_bound(begin);
  if (after != present_.end() && after->first == begin && after->second.bytes == bytes &&
      after->second.array->type == type)
    return after->second;
  const PresentArray* clash = nullptr;
  if (after != present_.end() && (after->first == begin || after->first < begin + bytes))
    clash = &after->second;
  if (after != present_.begin()) {
    const PresentArray& before = std::prev(after)->second;
    if (before.host + before.bytes > begin) clash = &before;
  }
  if (clash)
    refuse(
        "alias",
        fmt::format("{} overlaps {}, which is on the device with another extent", name, clash->array->name),
        {}, "map the same section both times");
  DeviceArray*& known = known_[{host, type, count}];
  if (known == nullptr) {
    arrays_.push_back({static_cast<int>(arrays_.size()), name, type, count, {}});
    known = &arrays_.back();
  }
  return present_[begin] = PresentArray{begin, bytes, 0, known};
}

}  // namespace superstep::openmp
