// Serving: a trained workload applied to a file, and the latency and throughput of doing so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/run/serve/served_weights.h"
#include "superstep/run/train/train.h"
#include "superstep/target/target.h"

namespace superstep::run {

struct InferSettings {
  std::string workload;             // of the zoo, or a model file (.onnx)
  std::vector<std::string> shapes;  // of a model file: extents that it leaves open (user_model.h)
  std::vector<std::string> bounds;  // of a model file: how long results may be whose length the data say
  std::vector<std::string> keep;    // of a model file: values that are outputs, too (user_model.h)
  std::vector<std::string> model_options;  // name=value; of a run's weights its own are taken
  std::filesystem::path weights;  // a run's folder, or a file or folder of weights that another program
                                  // wrote; empty: initial weights (for throughput alone)
  std::filesystem::path input;    // empty: generated data
  bool skip_broken = false;       // samples of it that cannot be read are left out
  bool crop = false;              // of larger pictures than the model takes the middle is taken
  // Of its arrays, beside what the run's were scaled by (scale_other_data() in run/train/train_settings.h).
  std::vector<std::string> scale, offset;
  std::filesystem::path tokenizer;  // that makes tokens of it, where it is texts; empty: it is none
  std::filesystem::path output;  // .h5, .npz, .npy (one output), .safetensors, a table where the task has one
                                 // (.csv); empty: nothing is written
  std::string target = "cpu";
  target::Chips chips;         // of machines of several chips: how they share a batch
  std::string precision;       // empty: that of the run, or f32; "int8": quantised after calibration
  std::int64_t calibrate = 0;  // int8: samples that ranges are taken from; 0: 512
  std::string ranges;          // int8: percentile (when empty), entropy, minmax
  // int8: CalibrateSettings::most_error; below 0: a hundredth, of a model that does not learn classes
  double most_error = -1;
  std::filesystem::path onnx;  // int8: the quantised model is written there; empty: not
  std::int64_t batch = 0;      // 0: 512; of a model file without data: 1, or what it fixes
  std::int64_t samples = 0;    // 0: all
  int passes = -1;  // with masks, of a model that drops out; 0: none; -1: as its recipe says (0, or many)
  int threads = 1;
  bool measure_steps = false;  // time every step of the plan (slower)
  // Of sequences: lengths of plans below the full one, of which each goes through the shortest that holds it
  // (length_plans.h); empty: all go through the full one.
  std::vector<std::int64_t> lengths;
  std::int64_t refine = 0;  // steps by which each answer is refined on its sample alone (refine.h); 0: none
};

struct InferReport {
  // throughput, latency_*, and the quality where the truth is known. Of a machine that is modelled the first
  // two are predicted, and host_time says how long this host took to execute the samples.
  std::vector<Metric> metrics;
  std::int64_t samples = 0;
  double start_seconds = 0;  // until a sample could be computed, with this program's weights read and packed;
                             // 0: of a machine that is modelled
  target::PlanSummary plan;
  int passes = 0;                    // with masks: outputs are their means, and a spread is beside each
  std::int64_t not_finite = 0;       // samples of which an output is NaN or infinite
  bool without_digest = false;       // of a run of an older version: nobody knows whether they are as written
  std::int64_t beyond_bounds = 0;    // results of a model file that --bound left no room for
  std::vector<std::string> outside;  // samples unlike what the weights were learnt from, a line each
  std::vector<std::string> notes;    // of the data: what was left out and why
  std::vector<std::string> unused_weights;  // arrays of the user's file that the model does not have

  std::map<std::int64_t, std::int64_t> lengths;  // samples that went through the plan of each length

  // Where answers were refined: the quality before, and the seconds that a sample took.
  std::vector<Metric> metrics_before;
  double refine_seconds = 0;

  // int8 alone: the same in f32, on the same samples, and how many products run on bytes.
  std::vector<Metric> f32_metrics;
  std::size_t int8_products = 0, f32_products = 0;
  std::vector<target::SlowOnBytes> slow_on_bytes;  // of those left in f32
  std::vector<CoarseOnBytes> coarse_on_bytes;      // and these
  std::int64_t calibration_samples = 0;
  std::string ranges;
};

// Throws Error naming the file and data set. Where outputs are written, calls are timed for a moment, after
// that; else speed is what was asked for (timing.h).
InferReport infer(const InferSettings& settings);

}  // namespace superstep::run
