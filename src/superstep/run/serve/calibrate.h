// Ranges of activations for static quantisation, from runs of the f32 model over samples.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "superstep/base/function_ref.h"
#include "superstep/run/serve/range_histogram.h"
#include "superstep/target/target.h"
#include "superstep/transform/pass.h"

namespace superstep::run {

struct CalibrateSettings {
  std::int64_t samples = 512;
  RangeMethod method = RangeMethod::percentile;
  double share = 0.9999;  // of the elements inside, for RangeMethod::percentile
  int threads = 1;
  std::int64_t batch = 64;  // samples a run of the model, at most
  transform::QuantizeOptions products;
  // How far products on bytes may move the model's outputs, of their spread (run/serve/byte_errors.h); 0: as
  // far as they do.
  double most_error = 0;
};

// A product that goes back to f32 because bytes are too coarse for it.
struct CoarseOnBytes {
  std::string result;  // its value's name
  double error = 0;    // by which it moves the outputs, alone on bytes, of their spread
};

// Fills the model's inputs with samples first, first + 1, ...; as many as the inputs have rows.
using FillSamples = FunctionRef<void(std::int64_t first, std::span<Tensor> inputs)>;

// The ranges of the values that transform::quantize() asks for, by name. Two passes over the samples: the
// first finds what each value spans, the second how it is spread. A last batch that is not full is left out.
// Throws Error (invalid_argument) naming a value that is not finite, or when there are no samples.
transform::RangeTable calibrate(const target::Target& target, const target::GraphAtBatch& model,
                                const CalibrateSettings& settings, FillSamples fill);

// The pass that puts a model's products on bytes, but for what `target` expects to be slower on them, and of
// that in bf16 what is faster so (transform::QuantizeOptions::beside_bf16): both depend on the batch of the
// graph.
transform::Pass quantization_for(const target::Target& target, transform::RangeTable ranges,
                                 transform::QuantizeOptions products = {});

// A model on bytes: its graph at any batch, and what it was made with.
struct QuantizedModel {
  target::GraphAtBatch graph;
  transform::RangeTable ranges;
  std::size_t products = 0;               // that run on bytes
  std::size_t kept = 0;                   // products and convolutions that stay in f32
  std::vector<target::SlowOnBytes> slow;  // of these: could be on bytes, but would take longer
  std::vector<CoarseOnBytes> coarse;      // of these: would move the outputs too far
};

// Calibrates `model`, whose states get the data of `weights` (by name; states without stay as they are), as
// `target` computes it fastest, and quantises it, but for what `target` expects to be slower on bytes: that
// depends on the batch that a graph is asked for; `products`, `kept` and `slow` are those of the batch of the
// calibration.
QuantizedModel quantize_model(const target::Target& target, const target::GraphAtBatch& model,
                              const std::map<std::string, Tensor>& weights, const CalibrateSettings& settings,
                              FillSamples fill);

}  // namespace superstep::run
