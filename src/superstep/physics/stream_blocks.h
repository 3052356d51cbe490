// Makes a long sequence block by block, each on all threads, while the block before is being written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <system_error>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::data {

inline void throw_if_interrupted() {
  if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
}

// Calls make(first, count) for blocks of [0, total) in order, and write(first, block) with each result, one
// at a time, in order, on another thread. Throws what either throws, and Error (interrupted).
template <class Make, class Write>
void stream_blocks(std::uint64_t total, std::uint64_t block_size, Progress& progress, Make make,
                   Write write) {
  std::future<void> writing;  // waits in its destructor: `write` never outlives this call
  for (std::uint64_t first = 0; first < total; first += block_size) {
    throw_if_interrupted();
    const std::uint64_t count = std::min(block_size, total - first);
    const auto block = std::make_shared<decltype(make(first, count))>(make(first, count));
    const auto work = [&write, first, block] { write(first, *block); };
    if (writing.valid()) writing.get();
    try {
      writing = std::async(std::launch::async, work);
    } catch (const std::system_error&) {  // no thread can be had
      work();
    }
    progress.update(static_cast<double>(first + count));
  }
  if (writing.valid()) writing.get();
}

}  // namespace superstep::data
