// Cells and drugs with the measured area under the dose response curve. A file is one of layout=dense.
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

std::vector<Metric> regression_quality(const Fields& fields, std::span<const std::int64_t> indices,
                                       std::span<const Tensor> outputs) {
  const Tensor& auc = fields.at("AUC");
  const auto n = static_cast<double>(std::max<std::size_t>(1, indices.size()));
  double mean = 0, squares = 0, spread = 0;
  for (const std::int64_t index : indices) mean += auc.at(index) / n;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const double truth = auc.at(indices[i]), error = outputs[0].at(static_cast<std::int64_t>(i)) - truth;
    squares += error * error / n;
    spread += (truth - mean) * (truth - mean) / n;
  }
  return {quality_metric("r2", spread > 0 ? 1 - squares / spread : 0), quality_metric("mse", squares),
          quality_metric("mae", mean_absolute_error(auc, indices, outputs[0]))};
}

}  // namespace

std::unique_ptr<Task> open_uno_task(const TaskSettings& settings, const Options&) {
  return open_table_task({.generator = "uno",
                          .settings = {"layout=dense"},
                          .default_samples = 8000,
                          .training_share = 0.8,
                          .group = {},
                          .inputs = {{"cell"}, {"drug"}},
                          .targets = {{"AUC"}},
                          .more = {},
                          .quality = regression_quality,
                          .present = present_responses},
                         settings);
}

}  // namespace superstep::run
