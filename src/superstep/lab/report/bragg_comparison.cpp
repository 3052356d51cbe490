#include "superstep/lab/report/bragg_comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/baseline/xray/bragg_position.h"
#include "superstep/physics/xray/bragg_dataset.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/evaluate.h"
#include "superstep/run/task/tasks.h"

namespace superstep::lab {
namespace {

constexpr int shown_patches = 18;
constexpr int picture_scale = 12;
constexpr std::int64_t model_batch = 500;

void add_errors(BraggMethodResult& method, const data::BraggDataset& data) {
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const auto truth = data.position(i);
    const auto at = static_cast<std::size_t>(i);
    method.errors.push_back(std::hypot(method.x[at] - truth[0], method.y[at] - truth[1]));
  }
  method.metrics = run::bragg_error_metrics(method.errors);
}

BraggMethodResult conventional(std::string name, baseline::BraggMethod kind, const data::BraggDataset& data,
                               ThreadPool& pool) {
  const auto count = static_cast<std::size_t>(data.size());
  const int size = data.patch_size();
  BraggMethodResult method{.name = std::move(name),
                           .errors = {},
                           .x = std::vector<double>(count),
                           .y = std::vector<double>(count),
                           .seconds = 0,
                           .metrics = {}};
  constexpr std::int64_t piece = 64;
  Progress progress(method.name, static_cast<double>(count), "patches");
  const Stopwatch watch;
  for (std::int64_t first = 0; first < data.size(); first += 32 * piece) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while fitting");
    const std::int64_t last = std::min(data.size(), first + 32 * piece);
    pool.parallel_for((last - first + piece - 1) / piece, [&](std::int64_t item, int) {
      std::vector<float> patch(static_cast<std::size_t>(size * size));
      for (std::int64_t i = first + item * piece; i < std::min(last, first + (item + 1) * piece); ++i) {
        data.raw(i, patch);
        const auto found = baseline::locate(kind, patch, size);
        method.x[static_cast<std::size_t>(i)] = found.position.column;
        method.y[static_cast<std::size_t>(i)] = found.position.row;
      }
    });
    progress.update(static_cast<double>(last));
  }
  method.seconds = watch.seconds();
  add_errors(method, data);
  return method;
}

BraggMethodResult by_model(const run::Weights& weights, const data::BraggDataset& data, ThreadPool& pool) {
  const run::Model model(weights.settings);
  const target::Target& target = target::find_target(weights.settings.backend);
  run::Evaluator evaluator(target, model.inference(&target),
                           {.batch = std::min(model_batch, data.size()), .threads = pool.threads()});
  evaluator.set_parameters(weights.states, weights.where);
  const auto task = run::make_bragg_task(data);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(data.size()));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  const Stopwatch watch;
  const std::vector<Tensor> outputs = evaluator.predict(*task, indices, pool);
  BraggMethodResult method{.name = fmt::format("BraggNN, {}", weights.settings.precision),
                           .errors = {},
                           .x = {},
                           .y = {},
                           .seconds = watch.seconds(),
                           .metrics = {}};
  const auto positions = outputs[0].as<float>();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    method.x.push_back(static_cast<double>(positions[2 * i]) * data.patch_size());
    method.y.push_back(static_cast<double>(positions[2 * i + 1]) * data.patch_size());
  }
  add_errors(method, data);
  return method;
}

std::vector<page::Picture> draw(const data::BraggDataset& data, const BraggMethodResult& fit,
                                const BraggMethodResult& model) {
  std::vector<page::Picture> pictures;
  const int size = data.patch_size();
  std::vector<float> patch(static_cast<std::size_t>(size * size));
  for (std::int64_t i = 0; i < std::min<std::int64_t>(shown_patches, data.size()); ++i) {
    data.raw(i, patch);
    const auto truth = data.position(i);
    const auto at = static_cast<std::size_t>(i);
    using Shape = page::Mark::Shape;
    pictures.push_back(
        {.image = page::colored(patch, size, size, page::Colormap::gray),
         .caption = fmt::format("fit {:.3f} px, network {:.3f} px", fit.errors[at], model.errors[at]),
         .marks = {{Shape::plus, truth[0], truth[1], "#2f9e44", "true centre"},
                   {Shape::circle, fit.x[at], fit.y[at], "#4dabf7", "pseudo-Voigt fit"},
                   {Shape::cross, model.x[at], model.y[at], "#ff6b6b", "BraggNN"}},
         .scale = picture_scale});
  }
  return pictures;
}

}  // namespace

BraggComparison compare_bragg(const run::Weights& weights, std::int64_t samples, std::uint64_t seed,
                              ThreadPool& pool) {
  data::BraggPatchSettings patches;
  for (const std::string& option : weights.settings.model_options)
    if (option.starts_with("patch=")) patches.patch_size = std::stoi(option.substr(6));
  const auto data =
      data::BraggDataset::generate(patches, seed, 0, static_cast<std::uint64_t>(samples), pool,
                                   {.patch_size = patches.patch_size, .centered_labels = false});
  BraggComparison comparison;
  comparison.samples = data.size();
  using baseline::BraggMethod;
  comparison.methods.push_back(conventional("brightest pixel", BraggMethod::brightest, data, pool));
  comparison.methods.push_back(conventional("centroid", BraggMethod::centroid, data, pool));
  comparison.methods.push_back(conventional("fit, 7 parameters", BraggMethod::axis_aligned, data, pool));
  comparison.methods.push_back(conventional("fit, 8 parameters", BraggMethod::rotated, data, pool));
  comparison.methods.push_back(by_model(weights, data, pool));
  comparison.pictures = draw(data, comparison.methods[3], comparison.methods[4]);
  return comparison;
}

}  // namespace superstep::lab
