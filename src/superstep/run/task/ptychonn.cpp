// Diffraction patterns with the object under the probe, scan by scan.
#include <cmath>

#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_samples = 2560;

// Photons range over seven orders of magnitude.
double log_counts(double counts) { return std::log1p(std::max(0.0, counts)); }

std::vector<Metric> quality_of_both(const Fields& fields, std::span<const std::int64_t> indices,
                                    std::span<const Tensor> outputs) {
  return {quality_metric("phase_mae", mean_absolute_error(fields.at("phase"), indices, outputs[1]), "rad"),
          quality_metric("amplitude_mae", mean_absolute_error(fields.at("amp"), indices, outputs[0]))};
}

std::vector<Metric> quality_of_phase(const Fields& fields, std::span<const std::int64_t> indices,
                                     std::span<const Tensor> outputs) {
  return {quality_metric("phase_mae", mean_absolute_error(fields.at("phase"), indices, outputs[0]), "rad")};
}

}  // namespace

// Scans of 16 x 16 points, so that a few thousand samples see many objects.
std::unique_ptr<Task> open_ptychonn_64_task(const TaskSettings& settings, const Options& model) {
  return open_table_task({.generator = "ptychonn-64",
                          .settings = {"window=" + model.text("window"), "rows=16", "columns=16"},
                          .default_samples = default_samples,
                          .group = "scan",
                          .inputs = {{"diff", log_counts}},
                          .targets = {{"amp"}, {"phase"}},
                          .more = {},
                          .quality = quality_of_both,
                          .present = present_ptychography},
                         settings);
}

std::unique_ptr<Task> open_ptychonn_128_task(const TaskSettings& settings, const Options& model) {
  return open_table_task({.generator = "ptychonn-128",
                          .settings = {"window=" + model.text("window"), "points=256"},
                          .default_samples = default_samples / 2,
                          .group = "scan",
                          .inputs = {{"diff", log_counts}},
                          .targets = {{"phase"}},
                          .more = {},
                          .quality = quality_of_phase,
                          .present = present_ptychography},
                         settings);
}

}  // namespace superstep::run
