// The host's end of a stream.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)  // part of the library's interface: what is declared here is exported

namespace superstep::bsp {

inline constexpr std::uint32_t all_replicas = 0xffffffffu;

// Feeds or takes the data of a stream, a transfer at a time.
class StreamCallback {
 public:
  enum class Result { success, not_available };
  virtual ~StreamCallback() = default;
  virtual Result prefetch(void*) { return Result::not_available; }
  virtual void fetch(void* data) = 0;  // reads from `data` for a device-to-host stream
  virtual void complete() {}
  virtual void invalidate_prefetched() {}
};

}  // namespace superstep::bsp

#pragma GCC visibility pop
