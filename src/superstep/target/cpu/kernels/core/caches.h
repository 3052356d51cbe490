// What blocks may take of this processor's caches.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace superstep::kernels {

// Above zero: what is taken for a core's second-level cache in place of this processor's. For tests of how
// work is cut, which would otherwise find other blocks on another processor.
inline std::atomic<std::int64_t> assumed_second_level_cache{0};

// Bytes of a core's second-level cache; 1 MB where the system does not say. Blocks are shares of it, cut when
// a kernel is prepared.
inline std::int64_t second_level_cache() {
  if (const std::int64_t assumed = assumed_second_level_cache.load(std::memory_order_relaxed)) return assumed;
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
