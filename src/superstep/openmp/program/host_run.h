// The host's own loops on what the device holds: for regions that cannot run on tiles, and for checking those
// that did.
#pragma once

#include <set>
#include <string>

#include "superstep/openmp/offload.h"

namespace superstep::openmp {

// What every mapped array's host memory held, or was made to hold.
class Contents {
 public:
  // Of all arrays but those that nobody writes on the host.
  Contents(const Offload& offload, const std::set<void*>& constants);
  void put_back() const;
  // The first elements that differ from these, as words; empty: none. Of arrays in `sums` a part in so many
  // of the larger value may differ: they are sums in another order.
  std::string difference(const std::set<void*>& sums) const;
  const std::vector<Offload::Mapped>& arrays() const { return arrays_; }

 private:
  std::vector<Offload::Mapped> arrays_;
  std::vector<std::vector<std::byte>> bytes_;
};

// Runs the queue, after which the arrays' host memory holds what the device's does.
void fetch(Offload& offload, const Contents& before);
void send(Offload& offload, const Contents& before);

}  // namespace superstep::openmp
