// A second-level cache of a size that a test names, so that blocks are cut alike on every processor.
#pragma once

#include "superstep/target/cpu/kernels/core/caches.h"

namespace superstep::kernels {

class AssumedCache {
 public:
  explicit AssumedCache(std::int64_t bytes) { assumed_second_level_cache = bytes; }
  ~AssumedCache() { assumed_second_level_cache = 0; }
  AssumedCache(const AssumedCache&) = delete;
  AssumedCache& operator=(const AssumedCache&) = delete;
};

}  // namespace superstep::kernels
