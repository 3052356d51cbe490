// Slices through crystals, true and predicted, and through their patterns.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/ptychography/autophase_run.h"
#include "superstep/workload/xray/autophasenn/autophasenn.h"

namespace superstep::workload {
namespace {

constexpr std::size_t crystals_each = 1;
constexpr int pattern_pixels = 192;
constexpr float darkest = 1e-3f;  // of the largest magnitude

// The plane through frequency zero, on a logarithmic scale of grey.
page::Picture pattern_slice(std::span<const float> pattern, int side, std::string caption) {
  const auto first = static_cast<std::size_t>(side / 2) * static_cast<std::size_t>(side * side);
  std::vector<float> decades;
  for (const float value : pattern.subspan(first, static_cast<std::size_t>(side * side)))
    decades.push_back(std::log10(std::max(darkest, value)));
  return {
      .image = page::colored(decades, side, side, page::Colormap::viridis, std::log10(darkest), 0.0f),
      .caption = std::move(caption),
      .marks = {},
      .scale = std::max(1, pattern_pixels / side),
      .bar = page::ColorBar{page::Colormap::viridis, "0.001", "1", "magnitude / its largest, logarithmic"}};
}

void add_crystal(page::Page& page, const Fields& fields, const Predictions& found, const Chosen& chosen) {
  const std::int64_t index = found.indices[chosen.at];
  const CrystalQuality quality = crystal_quality(fields, index, predicted_crystal(found.outputs, chosen.at));
  page.heading(fmt::format("{}: sample {}, distance of the patterns {:.5f}, overlap of the shapes {:.3f}, "
                           "phase {:.3f} rad",
                           chosen.why, index, quality.diffraction_l1, quality.iou, quality.phase_error),
               3);
  const Tensor& diff = fields.at("diff");
  const auto side = static_cast<int>(diff.shape()[1]);
  const auto voxels = quality.pattern.size();
  const auto measured = diff.as<float>().subspan(static_cast<std::size_t>(index) * voxels, voxels);
  const baseline::NamedCube cubes[] = {
      {"true surface, in the colors of its phase",
       baseline::middle_cube(true_crystal(fields, index), static_cast<std::size_t>(side))},
      {"predicted surface", baseline::middle_cube(quality.aligned, static_cast<std::size_t>(side))}};
  const auto column = [&](const baseline::Field& cube, const char* which) {
    std::vector<page::Picture> pictures;
    baseline::add_object_slices(pictures, cube, side / 2, which);
    page.begin_column().pictures(pictures).end_column();
  };
  page.begin_row();
  column(cubes[0].field, "true");
  column(cubes[1].field, "predicted");
  page.end_row();
  page.pictures(baseline::turning_crystals(cubes, side / 2));
  page.pictures({pattern_slice(measured, side, "measured pattern, middle plane"),
                 pattern_slice(quality.pattern, side, "pattern of the predicted crystal")});
}

}  // namespace

std::string present_crystals(const Fields& fields, const Predictions& found, page::Page& page) {
  std::vector<double> errors, overlaps;
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    const CrystalQuality quality =
        crystal_quality(fields, found.indices[i], predicted_crystal(found.outputs, i));
    errors.push_back(quality.diffraction_l1);
    overlaps.push_back(quality.iou);
  }
  page.plot({.title = "Overlap of predicted and true crystals",
             .x_label = "intersection / union",
             .y_label = "crystals",
             .series = {page::histogram("", overlaps, 0, 1, 25)}});
  page.paragraph(
      "A pattern does not tell the phase of the whole, the place of the crystal and its twin: predictions "
      "are "
      "turned, shifted and, where that is nearer, mirrored onto the truth.");
  for (const Chosen& chosen : best_median_worst(errors, crystals_each))
    add_crystal(page, fields, found, chosen);
  return {};
}

}  // namespace superstep::workload
