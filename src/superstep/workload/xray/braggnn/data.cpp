// BraggNN's data: patches of diffraction peaks and their centres.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/statistics.h"
#include "superstep/baseline/xray/bragg_position.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/physics/xray/bragg_dataset.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/xray/braggnn/braggnn.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t generated_patches = 20000;
constexpr double bragg_training_share = 0.8;

// The network itself adds the half that sets its centre: labels are as the files have them.
data::BraggDatasetSettings dataset_settings(bool labels_required, double memory = 0) {
  return {.centered_labels = false, .labels_required = labels_required, .labels = {}, .memory = memory};
}

class BraggTask : public Task {
 public:
  BraggTask(data::BraggDataset data, TaskSettings settings, std::string source)
      : data_(std::move(data)), settings_(std::move(settings)), source_(std::move(source)) {
    if (settings_.labels_required && !data_.has_labels())
      throw Error(ErrorCode::bad_file, "has no labels ('ploc') to train on", source_);
    size_ = data_.size();
    if (settings_.samples > 0) size_ = std::min(size_, settings_.samples);
    training_ = size_ == data_.size()
                    ? data_.training_count(bragg_training_share)
                    : static_cast<std::int64_t>(bragg_training_share * static_cast<double>(size_));
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override { return training_; }

  bool reads_as_it_goes() const override { return data_.reads_as_it_goes(); }
  data::ForcedOrder forced_order() const override { return data_.forced_order(); }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    data_.fill(indices, settings_.seed, epoch, tensors[0].as<float>().data(), tensors[1].as<float>().data(),
               augment && data_.can_shift());
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool& pool) const override {
    const std::size_t row = inputs[0].as<float>().size() / indices.size();
    constexpr std::int64_t piece = 32;
    const auto count = static_cast<std::int64_t>(indices.size());
    pool.parallel_for((count + piece - 1) / piece, [&](std::int64_t item, int) {
      const auto first = static_cast<std::size_t>(item * piece);
      const auto some = indices.subspan(first, std::min<std::size_t>(piece, indices.size() - first));
      data_.fill(some, settings_.seed, 0, inputs[0].as<float>().data() + first * row, nullptr, false);
    });
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    std::vector<double> errors;
    const auto positions = outputs[0].as<float>();
    const double size = data_.patch_size();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto truth = data_.position(indices[i]);
      const double column = static_cast<double>(positions[2 * i]) * size;
      const double row = static_cast<double>(positions[2 * i + 1]) * size;
      errors.push_back(std::hypot(column - truth[0], row - truth[1]));
    }
    return bragg_error_metrics(std::move(errors));
  }

  std::string present(const Predictions& found, ThreadPool& pool, page::Page& page) const override {
    return present_bragg(data_, found, pool, page);
  }

  std::unique_ptr<Task> fresh(std::int64_t samples, std::uint64_t seed, ThreadPool& pool) const override {
    data::BraggPatchSettings patches;
    patches.patch_size = data_.patch_size();
    data::BraggDatasetSettings same = dataset_settings(true);
    same.patch_size = data_.patch_size();
    return std::make_unique<BraggTask>(
        data::BraggDataset::generate(patches, seed, 0, static_cast<std::uint64_t>(samples), pool, same),
        TaskSettings{}, fmt::format("generated, seed {}", seed));
  }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    if (indices.empty() || !has_labels()) return {};
    return {.floor = Reference{"the centroid", mean_error(baseline::BraggMethod::centroid, indices, pool)},
            .conventional =
                Reference{"the pseudo-Voigt fit", mean_error(baseline::BraggMethod::rotated, indices, pool)},
            .limit = {},
            .target = {}};
  }
  double reference_seconds() const override { return 0.5; }

  bool has_labels() const override { return data_.has_labels(); }
  std::vector<std::string> notes() const override { return data_.notes(); }

  nlohmann::json describe() const override {
    return {{"source", source_},
            {"samples", size_},
            {"training", training_},
            {"patch", data_.patch_size()},
            {"shifted", data_.can_shift()}};
  }

 private:
  double mean_error(baseline::BraggMethod method, std::span<const std::int64_t> indices,
                    ThreadPool& pool) const {
    const int size = data_.patch_size();
    std::vector<double> errors(indices.size());
    pool.parallel_for(static_cast<std::int64_t>(indices.size()), [&](std::int64_t item, int) {
      data::throw_if_interrupted();
      const std::int64_t index = indices[static_cast<std::size_t>(item)];
      std::vector<float> patch(static_cast<std::size_t>(size * size));
      data_.raw(index, patch);
      const baseline::PeakPosition found = baseline::locate(method, patch, size).position;
      const auto truth = data_.position(index);
      errors[static_cast<std::size_t>(item)] = std::hypot(found.column - truth[0], found.row - truth[1]);
    });
    return bragg_error_metrics(std::move(errors))[0].value;
  }

  data::BraggDataset data_;
  TaskSettings settings_;
  std::string source_;
  std::int64_t size_ = 0, training_ = 0;
};

}  // namespace

std::vector<Metric> bragg_error_metrics(std::vector<double> errors) {
  double sum = 0;
  for (const double error : errors) sum += error;
  const double mean = sum / static_cast<double>(std::max<std::size_t>(1, errors.size()));
  std::ranges::sort(errors);
  const auto metric = [](const char* name, double value) { return quality_metric(name, value, "px"); };
  if (errors.empty()) return {};
  return {metric("error_px_mean", mean), metric("error_px_p50", nearest_rank(errors, 0.50)),
          metric("error_px_p75", nearest_rank(errors, 0.75)),
          metric("error_px_p95", nearest_rank(errors, 0.95)),
          metric("error_px_p995", nearest_rank(errors, 0.995))};
}

std::unique_ptr<Task> open_bragg_peaks(const TaskSettings& settings, const Options&) {
  if (!settings.data.empty())
    return std::make_unique<BraggTask>(
        data::BraggDataset::open(settings.data,
                                 dataset_settings(settings.labels_required, settings.data_memory)),
        settings, settings.data.string());
  const auto count = settings.samples > 0 ? settings.samples : generated_patches;
  data::BraggPatchSettings patches;
  patches.margin = 1;
  return std::make_unique<BraggTask>(
      data::BraggDataset::generate(patches, settings.seed, 0, static_cast<std::uint64_t>(count),
                                   *settings.pool, dataset_settings(true)),
      settings, generated_source(settings));
}

}  // namespace superstep::workload
