// A trained network of a run's folder, applied to what the caller fills in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "superstep/base/tensor.h"
#include "superstep/run/serve/evaluate.h"

namespace superstep::workflow {

class Served {
 public:
  // The best checkpoint of the run, compiled for the CPU. Throws Error (not_found, bad_file).
  Served(const std::filesystem::path& run, std::int64_t batch, int threads);

  // Calls `fill` with the samples of each batch and the inputs to be filled, then `take` with the samples and
  // the first output, whose rows from the first on are theirs. The last batch may have fewer samples than
  // rows. Throws Error (interrupted) between batches.
  using Fill = std::function<void(std::int64_t first, std::int64_t count, std::span<Tensor> inputs)>;
  using Take = std::function<void(std::int64_t first, std::int64_t count, const Tensor& output)>;
  void run(std::int64_t samples, const Fill& fill, const Take& take);

 private:
  run::Evaluator evaluator_;
};

// So many of the first samples of its data the run's network learnt from; the others only validated it.
// Throws Error (not_found, bad_file).
std::int64_t training_samples(const std::filesystem::path& run);

}  // namespace superstep::workflow
