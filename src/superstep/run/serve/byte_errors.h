// How far products on bytes move what a model says, and which of them go back to f32 for it.
#pragma once

#include <string>
#include <vector>

#include "superstep/run/serve/calibrate.h"

namespace superstep::run {

// What a model says with some of its products on bytes, beside what it says in f32: the root of the mean
// square of the difference, over the spread (standard deviation) of the output in f32; of the output where
// that is largest. Outputs that do not vary, and those that are no f32, do not count.
class ByteErrors {
 public:
  // Runs `model` over the calibration samples. Throws as calibrate() does.
  ByteErrors(const target::Target& target, const target::GraphAtBatch& model,
             const CalibrateSettings& settings, FillSamples fill);

  double of(const target::GraphAtBatch& on_bytes) const;

 private:
  std::vector<std::vector<Tensor>> outputs_of(const target::GraphAtBatch& model) const;

  const target::Target& target_;
  const CalibrateSettings& settings_;
  FillSamples fill_;
  std::int64_t batch_;
  std::vector<std::vector<Tensor>> exact_;  // by batch, by output
  std::vector<double> spreads_;             // by output
};

// How a model is quantised within a bound of its error.
struct ExactProducts {
  std::vector<CoarseOnBytes> coarse;    // what stays in f32 for it
  transform::QuantizeOptions products;  // those of the settings with them, and without bf16 where that errs
};

// The products that stay in f32 so that the others move the outputs by `settings.most_error` at most: the
// one that moves them most, alone on bytes, goes first. None where all may be on bytes, and where nothing is
// bounded (most_error is 0). Where what is off bytes moves them by more than half of that in bf16, it is in
// f32.
ExactProducts choose_exact_products(const target::Target& target, const target::GraphAtBatch& model,
                                    const transform::RangeTable& ranges, const CalibrateSettings& settings,
                                    FillSamples fill);

}  // namespace superstep::run
