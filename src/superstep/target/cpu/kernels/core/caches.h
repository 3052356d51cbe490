// What blocks may take of this processor's caches.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace superstep::kernels {

// Bytes of a core's second-level cache; 1 MB where the system does not say. Blocks are shares of it, cut when
// a kernel is prepared.
inline std::int64_t second_level_cache() {
  static const std::int64_t bytes = [] {
    const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return size > 0 ? size : 1L << 20;
  }();
  return bytes;
}

// The same of the first-level cache for data; 32 kB where the system does not say.
inline std::int64_t first_level_cache() {
  static const std::int64_t bytes = [] {
    const long size = sysconf(_SC_LEVEL1_DCACHE_SIZE);
    return size > 0 ? size : 32L << 10;
  }();
  return bytes;
}

}  // namespace superstep::kernels
