#include "superstep/run/serve/served_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/onnx/writer.h"

namespace superstep::run {
namespace {

// A class stays the largest though all scores move; a number that is asked for moves with them.
double most_error_of(const InferSettings& settings, const Model& model) {
  constexpr double usual = 0.01;  // of the outputs' spread: a model that is right to 3 % of it loses 5 % more
  if (settings.most_error >= 0) return settings.most_error;
  const auto learns_classes = [](const transform::LossTerm& term) {
    return transform::takes_labels(term.kind);
  };
  return std::ranges::any_of(model.recipe().loss.terms, learns_classes) ? 0 : usual;
}

CalibrateSettings calibration_of(const InferSettings& settings, const Task& task, const Model& model) {
  CalibrateSettings calibration{
      .method = range_method_from_name(settings.ranges.empty() ? name_of(RangeMethod::percentile)
                                                               : settings.ranges),
      .threads = settings.threads,
      .products = {},
      .most_error = most_error_of(settings, model)};
  if (settings.calibrate > 0) calibration.samples = settings.calibrate;
  if (settings.calibrate > task.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("there are {} samples to calibrate on", task.size()),
                "--calibrate");
  calibration.samples = std::min(calibration.samples, task.size());
  if (model.fixed_batch() > 0) calibration.batch = model.fixed_batch();
  return calibration;
}

}  // namespace

QuantizedModel quantized(const InferSettings& settings, const Model& model,
                         const std::optional<Weights>& weights, const Task& task, ThreadPool& pool,
                         InferReport& report) {
  CalibrateSettings calibration = calibration_of(settings, task, model);
  const auto fill = [&](std::int64_t first, std::span<Tensor> inputs) {
    std::vector<std::int64_t> indices(
        static_cast<std::size_t>(model.one_a_call() ? 1 : inputs[0].shape()[0]));
    std::iota(indices.begin(), indices.end(), first);
    task.fill_inputs(indices, inputs, pool);
  };
  const auto quantize = [&] {
    return quantize_model(target::find_target(settings.target), model.inference(),
                          weights ? weights->states : std::map<std::string, Tensor>(), calibration, fill);
  };
  // Files have no bf16 beside bytes.
  if (!settings.onnx.empty())
    onnx::write_onnx(settings.onnx, quantize().graph, {.opset = 21, .fixed_batch = model.fixed_batch()});
  calibration.products.beside_bf16 = true;
  QuantizedModel result = quantize();
  report.int8_products = result.products;
  report.f32_products = result.kept;
  report.slow_on_bytes = result.slow;
  report.coarse_on_bytes = result.coarse;
  report.calibration_samples = calibration.samples;
  report.ranges = name_of(calibration.method);
  return result;
}

void check_int8_options(const InferSettings& settings) {
  if (settings.precision == "int8") return;
  for (const auto& [given, option] :
       {std::pair(settings.calibrate > 0, "--calibrate"), std::pair(!settings.ranges.empty(), "--ranges"),
        std::pair(settings.most_error >= 0, "--byte-error"), std::pair(!settings.onnx.empty(), "--onnx")})
    if (given)
      throw Error(ErrorCode::invalid_argument, "belongs to --precision int8", option,
                  "other precisions need no calibration");
}

}  // namespace superstep::run
