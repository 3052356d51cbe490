// Small models that are served in tests, as files.
#pragma once

#include <filesystem>

#include "superstep/base/random.h"
#include "superstep/edge/service/model_service.h"
#include "superstep/run/model.h"

namespace superstep::edge {

// A network of three layers with the weights of `seed`, written over what is there.
inline void write_model(const std::filesystem::path& file, std::uint64_t seed) {
  const run::Model model({.workload = "mlp", .seed = seed});
  model.write_onnx(file, {});
}

inline ServiceSettings small_service(int workers = 2, std::int64_t max_batch = 16) {
  ServiceSettings settings;
  settings.workers = workers;
  settings.batcher.max_batch = max_batch;
  return settings;
}

// As many rows of numbers that belong to `seed`, one stream a row: row `first + i` is the same in any
// request.
inline void fill_rows(Job& job, std::uint64_t seed, std::int64_t first = 0) {
  for (Tensor& input : job.inputs) {
    const std::span<float> values = input.as<float>();
    const std::size_t row = values.size() / static_cast<std::size_t>(job.rows);
    for (std::int64_t i = 0; i < job.rows; ++i)
      RandomStream(seed, static_cast<std::uint64_t>(first + i))
          .fill_uniform(values.subspan(static_cast<std::size_t>(i) * row, row), -1, 1);
  }
}

}  // namespace superstep::edge
