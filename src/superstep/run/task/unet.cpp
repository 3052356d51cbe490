// Slices of brain MRI with the mask of the lesion, patient by patient.
#include <map>

#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

double of_byte(double value) { return value / 255; }

struct Overlap {
  double both = 0, either = 0;
};

// The mean over patients of 2 |P and M| / (|P| + |M|), P where the probability is one half or more.
std::vector<Metric> dice_of_patients(const Fields& fields, std::span<const std::int64_t> indices,
                                     std::span<const Tensor> outputs) {
  const Tensor &masks = fields.at("mask"), &patients = fields.at("patient");
  const auto found = outputs[0].as<float>();
  const std::size_t pixels = found.size() / std::max<std::size_t>(1, indices.size());
  std::map<double, Overlap> overlaps;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Overlap& overlap = overlaps[patients.at(indices[i])];
    for (std::size_t k = 0; k < pixels; ++k) {
      const bool marked = found[i * pixels + k] >= 0.5f;
      const auto at = indices[i] * static_cast<std::int64_t>(pixels) + static_cast<std::int64_t>(k);
      const bool lesion = masks.at(at) != 0;
      overlap.both += marked && lesion;
      overlap.either += static_cast<int>(marked) + static_cast<int>(lesion);
    }
  }
  double sum = 0;
  for (const auto& [patient, overlap] : overlaps)
    sum += overlap.either > 0 ? 2 * overlap.both / overlap.either : 1;
  return {quality_metric("dice", sum / static_cast<double>(std::max<std::size_t>(1, overlaps.size())))};
}

}  // namespace

std::unique_ptr<Task> open_unet_task(const TaskSettings& settings, const Options& model) {
  const bool large = model.integer("size", 1, 1 << 20) > 128;
  return open_table_task({.generator = "unet-256",
                          .settings = {"size=" + model.text("size"), "slices=20"},
                          .default_samples = large ? 240 : 2000,
                          .group = "patient",
                          .inputs = {{"image", of_byte}},
                          .targets = {{"mask"}},
                          .more = {},
                          .quality = dice_of_patients,
                          .present = present_lesions},
                         settings);
}

}  // namespace superstep::run
