// Slices of brain MRI with the mask of the lesion, patient by patient.
#include <map>

#include "superstep/baseline/lesion.h"
#include "superstep/data/stream_blocks.h"
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

double of_byte(double value) { return value / 255; }

struct Overlap {
  double both = 0, either = 0;
  void add(bool marked, bool lesion) {
    both += marked && lesion;
    either += static_cast<int>(marked) + static_cast<int>(lesion);
  }
};

using Overlaps = std::map<double, Overlap>;  // by patient

double mean_dice(const Overlaps& overlaps) {
  double sum = 0;
  for (const auto& [patient, overlap] : overlaps)
    sum += overlap.either > 0 ? 2 * overlap.both / overlap.either : 1;
  return sum / static_cast<double>(std::max<std::size_t>(1, overlaps.size()));
}

// The mean over patients of 2 |P and M| / (|P| + |M|), P where the probability is one half or more.
std::vector<Metric> dice_of_patients(const Fields& fields, std::span<const std::int64_t> indices,
                                     std::span<const Tensor> outputs) {
  const Tensor &masks = fields.at("mask"), &patients = fields.at("patient");
  const auto found = outputs[0].as<float>();
  const std::size_t pixels = found.size() / std::max<std::size_t>(1, indices.size());
  Overlaps overlaps;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Overlap& overlap = overlaps[patients.at(indices[i])];
    for (std::size_t k = 0; k < pixels; ++k)
      overlap.add(found[i * pixels + k] >= 0.5f, masks.at(indices[i] * static_cast<std::int64_t>(pixels) +
                                                          static_cast<std::int64_t>(k)) != 0);
  }
  return {quality_metric("dice", mean_dice(overlaps))};
}

// A patient's samples.
using Volume = std::vector<std::int64_t>;

std::vector<Volume> volumes_of(const Tensor& patients, std::span<const std::int64_t> indices) {
  std::map<double, Volume> volumes;
  for (const std::int64_t index : indices) volumes[patients.at(index)].push_back(index);
  std::vector<Volume> list;
  for (auto& [patient, volume] : volumes) list.push_back(std::move(volume));
  return list;
}

// Lesions by thresholds in the FLAIR volume of a patient.
Overlap thresholded(const Fields& fields, const Volume& volume, const baseline::LesionSettings& settings) {
  const Tensor &images = fields.at("image"), &masks = fields.at("mask");
  const auto height = images.shape()[2], width = images.shape()[3], plane = height * width;
  std::vector<std::uint8_t> flair;
  for (const std::int64_t slice : volume) {
    const auto channel = images.as<std::uint8_t>().subspan(static_cast<std::size_t>((3 * slice + 1) * plane),
                                                           static_cast<std::size_t>(plane));
    flair.insert(flair.end(), channel.begin(), channel.end());
  }
  const auto found = baseline::segment_lesion(flair, static_cast<int>(width), static_cast<int>(height),
                                              static_cast<int>(volume.size()), settings);
  Overlap overlap;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    overlap.add(found[i] != 0,
                masks.at(volume[i / static_cast<std::size_t>(plane)] * plane + at % plane) != 0);
  }
  return overlap;
}

References thresholds(const TableSamples& samples) {
  if (samples.fields.at("image").shape()[1] != 3) return {};
  const std::vector<Volume> volumes = volumes_of(samples.fields.at("patient"), samples.indices);
  const auto dice = [&](const baseline::LesionSettings& settings) {
    std::vector<Overlap> found(volumes.size());
    samples.pool.parallel_for(static_cast<std::int64_t>(volumes.size()), [&](std::int64_t item, int) {
      data::throw_if_interrupted();
      found[static_cast<std::size_t>(item)] =
          thresholded(samples.fields, volumes[static_cast<std::size_t>(item)], settings);
    });
    Overlaps overlaps;
    for (const Overlap& overlap : found) overlaps.emplace(static_cast<double>(overlaps.size()), overlap);
    return mean_dice(overlaps);
  };
  return {.floor = Reference{"Otsu's threshold", dice({.classes = 3, .correct_bias = false, .growth = 0})},
          .conventional = Reference{"thresholds without bias, region growing",
                                    dice({.classes = 4, .correct_bias = true, .growth = 1.5})},
          .limit = {},
          .target = {}};
}

}  // namespace

std::unique_ptr<Task> open_unet_task(const TaskSettings& settings, const Options& model) {
  const bool large = model.integer("size", 1, 1 << 20) > 128;
  return open_table_task({.generator = large ? "unet-256" : "unet-64",
                          .settings = {"size=" + model.text("size"), "slices=20"},
                          .default_samples = large ? 240 : 2000,
                          .group = "patient",
                          .inputs = {{"image", of_byte}},
                          .targets = {{"mask"}},
                          .more = {},
                          .quality = dice_of_patients,
                          .present = present_lesions,
                          .references = thresholds,
                          .reference_seconds = large ? 60.0 : 5.0,
                          .reference_fields = {}},
                         settings);
}

}  // namespace superstep::run
