// Which host memory has a counterpart on the device.
#pragma once

#include <deque>
#include <map>

#include "superstep/openmp/storage.h"

namespace superstep::openmp {

struct PresentArray {
  std::byte* host = nullptr;
  std::size_t bytes = 0;
  std::uint64_t references = 0;
  DeviceArray* array = nullptr;
};

class PresentTable {
 public:
  // The array that begins here; null when there is none.
  PresentArray* find(const void* host);
  // The array in which this byte lies; null when there is none.
  PresentArray* containing(const void* host);
  // Throws Error ("unmapped").
  PresentArray& get(const void* host, const std::string& name);
  // A new entry without references, or the one that is there; throws Error ("alias") when it overlaps
  // another. Memory that was mapped before gets its former number and placement: programs made for it are
  // used again.
  PresentArray& add(void* host, const std::string& name, ElementType type, std::int64_t count);
  const std::map<const std::byte*, PresentArray>& all() const { return present_; }
  void remove(const void* host) { present_.erase(static_cast<const std::byte*>(host)); }

 private:
  std::map<const std::byte*, PresentArray> present_;
  std::deque<DeviceArray> arrays_;  // all that ever were
  std::map<std::tuple<const void*, ElementType, std::int64_t>, DeviceArray*> known_;
};

}  // namespace superstep::openmp
