// Makes samples on every thread and hands them over in order: for writers of formats that are not HDF5.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/physics/generator.h"

namespace superstep::data {

// Calls consume(make(index)) for every sample of the request, in order, `make` on all threads, in chunks, so
// that memory does not grow with the number of samples. `make` must be thread-safe. Throws Error
// (interrupted) on Ctrl-C.
template <class Make, class Consume>
void for_samples_in_order(const WriteRequest& request, Make make, Consume consume,
                          std::uint64_t chunk = 1024) {
  using Sample = decltype(make(std::uint64_t{}));
  Progress progress("generating " + request.path.filename().string(), static_cast<double>(request.samples),
                    "samples");
  for (std::uint64_t first = 0; first < request.samples; first += chunk) {
    std::vector<Sample> made(std::min(chunk, request.samples - first));
    request.pool->parallel_for(static_cast<std::int64_t>(made.size()), [&](std::int64_t item, int) {
      if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written", request.path.string());
      made[static_cast<std::size_t>(item)] = make(first + static_cast<std::uint64_t>(item));
    });
    for (Sample& sample : made) consume(std::move(sample));
    progress.update(static_cast<double>(first + made.size()));
  }
}

}  // namespace superstep::data
